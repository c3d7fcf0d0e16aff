"""Cast vote records of ranked elections: exports with a mark per candidate and rank, and files of Scottish councils.

Dominion (.csv and .json), ClearBallot (.csv), Hart (.xml) and the NIST common data format (.json and .xml) become
tables with one column per position, in which several candidates at one position are joined by ``TIED``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import PurePath
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from rankernel.columns import TIED, Column
from rankernel.errors import RankingError
from rankernel.io.ballots import Orders, rankings_of, read_ballots
from rankernel.io.layouts import chosen_contest, finished, table_rankings
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.io.table import Row, Table, read_table, split_rows, table_of_rows, text_table
from rankernel.rankings import Rankings, check_items

EXPORTS = (".json", ".xml", ".zip")
MAX_RANK, MAX_GAP = 1000, 20  # beyond this rank, longer gaps between the ranks of a ballot are shortened


@accepts(
    *("contest", "items", "count", "label_columns", "ignore", "unlisted", "skipped", "repeated", "overvotes"),
    *("write_ins", "aliases", "separator", "na_values", "fold_case", "blank", "delimiter", "encoding", "max_bytes"),
)
def read_cvr(path: Any, **keywords: Any) -> Rankings:
    """Read one contest of the cast vote record of a ranked election.

    The formats are tables with a column for each choice (``City Council Choice 1 of 4``, ``candidate_rank1``), as
    :func:`read_csv` reads them; exports with a 0 or 1 for every candidate and rank, of Dominion (header lines of
    contests, choices and columns) and ClearBallot; the JSON of Dominion (``CvrExport.json`` with its manifests, in a
    folder or a .zip) and of the NIST common data format (also as XML), with adjudicated ballots; folders of XML files
    of Hart; and the .csv of Scottish councils. Columns that name no position are ignored, and ``source`` lists them.
    The JSON of Dominion gives the labels Precinct, Batch, CountingGroup and Tabulator, the common data format and Hart
    the label Precinct.

    Parameters
    ----------
    path : path or file object
        The file, archive or folder.
    {options}

    Returns
    -------
    Rankings
        The rankings with ``labels``; ``source`` describes how the file was read, and the repairs.

    Examples
    --------
    >>> from io import StringIO
    >>> text = '''Cast Vote Record,Precinct,Mayor Choice 1 of 2,Mayor Choice 2 of 2,Clerk Choice 1 of 1
    ... 1,North,Ann,Bob,Cy
    ... 2,North,undervote,undervote,Cy
    ... 3,South,overvote,Bob,Dee
    ... 4,South,Bob,undervote,Cy
    ... '''
    >>> read_cvr(StringIO(text), contest="Mayor", overvotes="skip")
    Rankings: 3 rankings of 2 items (3 full)
      Ann > Bob
      Bob > Ann
      Bob > Ann
      read as a cast vote record; title 'Mayor'; ignored: Cast Vote Record, Precinct, Clerk Choice 1 of 1
      repaired: 1 overvoted cell, 1 blank ballot dropped, 'undervote' read as missing (3 cells)
    """
    source = SourceFile.of(path, read_cvr, keywords)
    if source.suffix in EXPORTS or source.is_folder:
        return read_export(source)
    if source.suffix in ("", ".csv", ".tsv", ".txt") and is_export(source.head):
        return read_scottish(source) if is_scottish(source.head) else read_marks(source)
    table = read_table(source)
    table.check_columns()
    return table_rankings(table, "positions")


def is_export(text: str) -> bool:
    """Whether a text is an export of a voting system with header lines, or a file of a Scottish council."""
    return bool(is_scottish(text) or HEADINGS.match(text) or CLEAR_BALLOT_COLUMN.search(text.split("\n", 1)[0]))


# ---------------------------------------------------------------------- tables with a 0 or 1 per candidate and rank

HEADINGS = re.compile(r'(?:[^\n]*\n){1,3}?(?:="|")*CvrNumber\b')  # election, contests, choices, then the columns
CONTEST_NUMBERS = re.compile(r"\s*\((?:Vote For|Number of (?:positions|ranks))\s*=[^()]*\)\s*$", re.IGNORECASE)
CHOICE = re.compile(r"(.*?)\s*\(([0-9]{1,4})\)", re.DOTALL)
SEATS = "(?:Vote For|Number of Winners)"
CLEAR_BALLOT_COLUMN = re.compile(rf"\bChoice_[0-9]+_[0-9]+:[^\n]*:{SEATS}")
CLEAR_BALLOT = re.compile(rf"Choice_[0-9]+_[0-9]+:(.*):([0-9]{{1,4}}):{SEATS} [0-9]+:(.*):[^:]*", re.DOTALL)
QUOTED_FORMULA = re.compile(r'="(.*)"', re.DOTALL)  # keeps a spreadsheet from converting a cell to a number or date
ABSENT, UNMARKED, MARKED, INVALID = range(4)
MARKS = {"": ABSENT, "0": UNMARKED, "1": MARKED}


class Choice(NamedTuple):
    """A column of marks: its name, the candidate and the rank."""

    column: str
    name: str
    rank: int


def read_marks(source: SourceFile) -> Rankings:
    """Return the ballots of one contest; those without the contest, whose cells are all empty, are left out."""
    if HEADINGS.match(source.head):
        table, found = read_dominion(source)
    else:
        table, found = text_table(source), {}
        for name in table.columns:
            if match := CLEAR_BALLOT.fullmatch(name):
                found.setdefault(match[1], []).append(Choice(name, match[3].strip(), int(match[2])))
    table.check_columns()
    contests = {name: choices for name, choices in found.items() if max(each.rank for each in choices) > 1}
    title = chosen_contest(list(contests), source)
    choices = contests[title]
    columns = [table.columns[choice.column] for choice in choices]
    marks = np.stack([column.mapped(lambda text: MARKS.get(text, INVALID), np.int8) for column in columns], axis=1)
    if (marks == INVALID).any():
        row, number = divmod(int(np.argmax(marks == INVALID)), len(choices))
        cell, choice = columns[number][row], choices[number]
        raise table.error(row, f"{quoted(choice.name)} at rank {choice.rank} holds {quoted(cell)}; a mark is 0 or 1")
    present = (marks != ABSENT).any(axis=1)
    used = {choice.column for each in found.values() for choice in each} | source.options.named_columns.keys()
    ignored = [name for name in table.columns if name not in used and not name.isdigit()]
    ignored += [name for name in contests if name != title]
    candidates = dict.fromkeys(choice.name for choice in choices)
    rows = np.flatnonzero(present)
    ballots: list[list[tuple[int, str]]] = [[] for _ in rows]
    for row, number in np.argwhere(marks[rows] == MARKED).tolist():
        ballots[row].append((choices[number].rank, choices[number].name))
    votes = ballot_columns(ballots, source)
    ranks, items, repairs = read_ballots(votes, source, candidates, lambda row, *parts: table.error(rows[row], *parts))
    count = source.options.count or ""
    about = FileSource("a cast vote record", title, ignored=tuple(ignored), count=count, repairs=repairs)
    return finished(table, ranks, items, about, rows=rows)


def read_dominion(source: SourceFile) -> tuple[Table, dict[str, list[Choice]]]:
    """Return the cells of an export, with columns of marks named by their indices, and the columns of each contest."""
    rows = split_rows(source, source.options.delimiter.replace("auto", ","))
    headings: list[Row] = []
    for line, cells in islice(rows, 4):
        headings.append((line, [plain_text(cell) for cell in cells]))
        if headings[-1][1][0] == "CvrNumber":
            break
    if len(headings) < 3 or headings[-1][1][0] != "CvrNumber":
        raise source.error(1, "two lines, of contests and of choices, must precede the line that begins with CvrNumber")
    (_, titles), (_, choices), (line, columns) = headings[-3:]
    if not len(titles) == len(choices) == len(columns):
        sizes = ", ".join(str(len(row)) for row in (titles, choices, columns))
        raise source.error(line, f"the lines of contests, choices and columns have {sizes} cells; they must be equal")
    first = next((index for index, title in enumerate(titles) if title), len(titles))
    names = [*columns[:first], *(str(index) for index in range(first, len(columns)))]
    table = table_of_rows(chain([(line, names)], rows), source)
    found: dict[str, list[Choice | None]] = {}
    for index in range(first, len(titles)):
        match = CHOICE.fullmatch(choices[index])
        stated = Choice(str(index), match[1], int(match[2])) if match else None
        found.setdefault(CONTEST_NUMBERS.sub("", titles[index]), []).append(stated)
    ranked = {name: [each for each in stated if each] for name, stated in found.items() if None not in stated}
    plain = {name: Column.of_codes(each.codes, map(plain_text, each.texts)) for name, each in table.columns.items()}
    return replace(table, columns=plain), ranked


def plain_text(cell: str) -> str:
    """Return a cell without surrounding spaces and without the signs that protect it from a spreadsheet."""
    cell = cell.strip()
    formula = QUOTED_FORMULA.fullmatch(cell)
    return formula[1].strip() if formula else cell


# ---------------------------------------------------------------------- JSON and XML


@dataclass
class Contest:
    """A contest: for each ballot its number, its labels and its marks, each with rank and candidate."""

    ranked: bool = False
    candidates: dict[str, None] = field(default_factory=dict)
    ballots: list[tuple[int, tuple[str, ...], list[tuple[int, str]]]] = field(default_factory=list)

    def add(self, number: int, labels: tuple[str, ...], marks: list[tuple[int, str]]) -> None:
        """Add a ballot."""
        for rank, _ in marks:
            if rank < 1:
                raise ValueError(f"a mark has the rank {rank}")
            self.ranked |= rank > 1
        self.candidates |= dict.fromkeys(name for _, name in marks)
        self.ballots.append((number, labels, marks))


Contests = dict[str, Contest]
LABELS = ("Precinct", "Batch", "CountingGroup", "Tabulator")


def read_export(source: SourceFile) -> Rankings:
    """Return the ballots of one contest in a file, folder or archive of JSON or XML documents."""
    contests: Contests = {}
    documents = dict(read_documents(source))
    try:
        names = {kind: manifest_names(documents, kind) for kind in MANIFESTS}
        for content in documents.values():
            if "Sessions" in content:
                add_dominion(content, names, contests)
            elif "CVR" in content:
                add_nist(content, contests)
            elif "Contests" in content:
                add_hart(content, contests)
        for entry in manifest_entries(documents, "Contest"):
            title = names["Contest"].get(entry.get("Id"))
            if title in contests and int(entry.get("NumOfRanks", 0)) > 1:
                contests[title].ranked = True
        for entry in manifest_entries(documents, "Candidate"):
            title = names["Contest"].get(entry.get("ContestId"))
            if title in contests:
                contests[title].candidates.setdefault(names["Candidate"][entry["Id"]])
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        if isinstance(error, RankingError):
            raise
        problem = f"the structure is not that of a cast vote record ({type(error).__name__}: {quoted(error)[1:-1]})"
        raise source.error(None, problem) from None
    ranked = [name for name, contest in contests.items() if contest.ranked]
    title = chosen_contest(list(contests) if source.options.contest or not ranked else ranked, source)
    contest = contests[title]
    lines = np.array([number for number, _, _ in contest.ballots], dtype=np.int64)
    texts = zip(*(texts for _, texts, _ in contest.ballots), strict=True)
    columns = {name: Column(list(values)) for name, values in zip(LABELS, texts, strict=False) if any(values)}
    table = Table(source, columns, lines)
    table.check_columns()
    votes = ballot_columns([marks for _, _, marks in contest.ballots], source)
    ranks, items, repairs = read_ballots(votes, source, contest.candidates, table.error)
    wanted = [name for name in columns if name not in source.options.label_columns]
    return finished(table, ranks, items, FileSource("a cast vote record", title, repairs=repairs), wanted)


def ballot_columns(all_marks: list[list[tuple[int, str]]], source: SourceFile) -> list[Column]:
    """Return the marks of ballots, each a rank and a candidate, as one column per position."""
    if max((rank for marks in all_marks for rank, _ in marks), default=1) > MAX_RANK:
        skipped = source.options.skipped
        all_marks = [shortened(marks, max(MAX_GAP, skipped if isinstance(skipped, int) else 0)) for marks in all_marks]
    n_ranks = max((rank for marks in all_marks for rank, _ in marks), default=1)
    source.check_table_size(len(all_marks), n_ranks)
    cells = [[""] * len(all_marks) for _ in range(n_ranks)]
    for row, marks in enumerate(all_marks):
        for rank, name in dict.fromkeys(marks):
            cells[rank - 1][row] += name if not cells[rank - 1][row] else f"{TIED}{name}"
    return [Column(texts) for texts in cells]


def shortened(marks: list[tuple[int, str]], gap: int) -> list[tuple[int, str]]:
    """Return marks with smaller ranks in the same order, at most ``gap`` skipped ones between two.

    Examples
    --------
    >>> shortened([(7, "Ann"), (9000, "Bob"), (9001, "Cy")], 3)
    [(4, 'Ann'), (8, 'Bob'), (9, 'Cy')]
    """
    new, before, last = {}, 0, 0
    for rank in sorted({rank for rank, _ in marks}):
        last += min(rank - before, gap + 1)
        new[rank], before = last, rank
    return [(new[rank], name) for rank, name in marks]


def read_documents(source: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the documents of a file and its manifests, of a folder, or of an archive."""
    if source.suffix == ".zip" or source.is_folder:
        raw = list(source.members(".json", ".xml"))
    else:
        beside = [source.path.with_name(f"{kind}Manifest.json") for kind in MANIFESTS] if source.file is None else []
        raw = [(source.path.name, source.raw)]
        raw += [(path.name, SourceFile(path, source.options).raw) for path in beside if path.is_file()]
    if not raw:
        raise source.error(None, "the folder or archive has no .json or .xml file; name the file to read")
    for name, content in raw:
        document = SourceFile(PurePath(name).name)
        if name.lower().removesuffix(".gz").endswith(".xml") or (len(raw) == 1 and source.suffix == ".xml"):
            yield name, xml_document(content, document)
            continue
        try:
            value = json.loads(document.decoded(content, "utf-8"))
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None)
            problem = f"this is not JSON ({getattr(error, 'msg', 'nested too deeply, or a number is too long')})"
            raise document.error(line, problem) from None
        if isinstance(value, dict):
            yield name, value
        elif len(raw) == 1:
            raise document.error(1, "a cast vote record is a JSON object")


