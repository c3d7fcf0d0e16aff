"""Readers and writers of files of rankings."""

from rankernel.io.blt import read_blt, write_blt
from rankernel.io.cvr import read_cvr
from rankernel.io.layouts import read_csv, write_csv
from rankernel.io.pairs import read_comparisons, read_pairs
from rankernel.io.preflib import read_preflib, write_preflib
from rankernel.io.registry import read
from rankernel.io.source import FileSource, ReadOptions, Repairs
from rankernel.io.text_orders import read_text_orders, read_trec

__all__ = [
    "FileSource",
    "ReadOptions",
    "Repairs",
    "read",
    "read_blt",
    "read_comparisons",
    "read_csv",
    "read_cvr",
    "read_pairs",
    "read_preflib",
    "read_text_orders",
    "read_trec",
    "write_blt",
    "write_csv",
    "write_preflib",
]
