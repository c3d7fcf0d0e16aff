"""Where the real data is, if it is: RANKERNEL_DATA names a folder with ``preflib/`` and ``sushi3-2016/``."""

import os
from pathlib import Path

import pytest

import rankernel as rk

FOLDER = os.environ.get("RANKERNEL_DATA", "")
needs_data = pytest.mark.skipif(not FOLDER, reason="RANKERNEL_DATA is not set")


def preflib(name):
    return Path(FOLDER) / "preflib" / name


def sushi(which="a", **options):
    return rk.read(Path(FOLDER, "sushi3-2016", f"sushi3{which}.5000.10.order"), **options)


def arena():
    return Path(FOLDER) / "arena"
