"""Lines of text with one order or one ranked item each: orders such as ``3: a > b = c``, TREC runs, sushi orders."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from rankernel.columns import NEXT, NUMBER, TIED, Column, long_ranks
from rankernel.errors import RankingError, ReadingWarning, warn
from rankernel.io.ballots import Orders, rankings_of
from rankernel.io.layouts import orders_rankings
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.io.table import Table, split_rows
from rankernel.rankings import Rankings, Unlisted

MAX_FACTOR = 10_000  # of fractional weights, which are multiplied to be integers
COUNTED = re.compile(r"\s*([0-9]{1,15})\s*[:*]\s*(.*)")
SUSHI = re.compile(r"\s*[0-9]+ 1\s*\n0 [0-9]+(?: [0-9]+)+\s*$", re.MULTILINE)
VOTEKIT = re.compile(r"VoteKit (?:Rank|Score|Preference)Profile\b|Candidates\r?\n[^\n]*\nBallot Index,")
ABIF_NAME = re.compile(r"=\s*([^:\s]+)\s*:\s*\[?([^\]]*)\]?\s*")  # =A:[Ann Ash]
ABIF_ITEM = re.compile(r"\s*\[?(.*?)\]?\s*(?:/\s*([0-9]{1,9}(?:\.[0-9]*)?)\s*)?")  # A/5, of score 5
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
        n_items = int(source.text.split(maxsplit=1)[0])
        names = source.options.items or tuple(map(str, range(n_items)))
        return sushi_rankings(source, names, source.options.unlisted or "free")
    if VOTEKIT.match(source.head):
        names, rows = votekit_ballots(source)
        source = source.with_options(items=source.options.items or names)
    else:
        rows = order_lines(source)
    lines = np.array([line for line, _, _ in rows], dtype=np.int64)
    columns = {"order": Column([order for _, order, _ in rows]), "count": Column([count for _, _, count in rows])}
    return orders_rankings(Table(source, columns, lines), ["order"], "count")


def order_lines(source: SourceFile) -> list[tuple[int, str, str]]:
    """Return line, order and count of each line that is not a comment; those of ABIF may stand for longer names."""
    rows, names = [], {}
    for number, line in enumerate(source.text.splitlines(), start=1):
        named = ABIF_NAME.fullmatch(line.strip())
        if named:
            names[named[1]] = named[2].strip()
        elif line.strip() and not line.lstrip().startswith(("#", "{", "=")):
            match = COUNTED.fullmatch(line)
            rows.append((number, match[2] if match else line.strip(), match[1] if match else "1"))
    if source.suffix != ".abif" and not names:
        return rows
    return [(number, abif_order(order, names), count) for number, order, count in rows]


def abif_order(text: str, names: Mapping[str, str]) -> str:
    """Return a cell of a line of ABIF, such as ``A>B=C`` or, ordered by scores, ``A/5,B/3``."""
    ties = [[ABIF_ITEM.fullmatch(item) for item in re.split("[=,]", part)] for part in text.split(">")]
    found = [[(match[1], match[2]) for match in tie if match and match[1]] for tie in ties]
    if len(found) == 1 and all(score for _, score in found[0]):
        by_score: dict[float, list[tuple[str, Any]]] = {}
        for name, score in found[0]:
            by_score.setdefault(float(score), []).append((name, score))
        found = [by_score[score] for score in sorted(by_score, reverse=True)]
    return joined([[names.get(name, name) for name, _ in tie] for tie in found])


def joined(order: Sequence[Sequence[str]]) -> str:
    """Return an order as a cell."""
    return "".join(f"{TIED.join(tie)}{NEXT}" for tie in order if tie)


# ---------------------------------------------------------------------- SUSHI data


def sushi_rankings(source: SourceFile, items: tuple[str, ...], unlisted: Unlisted) -> Rankings:
    """Return the orders of a file of the SUSHI data; lines are ``0 10`` and then ten items, numbered from 0."""
    rows = read_numbers(source)
    first_line, head = rows[0]
    if head[:1] != [len(items)]:
        problem = f"expected a line that begins with the number of items, {len(items)}; got {head}"
        raise source.error(first_line, problem)
    ballots = []
    for line, numbers in rows[1:]:
        if len(numbers) < 3 or numbers[1] != len(numbers) - 2:
            raise source.error(line, f"expected 0, the length of the order, and that many items; got {numbers}")
        listed = numbers[2:]
        if len(set(listed)) != len(listed) or not 0 <= min(listed) <= max(listed) < len(items):
            problem = f"an order names items from 0 to {len(items) - 1}, each at most once"
            raise source.error(line, f"{problem}; got {listed}")
        ballots.append((line, 1, [[number + 1] for number in listed]))
    ranks = Orders.of(ballots).ranks(len(items), source, "item")
    return rankings_of(source.with_options(unlisted=unlisted), ranks, items, FileSource("orders of the SUSHI data"))


def read_numbers(source: SourceFile) -> list[tuple[int, list[int]]]:
    """Return the line number and the integers of each line that is not empty; an empty file is an error."""
    rows = []
    for line, text in enumerate(source.text.splitlines(), start=1):
        try:
            numbers = [int(word) for word in text.split()]
        except ValueError:
            raise source.error(line, f"expected integers; got {quoted(text)}") from None
        if numbers:
            rows.append((line, numbers))
    if not rows:
        raise source.error(1, "the file is empty")
    return rows


# ---------------------------------------------------------------------- VoteKit


def votekit_ballots(source: SourceFile) -> tuple[tuple[str, ...], list[tuple[int, str, str]]]:
    """Return the candidates of a profile saved by VoteKit, and line, order and count of its ballots."""
    rows = list(split_rows(source, ","))
    heads = [index for index, (_, cells) in enumerate(rows) if "Weight" in cells]
    start = next((index for index, (_, cells) in enumerate(rows) if cells == ["Candidates"]), len(rows))
    names = {}
    for candidate in rows[start + 1][1] if start + 1 < len(rows) else ():
        name, *_, code = candidate.removeprefix("(").removesuffix(")").split(":")
        names[code] = name
    if not heads or not names or len(set(names.values())) < len(names):
        raise source.error(1, "the profile of VoteKit has no different candidates, or no column Weight")
    columns, ballots = rows[heads[0]][1], rows[heads[0] + 1 :]
    records = [dict(zip(columns, cells, strict=False)) for _, cells in ballots]
    weights = integer_weights([record.get("Weight", "") for record in records], source)
    found = []
    for (line, _), record, weight in zip(ballots, records, weights, strict=True):
        cells = [cell for name, cell in record.items() if name.startswith("Ranking_") and cell]
        order = [votekit_tie(cell, names, line, source) for cell in cells]
        if not any(order):
            order = score_order({names[code]: record.get(code, "") for code in names}, line, source)
        found.append((line, joined(order), weight))
    return tuple(names.values()), found


def votekit_tie(cell: str, names: Mapping[str, str], line: int, source: SourceFile) -> list[str]:
    """Return the candidates in a cell such as ``{'A', 'B'}`` or ``frozenset({'A'})``."""
    match = re.fullmatch(r"(?:frozenset\(|set\()?\{?(.*?)\}?\)?", cell)
    codes = [code.strip(" '\"") for code in match[1].split(", ")] if match else []
    codes = [code for code in codes if code not in ("", "~")]
    if (
        not cell.endswith(("}", ")"))
        or not cell.startswith(("{", "f", "s"))
        or any(code not in names for code in codes)
    ):
        raise source.error(line, f"{quoted(cell)} is not a set of candidates of the profile")
    return [names[code] for code in codes]


def score_order(scores: Mapping[str, str], line: int, source: SourceFile) -> list[list[str]]:
    """Return candidates by decreasing scores; VoteKit writes 0 for candidates without a score."""
    numbers: dict[float, list[str]] = {}
    for name, text in scores.items():
        if text and not NUMBER.fullmatch(text):
            raise source.error(line, f"the score {quoted(text)} is not a number")
        numbers.setdefault(float(text or 0), []).append(name)
    return [numbers[number] for number in sorted(numbers, reverse=True) if number != 0]


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
