"""Where the real data is, if it is: RANKERNEL_DATA names a folder with ``preflib/`` and ``sushi3-2016/``."""

import os
from pathlib import Path

import pytest

FOLDER = os.environ.get("RANKERNEL_DATA", "")
needs_data = pytest.mark.skipif(not FOLDER, reason="RANKERNEL_DATA is not set")


def preflib(name):
    return Path(FOLDER) / "preflib" / name


def sushi():
    return Path(FOLDER) / "sushi3-2016"


def arena():
    return Path(FOLDER) / "arena"
