"""Files in, files out: PrefLib, comma-separated tables and the SUSHI data, and where to get them."""

from rankernel.io.blt import read_blt, write_blt
from rankernel.io.cvr import read_cvr
from rankernel.io.fetch import fetch_preflib, fetch_sushi
from rankernel.io.file_data import FilePreferences, FileRankings
from rankernel.io.pairs import read_pairs
from rankernel.io.preflib import read_preflib, write_preflib
from rankernel.io.registry import read
from rankernel.io.repairs import Repairs
from rankernel.io.sushi import SushiData, load_sushi
from rankernel.io.table import read_csv, write_csv

__all__ = [
    "FilePreferences",
    "FileRankings",
    "Repairs",
    "SushiData",
    "fetch_preflib",
    "fetch_sushi",
    "load_sushi",
    "read",
    "read_blt",
    "read_csv",
    "read_cvr",
    "read_pairs",
    "read_preflib",
    "write_blt",
    "write_csv",
    "write_preflib",
]