def xml_document(raw: bytes, source: SourceFile) -> dict[str, Any]:
    """Return an XML document as nested dictionaries of lists, by the names of the elements."""
    if b"<!DOCTYPE" in raw or b"<!ENTITY" in raw:
        raise source.error(None, "a document type with entities is not read")
    try:
        root = ET.fromstring(raw)
    except (ET.ParseError, ValueError) as error:
        raise source.error(None, f"this is not XML ({error})") from None

    def value(element: ET.Element) -> Any:
        if not len(element) and "ObjectId" not in element.attrib:
            return " ".join((element.text or "").split())
        found: dict[str, Any] = {"@id": element.attrib.get("ObjectId")}
        for child in element:
            found.setdefault(child.tag.rpartition("}")[2], []).append(value(child))
        return found

    try:
        content = value(root)
    except RecursionError:
        raise source.error(None, "the elements are nested too deeply") from None
    return content if isinstance(content, dict) else {}


def first(node: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """Return a member of a node, of XML the first one of this name."""
    value = node.get(key, default)
    return (value or [default])[0] if isinstance(value, list) else value


def several(node: Mapping[str, Any], key: str) -> Iterable[Any]:
    """Return the members of a node of this name, of JSON a list."""
    value = node.get(key)
    return value if isinstance(value, list) else () if value is None else (value,)


# ---------------------------------------------------------------------- Dominion

MANIFESTS = ("Contest", "Candidate", "PrecinctPortion", "CountingGroup", "Tabulator")
VOIDED = 7  # outstack condition of contests that do not count


def manifest_entries(documents: Mapping[str, Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Return the entries of the manifests of one kind."""
    manifest = f"{kind}Manifest".lower()
    found = [content for name, content in documents.items() if PurePath(name).stem.lower() == manifest]
    return [entry for content in found for entry in content["List"]]


def manifest_names(documents: Mapping[str, Mapping[str, Any]], kind: str) -> dict[Any, str]:
    """Return the names in a manifest by their numbers; contests of the same name have their numbers appended."""
    names = {entry["Id"]: str(entry["Description"]).strip() for entry in manifest_entries(documents, kind)}
    if kind != "Contest":
        return names
    counts = Counter(names.values())
    return {number: name if counts[name] == 1 else f"{name} ({number})" for number, name in names.items()}


def add_dominion(content: Mapping[str, Any], names: Mapping[str, Mapping[Any, str]], contests: Contests) -> None:
    """Add the ballots of an export, of adjudicated ballots where they exist.

    Ambiguous marks are dropped. Marks that are no vote are used, because some exports say so of all lower ranks.
    """

    def label(kind: str, number: Any) -> str:
        return names[kind].get(number, "" if number is None else str(number))

    for number, session in enumerate(content["Sessions"], start=1):
        versions = [session[name] for name in ("Modified", "Original") if session.get(name)]
        if not versions:
            continue
        current = next((version for version in versions if version.get("IsCurrent")), versions[-1])
        labels = (
            label("PrecinctPortion", current.get("PrecinctPortionId")),
            str(session.get("BatchId", "")),
            label("CountingGroup", session.get("CountingGroupId")),
            label("Tabulator", session.get("TabulatorId")),
        )
        for card in current.get("Cards", (current,)):
            for contest in card["Contests"]:
                if VOIDED in contest.get("OutstackConditionIds", ()):
                    continue
                name = names["Contest"].get(contest["Id"], f"contest {contest['Id']}")
                marks = [
                    (int(mark["Rank"]), names["Candidate"].get(mark["CandidateId"], f"candidate {mark['CandidateId']}"))
                    for mark in contest["Marks"]
                    if not mark.get("IsAmbiguous", False)
                ]
                contests.setdefault(name, Contest()).add(number, labels, marks)


# ---------------------------------------------------------------------- NIST and Hart


def add_nist(content: Mapping[str, Any], contests: Contests) -> None:
    """Add the ballots of a report of the common data format, of the current version of each ballot.

    The older files of Unisyn name a candidate by the position of the mark: ``Position`` 135 is ``Candidate_135``.
    """
    titles: dict[str, str] = {}
    choices: dict[str, str] = {}
    people: dict[str, str] = {}
    for election in several(content, "Election"):
        people |= {each["@id"]: str(first(each, "Name", each["@id"])) for each in several(election, "Candidate")}
        for contest in several(election, "Contest"):
            titles[contest["@id"]] = str(first(contest, "Name", contest["@id"])).strip()
            for choice in several(contest, "ContestSelection"):
                ids = [each for text in several(choice, "CandidateIds") for each in str(text).split()]
                named = " / ".join(people.get(each, each) for each in ids) or first(choice, "Selection")
                if named:
                    choices[choice["@id"]] = str(named)
                elif first(choice, "IsWriteIn") in (True, "true"):
                    choices[choice["@id"]] = "write-in"
                if ids:
                    contests.setdefault(titles[contest["@id"]], Contest()).candidates.setdefault(str(named))
    units = {unit["@id"]: str(first(unit, "Name", unit["@id"])) for unit in several(content, "GpUnit")}
    for number, record in enumerate(several(content, "CVR"), start=1):
        precinct = str(first(record, "BallotStyleUnitId", ""))
        for contest in current_contests(record):
            contest_id = first(contest, "ContestId")
            marks = []
            for selection in several(contest, "CVRContestSelection"):
                if "needs-adjudication" in several(selection, "Status"):
                    continue
                selected = first(selection, "ContestSelectionId")
                for position in several(selection, "SelectionPosition") or [{}]:
                    counted = first(position, "IsAllocable", "yes")
                    marked = first(position, "HasIndication", "yes") == "yes" and counted != "no"
                    if marked and (selected is not None or counted == "yes"):
                        rank = first(position, "Rank", first(selection, "Rank", 1))
                        candidate = people.get(f"Candidate_{first(position, 'Position')}")
                        other = "write-in" if selected is None or "CVRWriteIn" in position else str(selected)
                        marks.append((int(rank), choices.get(selected, candidate or other)))
            title = titles.get(contest_id, str(contest_id))
            contests.setdefault(title, Contest()).add(number, (units.get(precinct, precinct),), marks)


def current_contests(record: Mapping[str, Any]) -> list[Any]:
    """Return the contests of the current snapshot of a ballot, or of all snapshots if each has other contests."""
    snapshots = [(each.get("@id"), list(several(each, "CVRContest"))) for each in several(record, "CVRSnapshot")]
    found = [contest for _, contests in snapshots for contest in contests]
    if len({first(contest, "ContestId") for contest in found}) == len(found):
        return found
    current = first(record, "CurrentSnapshotId")
    return next((contests for name, contests in snapshots if name == current), snapshots[-1][1])


def add_hart(content: Mapping[str, Any], contests: Contests) -> None:
    """Add one ballot: the value of an option has a digit for each rank, which is 1 if the option is marked there."""
    precinct = str(first(first(content, "PrecinctSplit", {}) or {}, "Name", ""))
    for contest in several(first(content, "Contests", {}) or {}, "Contest"):
        marks = []
        for option in several(first(contest, "Options", {}) or {}, "Option"):
            name = first(option, "Name") or "write-in"
            marks += [(rank, name) for rank, mark in enumerate(first(option, "Value", ""), start=1) if mark == "1"]
        entry = contests.setdefault(first(contest, "Name"), Contest())
        entry.add(len(entry.ballots) + 1, (precinct,), marks)


# ---------------------------------------------------------------------- Scottish councils

SCOTTISH = re.compile(r"\s*(\"?)[0-9]{1,6}\1\s*,\s*(\"?)[0-9]{1,6}\2\s*,*\s*\r?\n")
CANDIDATE = re.compile(r"Candidate\s+([0-9]{1,6})", re.IGNORECASE)
INTEGER = re.compile("[0-9]{1,18}")


def is_scottish(text: str) -> bool:
    """Whether a text is a file of a Scottish council: it begins with two numbers and names numbered candidates."""
    return bool(SCOTTISH.match(text) and re.search(r"^\W*Candidate\s+1\b", text, re.IGNORECASE | re.MULTILINE))


def read_scottish(source: SourceFile) -> Rankings:
    """Return the ballots of a Scottish council: numbers of candidates and seats, counted ballots, then the names."""
    rows = [(line, trimmed(cells)) for line, cells in split_rows(source, ",", strict=False)]
    rows = [(line, cells) for line, cells in rows if cells]
    n_items, seats = map(int, rows[0][1])
    rest = rows[1:]
    first = next((index for index, (_, cells) in enumerate(rest) if CANDIDATE.fullmatch(cells[0])), len(rest))
    items, title = scottish_names(rest[first:], n_items, source)
    ballots = []
    for line, cells in rest[:first]:
        for cell in cells:
            if not INTEGER.fullmatch(cell):
                raise source.error(line, f"{quoted(cell)} is not a number; a ballot is a count and candidates")
        count, *order = map(int, cells)
        if count < 1:
            raise source.error(line, "the count of the ballot is 0; it must be at least 1")
        ballots.append((line, count, [[number] for number in order]))
    orders = Orders.of(ballots)
    ranks = orders.ranks(n_items, source, "candidate")
    about = FileSource("a Scottish council election", title, seats)
    return rankings_of(source, ranks, items, about, orders.counts)


def trimmed(cells: list[str]) -> list[str]:
    """Return the cells of a row without surrounding spaces and without empty cells at its end."""
    stripped = [cell.strip() for cell in cells]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def scottish_names(rows: list[tuple[int, list[str]]], n_items: int, source: SourceFile) -> tuple[tuple[str, ...], str]:
    """Return the names of the candidates in the order of their numbers, and the ward."""
    names: dict[int, str] = {}
    title = ""
    for line, cells in rows:
        candidate = CANDIDATE.fullmatch(cells[0])
        if candidate and len(cells) > 1:
            number = int(candidate[1])
            if number in names or not 1 <= number <= n_items:
                problem = f"candidate {number} is named twice, or is not one of the {n_items} candidates"
                raise source.error(line, problem)
            names[number] = re.sub('""+$', "", cells[1])  # of a name that is quoted twice
        elif candidate or title:
            raise source.error(line, "the lines after the ballots must be candidates with their names, then the ward")
        else:
            title = ", ".join(cells).strip('" ')  # some files quote the ward twice
    if len(names) < n_items:
        raise source.error(None, f"the first line states {n_items} candidates, but {len(names)} are named")
    with source.named_in_errors():
        return check_items(names[number] for number in range(1, n_items + 1)), title
