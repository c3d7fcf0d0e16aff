"""Invalid arguments of readers, writers and conversions: errors that name the argument."""

import atexit
import inspect
import json
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from example_files import BLT, DOMINION, preflib
from nonsense import faults

import rankernel as rk
from rankernel import interop, io

FOLDER = Path(tempfile.mkdtemp(prefix="rankernel-nonsense-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
BALLOTS = rk.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "b"], ["a", {"b", "c"}]])


def file(name, text):
    (FOLDER / name).write_text(text, encoding="utf-8")
    return FOLDER / name


BALLOT_OPTIONS = {
    "items": ["Ann", "Bob"],
    "unlisted": "last",
    "skipped": "close",
    "repeated": "first",
    "overvotes": "stop",
    "write_ins": "merge",
    "aliases": {"A.": "Ann"},
    "separator": "/",
    "na_values": ["none"],
    "fold_case": False,
    "blank": "drop",
}
FILE_OPTIONS = {"delimiter": "auto", "encoding": "utf-8", "max_bytes": 10**6}
READERS = {
    "read": {"path": file("read.csv", "Rank 1,Rank 2\nAnn,Bob\n"), "format": "auto", "layout": "positions"},
    "read_preflib": {
        "path": file("votes.soi", preflib("soi", ["2: 1", "1: 3,2", "4: 2,1,3"])),
        "unlisted": "free",
        "encoding": "utf-8",
        "max_bytes": 10**6,
    },
    "read_blt": {
        "path": file("ward.blt", BLT),
        "unlisted": "free",
        "withdrawn": "keep",
        "blank": "drop",
        "encoding": "utf-8",
        "max_bytes": 10**6,
    },
    "read_csv": {
        "path": file("votes.csv", "n,town,mood,Rank 1,Rank 2\n2,x,y,Ann,Bob\n1,x,y,Bob,\n"),
        "layout": "positions",
        "count": "n",
        "label_columns": ["town"],
        "ignore": ["mood"],
        "ascending": False,
        "header": True,
        "contest": None,
        "columns": None,
        **BALLOT_OPTIONS,
        **FILE_OPTIONS,
    },
    "read_cvr": {
        "path": file("cvr.csv", "n,town,Mayor Choice 1 of 2,Mayor Choice 2 of 2\n1,x,Ann,Bob\n2,x,Bob,\n"),
        "contest": "Mayor",
        "count": "n",
        "label_columns": ["town"],
        "ignore": [],
        "fold_case": True,
        **BALLOT_OPTIONS,
        **FILE_OPTIONS,
    },
    "read_cvr json": {"path": file("cvr.json", json.dumps(DOMINION)), "contest": "contest 7", "max_bytes": 10**6},
    "read_pairs": {
        "path": file("pairs.csv", "who,winner,loser,n,town,mood\ns,a,b,1,x,y\nt,b,a,2,x,y\n"),
        "items": ["a", "b"],
        "count": "n",
        "label_columns": ["town"],
        "ignore": ["mood"],
        "columns": {"user": "who"},
        "layout": "pairs",
        "header": None,
        **FILE_OPTIONS,
    },
    "read_comparisons": {
        "path": file("pairs.csv", "who,winner,loser,n,town,mood\ns,a,b,1,x,y\nt,b,a,2,x,y\n"),
        "items": ["a", "b"],
        "count": "n",
        "layout": "pairs",
        "ignore": ["mood"],
        "columns": {"user": "who"},
        "header": True,
        **FILE_OPTIONS,
    },
    "read_trec": {
        "path": file("a.run", "1 Q0 d1 1 2.5 x\n1 Q0 d2 2 1.5 x\n"),
        "items": ["d1", "d2"],
        "unlisted": "free",
        "encoding": "utf-8",
        "max_bytes": 10**6,
    },
    "read_text_orders": {
        "path": file("votes.abif", "2: Ann>Bob\nBob\n"),
        **{name: BALLOT_OPTIONS[name] for name in ("items", "unlisted", "repeated", "write_ins", "aliases")},
        **{name: BALLOT_OPTIONS[name] for name in ("na_values", "fold_case", "blank")},
        "encoding": "utf-8",
        "max_bytes": 10**6,
    },
}
WRITERS = {
    "write_blt": {"rankings": BALLOTS, "path": FOLDER / "out.blt", "seats": 1, "title": "votes", "overwrite": True},
    "write_csv": {
        "rankings": BALLOTS,
        "path": FOLDER / "out.csv",
        "overwrite": True,
        "count": "n",
        "labels": {"town": ["x", "y", "x", "y"]},
        "raw": False,
    },
    "write_preflib": {
        "rankings": BALLOTS,
        "path": FOLDER / "out.toc",
        "kind": "toc",
        "title": "votes",
        "overwrite": True,
    },
}
VOTEKIT = SimpleNamespace(candidates=("a", "b"), ballots=[SimpleNamespace(ranking=[{"a"}, {"b"}], weight=2)])
PREF_VOTING = SimpleNamespace(candidates=[0, 1], cmap={0: "a", 1: "b"}, rankings_counts=([[1, 0]], [2]))
PREFLIBTOOLS = SimpleNamespace(
    alternatives_name={1: "a", 2: "b"}, orders=[((1,), (2,))], multiplicity={((1,), (2,)): 2}
)
OTHERS = {
    "from_votekit": {"profile": VOTEKIT, "unlisted": "free"},
    "from_pref_voting": {"profile": PREF_VOTING, "unlisted": "free"},
    "from_preflibtools": {"instance": PREFLIBTOOLS, "unlisted": "free"},
    "to_votekit": {"rankings": BALLOTS},
    "to_pref_voting": {"rankings": BALLOTS},
    "to_preflibtools": {"rankings": BALLOTS},
}
CALLS = READERS | WRITERS | OTHERS
NEEDS = {"to_votekit": "votekit", "to_pref_voting": "pref_voting", "to_preflibtools": "preflibtools"}


@pytest.fixture(autouse=True)
def _local_data(monkeypatch):
    monkeypatch.chdir(FOLDER)  # any string names a file


def function_of(name):
    short = name.partition(" ")[0]
    pytest.importorskip(NEEDS.get(name, "rankernel"))
    return getattr(interop if name in OTHERS else io, short)


@pytest.mark.parametrize(("name", "argument"), [(name, each) for name, good in CALLS.items() for each in good])
def test_invalid_arguments(name, argument):
    may = (FileNotFoundError, IsADirectoryError) if argument == "path" else ()
    assert not faults(function_of(name), CALLS[name], argument, may=may)


@pytest.mark.parametrize("name", CALLS)
def test_valid_arguments(name):
    function_of(name)(**CALLS[name])


@pytest.mark.parametrize("module", [io, interop])
def test_table_is_complete(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            assert name in CALLS, f"{name} is not in the table"
            missing = set(inspect.signature(thing).parameters) - set(CALLS[name]) - {"options"}
            assert not missing, f"{name} has arguments that are not in the table: {missing}"
