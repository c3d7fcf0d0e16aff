"""Files in, files out: PrefLib, comma-separated tables and the SUSHI data, and where to get them."""

from rankernel.io.ballots import Repairs
from rankernel.io.fetch import fetch_preflib, fetch_sushi
from rankernel.io.preflib import read_preflib, write_preflib
from rankernel.io.sushi import SushiData, load_sushi
from rankernel.io.table import CsvRankings, read_csv, write_csv

__all__ = [
    "CsvRankings",
    "Repairs",
    "SushiData",
    "fetch_preflib",
    "fetch_sushi",
    "load_sushi",
    "read_csv",
    "read_preflib",
    "write_csv",
    "write_preflib",
]
