"""Two folders that take each other's place in one step, on systems that can do that."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

HERE = -100  # AT_FDCWD: names count from the working folder
EXCHANGE = 2  # RENAME_EXCHANGE


def exchanged(one: Path, other: Path) -> bool:
    """Let two names stand for each other's file or folder; False where the system, or its disk, cannot do it."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    return bool(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)
