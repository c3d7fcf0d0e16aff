"""Lines of text with one order or one ranked item each: orders such as ``3: a > b = c``, TREC runs, sushi orders."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from rankernel.columns import NEXT, NUMBER, TIED, Column, as_number, long_ranks
from rankernel.errors import RankingError, ReadingWarning, warn
from rankernel.io.layouts import orders_rankings
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.io.table import Table, split_rows
from rankernel.rankings import Rankings

OrderLine = tuple[int, str, str]  # line, order and count

MAX_FACTOR = 10_000  # of fractional weights, which are multiplied to be integers
COMMENT = re.compile(r"(?:^\s*#|\s#(?=\s|$)).*")
COUNT_FIRST = re.compile(r"(?P<count>[0-9]{1,15})(?:\s*[:*×]\s*|\s+x\s+)(?P<order>[^>].*)")  # 3: a > b
COUNT_LAST = re.compile(r"(?P<order>.*\S)\s*\*\s*(?P<count>[0-9]{1,15})")  # a > b * 3
SUSHI = re.compile(r"\s*[0-9]+ 1\s*\n0 [0-9]+(?: [0-9]+)+\s*$", re.MULTILINE)
VOTEKIT = re.compile(r"VoteKit (?:Rank|Score|Preference)Profile\b|Candidates\r?\n[^\n]*\nBallot Index,")
ABIF_NAME = re.compile(r"=\s*([^:\s]+)\s*:\s*\[?([^\]]*)\]?\s*")  # =A:[Ann Ash]
ABIF_ITEM = re.compile(  # A/5, of score 5; then the sign before the next one
    r"\s*(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^>=,]*?))\s*(?:/\s*(?P<score>[0-9]{1,9}(?:\.[0-9]*)?)\s*)?(?P<sign>[>=,]|$)"
)
VOTEKIT_NAME = re.compile(r"\((.*?)(?::(?:str|int|float|bool))?:([^:]*)\)", re.DOTALL)  # (Ann Ash:Ann), (Ann:str:0)
RUN = re.compile(rf"(\S+)\s+(\S+)\s+(\S+)\s+-?[0-9]{{1,9}}\s+({NUMBER.pattern})(?:\s+(\S.*))?", re.IGNORECASE)
JUDGEMENT = re.compile(r"(\S+)\s+(\S+)\s+(\S+)\s+(-?[0-9]{1,9})")


def is_orders(text: str) -> bool:
    """Whether a text is of this format: its first line that is not a comment is an order such as ``3: a > b``."""
    if VOTEKIT.match(text) or SUSHI.match(text):
        return True
    lines = [line for line in text.split("\n", 1000) if line.strip() and not line.lstrip().startswith(("#", "{", "="))]
    return bool(lines) and ">" in lines[0] and not re.search("[,;\\t|]", lines[0])


def is_trec(text: str) -> bool:
    """Whether the first lines are those of a TREC run (``query Q0 document rank score system``) or of judgements."""
    lines = [line.strip() for line in text.split("\n", 20)[:20] if line.strip()]
    found = [RUN.fullmatch(line) or JUDGEMENT.fullmatch(line) for line in lines]
    return bool(lines) and all(match is not None and match[2].upper() in ("Q0", "0") for match in found)


@accepts(
    "items", "unlisted", "repeated", "write_ins", "aliases", "na_values", "fold_case", "blank", "encoding", "max_bytes"
)
def read_text_orders(path: Any, **keywords: Any) -> Rankings:
    """Read a text with one order per line: ``tea > milk = juice``, ``3: A>B>C`` (ABIF), SUSHI data, VoteKit profiles.

    Ballots of a profile that have scores but no ranking are ranked by their scores. Counts are integers, so fractional
    weights of a profile are multiplied by the smallest number that makes them integers, with a warning.

    Parameters
    ----------
    path : path or file object
        The file.
    {options}

    Returns
    -------
    Rankings
        One row per line, with its count. Items that a line of a sushi file does not list are free.
    """
    source = SourceFile.of(path, read_text_orders, keywords)
    if SUSHI.match(source.head):
        names, rows = sushi_lines(source)
        source = source.with_options(items=names, unlisted=source.options.unlisted or "free")
    elif VOTEKIT.match(source.head):
        names, rows = votekit_ballots(source)
        source = source.with_options(items=source.options.items or names)
    else:
        rows = order_lines(source)
    lines = np.array([line for line, _, _ in rows], dtype=np.int64)
    columns = {"order": Column([order for _, order, _ in rows]), "count": Column([count for _, _, count in rows])}
    return orders_rankings(Table(source, columns, lines), ["order"], "count")


def order_lines(source: SourceFile) -> list[OrderLine]:
    """Return line, order and count of each line that is not a comment; those of ABIF may stand for longer names."""
    rows, names = [], {}
    for number, line in enumerate(source.text.splitlines(), start=1):
        text = COMMENT.sub("", line).strip()
        if named := ABIF_NAME.fullmatch(text):
            names[named[1]] = named[2].strip()
        elif text and not text.startswith(("{", "=")):
            match = COUNT_FIRST.fullmatch(text) or COUNT_LAST.fullmatch(text)
            rows.append((number, match["order"] if match else text, match["count"] if match else "1"))
    if source.suffix != ".abif" and not names:
        return rows
    return [(number, abif_order(order, names), count) for number, order, count in rows]


def abif_order(text: str, names: Mapping[str, str]) -> str:
    """Return a cell of a line of ABIF, such as ``A>B=C`` or, ordered by scores, ``A/5,B/3``."""
    found: list[list[tuple[str, str]]] = [[]]
    for match in ABIF_ITEM.finditer(text):
        if name := match["bracketed"] or match["plain"]:
            found[-1].append((names.get(name, name), match["score"]))
        if match["sign"] == ">":
            found.append([])
    if len(found) == 1 and all(score for _, score in found[0]):
        found = [[(name, "") for name in tie] for tie in by_score({name: float(score) for name, score in found[0]})]
    return joined([[name for name, _ in tie] for tie in found])


def by_score(scores: Mapping[str, float]) -> list[list[str]]:
    """Return names by decreasing scores, those with equal ones together."""
    return [[name for name in scores if scores[name] == score] for score in sorted(set(scores.values()), reverse=True)]


def joined(order: Sequence[Sequence[str]]) -> str:
    """Return an order as a cell."""
    return "".join(f"{TIED.join(tie)}{NEXT}" for tie in order if tie)


def sushi_lines(source: SourceFile) -> tuple[tuple[str, ...], list[OrderLine]]:
    """Return the items of a file of the SUSHI data, numbered from 0, and its orders: lines of 0, the length, the items.

    The first line begins with the number of items.
    """
    lines = [(number, line.split()) for number, line in enumerate(source.text.splitlines(), start=1) if line.strip()]
    n_items = int(lines[0][1][0][:9])
    names = source.options.items or tuple(map(str, range(n_items)))
    if len(names) != n_items:
        raise source.error(lines[0][0], f"the file states {n_items} items, but {len(names)} are given")
    rows = []
    for number, words in lines[1:]:
        order = [int(word) for word in words[2:] if re.fullmatch("[0-9]{1,9}", word) and int(word) < n_items]
        if not order or words[1] != str(len(order)) or len(set(order)) != len(words) - 2:
            expected = f"expected 0, the length of the order, and as many different items from 0 to {n_items - 1}"
            raise source.error(number, f"{expected}; got {quoted(' '.join(words))}")
        rows.append((number, joined([[names[item]] for item in order]), "1"))
    return names, rows


# ---------------------------------------------------------------------- VoteKit


def votekit_ballots(source: SourceFile) -> tuple[tuple[str, ...], list[OrderLine]]:
    """Return the candidates of a profile saved by VoteKit, and line, order and count of its ballots."""
    rows = list(split_rows(source, ","))
    heads = [index for index, (_, cells) in enumerate(rows) if "Weight" in cells]
    start = next((index for index, (_, cells) in enumerate(rows) if cells == ["Candidates"]), len(rows))
    names = {}
    for candidate in rows[start + 1][1] if start + 1 < len(rows) else ():
        match = VOTEKIT_NAME.fullmatch(candidate)  # or without a code, before version 3.3
        names[match[2] if match else candidate] = match[1] if match else candidate
    if not heads or not names or len(set(names.values())) < len(names):
        raise source.error(1, "the profile of VoteKit has no different candidates, or no column Weight")
    columns, ballots = rows[heads[0]][1], rows[heads[0] + 1 :]
    records = [dict(zip(columns, cells, strict=False)) for _, cells in ballots]
    weights = integer_weights([record.get("Weight", "") for record in records], source)
    found = []
    for (line, _), record, weight in zip(ballots, records, weights, strict=True):
        cells = [cell for name, cell in record.items() if name.startswith("Ranking_") and cell]
        order = [votekit_tie(cell, names, line, source) for cell in cells]
        if not any(order):  # VoteKit writes 0 for candidates without a score
            scores = {code: as_number(record.get(code, "") or "0") for code in names}
            wrong = [code for code in names if math.isnan(scores[code])]
            if wrong:
                raise source.error(line, f"the score {quoted(record[wrong[0]])} is not a number")
            order = by_score({names[code]: score for code, score in scores.items() if score != 0})
        found.append((line, joined(order), weight))
    return tuple(names.values()), found


def votekit_tie(cell: str, names: Mapping[str, str], line: int, source: SourceFile) -> list[str]:
    """Return the candidates in a cell such as ``{'A', 'B'}`` or ``frozenset({'A'})``."""
    try:
        members = ast.literal_eval(re.sub(r"^(?:frozen)?set\((.*)\)$", r"\1", cell) or "()")
        codes = [str(code) for code in members if code != "~"]
        return sorted(names[code] for code in codes)
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise source.error(line, f"{quoted(cell)} is not a set of candidates of the profile") from None


def integer_weights(cells: Sequence[str], source: SourceFile) -> list[str]:
    """Return weights as integers in the same proportions."""
    try:
        weights = [Fraction(cell) for cell in cells]
    except (ValueError, ZeroDivisionError):
        raise source.error(None, "a ballot of the profile has no weight that is a number") from None
    factor = math.lcm(*(weight.denominator for weight in weights))
    if factor > MAX_FACTOR:
        raise source.error(None, f"the weights are not multiples of 1/{MAX_FACTOR:,}, so they cannot become counts")
    if factor > 1:
        problem = f"{source.name}: weights are fractions and counts are integers, so all are multiplied by {factor}"
        warn(f"{problem}; standard errors and p-values take them for as many voters", ReadingWarning)
    return [str(weight * factor) for weight in weights]


# ---------------------------------------------------------------------- TREC


@accepts("items", "unlisted", "encoding", "max_bytes")
def read_trec(path: Any, **keywords: Any) -> Rankings:
    """Read TREC runs (``query Q0 document rank score system``) or relevance judgements (``query 0 document grade``).

    Parameters
    ----------
    path : path, file object, or list of paths
        The file, or several runs.
    {options}

    Returns
    -------
    Rankings
        One ranking for each query and system, by decreasing score, with the labels ``query`` and ``system``. Documents
        that are not retrieved are free unless ``unlisted="last"`` is given.
    """
    sources = [
        SourceFile.of(each, read_trec, keywords) for each in (path if isinstance(path, list) and path else [path])
    ]
    users, documents, scores, lines = [], [], [], []
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), start=1):
            text = line.strip()
            match = JUDGEMENT.fullmatch(text) or RUN.fullmatch(text)
            if match:
                system = "judgements" if len(match.groups()) == 4 else (match[5] or "").strip()
                users.append(f"{match[1]} {system}")
                documents.append(match[3])
                scores.append(float(match[4]))
                lines.append(f"{source.name}, line {number}")
            elif text:
                raise source.error(number, f"{quoted(text)} is neither a line of a run nor of judgements")
    source, options = sources[0], sources[0].options
    values, unlisted = -np.array(scores), options.unlisted or "free"
    columns, check = (Column(users), Column(documents)), source.check_table_size
    if not users:
        raise source.error(1, "the file is empty")
    if not np.isfinite(values).all():
        raise RankingError(f"{lines[int(np.argmax(~np.isfinite(values)))]}: the score is not finite")
    ranks, names, items, _ = long_ranks(*columns, values, options.items, unlisted, lines.__getitem__, check)
    parts = np.array([name.split(" ", 1) for name in names], dtype=np.str_)
    return Rankings._trusted(ranks, items, None, {"query": parts[:, 0], "system": parts[:, 1]}, FileSource("TREC"))
