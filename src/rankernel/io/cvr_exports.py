"""Exports of voting systems with a mark for each candidate and rank: Dominion (.csv, .json) and NIST (.json)."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankernel._utils import Mask
from rankernel._utils.checks import printable
from rankernel.errors import RankingError
from rankernel.io.text_files import SourceFile
from rankernel.io.text_table import Codes, TextTable, split_rows, split_table, table_of

SEPARATOR = "\x1f"  # between the candidates of an overvote; part of no name

# ---------------------------------------------------------------------- Dominion, .csv: a 0 or 1 per candidate and rank

HEADINGS = re.compile(r'(?:[^\n]*\n){1,3}?(?:="|")*CvrNumber\b')  # election, contests, choices, then the columns
CONTEST_NUMBERS = re.compile(r"\s*\((?:Vote For|Number of (?:positions|ranks))\s*=[^()]*\)\s*$", re.IGNORECASE)
CHOICE = re.compile(r"(.*?)\s*\(([0-9]{1,4})\)", re.DOTALL)
QUOTED_FORMULA = re.compile(r'="(.*)"', re.DOTALL)  # keeps a spreadsheet from converting a cell to a number or date
ABSENT, UNMARKED, MARKED, INVALID = range(4)
MARKS = {"": ABSENT, "0": UNMARKED, "1": MARKED}


class Choice(NamedTuple):
    """A column of marks: its index, the candidate and the rank."""

    column: int
    name: str
    rank: int


@dataclass(frozen=True)
class DominionTable:
    """An export.

    Attributes
    ----------
    table : TextTable
        The cells; the columns of marks are named by their indices.
    contests : dict
        The columns of each ranked contest.
    """

    table: TextTable
    contests: dict[str, list[Choice]]

    def candidates(self, contest: str) -> tuple[str, ...]:
        """Return the candidates of a contest, in the order of the columns."""
        return tuple(dict.fromkeys(choice.name for choice in self.contests[contest]))

    def ignored(self, contest: str, named: Collection[str]) -> tuple[str, ...]:
        """Return the columns and ranked contests that are not used."""
        columns = [name for name in self.table.columns if not name.isdigit() and name not in named]
        return (*columns, *(name for name in self.contests if name != contest))

    def ballots(self, contest: str) -> TextTable:
        """Return a contest with one column per position, and the named columns; several marks of a position are joined.

        Ballots without the contest, whose cells are all empty, are left out.
        """
        choices = self.contests[contest]
        cells = self.table.select([choice.column for choice in choices])
        marks = np.array([MARKS.get(text, INVALID) for text in cells.texts], dtype=np.int8)[cells.codes]
        if (marks == INVALID).any():
            row, column = divmod(int(np.argmax(marks == INVALID)), len(choices))
            cell, choice = cells.texts[cells.codes[row, column]], choices[column]
            problem = f"{printable(choice.name)!r} at rank {choice.rank} holds {printable(cell)!r}; a mark is 0 or 1"
            raise cells.error(row, problem)
        present = (marks != ABSENT).any(axis=1)
        codes, texts = position_codes(marks[present] == MARKED, choices)
        named = self.table.source.options.named_columns
        others = self.table.select([self.table.index(name, argument) for name, argument in named.items()])
        return replace(
            self.table,
            columns=(*named, *(f"rank {position + 1}" for position in range(codes.shape[1]))),
            texts=[*others.texts, *texts],
            codes=np.hstack([others.codes[present], codes + len(others.texts)]).astype(np.int32),
            lines=self.table.lines[present],
        )


def is_dominion(text: str) -> bool:
    """Whether a text is such an export: after at most three lines, the columns are named, CvrNumber first."""
    return bool(HEADINGS.match(text))


def read_dominion(source: SourceFile) -> DominionTable:
    """Return the content of an export."""
    text, delimiter = source.text, source.options.delimiter.replace("auto", ",")
    headings: list[tuple[int, list[str]]] = []
    for number, cells in islice(split_rows(text, delimiter, source), 4):
        headings.append((number, [plain_text(cell) for cell in cells]))
        if headings[-1][1][0] == "CvrNumber":
            break
    if len(headings) < 3 or headings[-1][1][0] != "CvrNumber":
        raise source.error(1, "two lines, of contests and of choices, must precede the line that begins with CvrNumber")
    (_, titles), (_, choices), (line, columns) = headings[-3:]
    if not len(titles) == len(choices) == len(columns):
        sizes = ", ".join(str(len(row)) for row in (titles, choices, columns))
        raise source.error(line, f"the lines of contests, choices and columns have {sizes} cells; they must be equal")
    n_others = next((index for index, title in enumerate(titles) if title), len(titles))
    names = [*columns[:n_others], *(str(index) for index in range(n_others, len(columns)))]
    # The header lines are replaced by one line of names at the same position, so that line numbers stay right.
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(names)
    body = text[end_of_line(text, line) :]
    plain = "\n" * (line - 1) + header.getvalue() + body
    table = split_table(plain, source.with_options(delimiter=delimiter, separator=SEPARATOR))
    table = replace(table, texts=[plain_text(cell) for cell in table.texts])
    return DominionTable(table, ranked_contests(titles, choices, n_others))


def plain_text(cell: str) -> str:
    """Return a cell without surrounding spaces and without the signs that protect it from a spreadsheet."""
    cell = cell.strip()
    quoted = QUOTED_FORMULA.fullmatch(cell)
    return quoted[1].strip() if quoted else cell


def end_of_line(text: str, number: int) -> int:
    """Return the index of the first character after a line."""
    end = 0
    for _ in range(number):
        end = text.find("\n", end) + 1 or len(text)
    return end


def ranked_contests(titles: Sequence[str], choices: Sequence[str], first: int) -> dict[str, list[Choice]]:
    """Return the columns of each contest in which every choice states a rank, and some a rank above 1."""
    found: dict[str, list[tuple[int, re.Match[str] | None]]] = {}
    for column in range(first, len(titles)):
        name = CONTEST_NUMBERS.sub("", titles[column])
        found.setdefault(name, []).append((column, CHOICE.fullmatch(choices[column])))
    ranked: dict[str, list[Choice]] = {}
    for contest, columns in found.items():
        stated = [Choice(column, match[1], int(match[2])) for column, match in columns if match]
        if len(stated) == len(columns) and max(choice.rank for choice in stated) > 1:
            ranked[contest] = stated
    return ranked


def position_codes(marked: Mask, choices: Sequence[Choice]) -> tuple[Codes, list[str]]:
    """Return the code of a text for each ballot and rank, and the texts: no, one or several joined candidates."""
    names = list(dict.fromkeys(choice.name for choice in choices))
    texts = {name: number for number, name in enumerate(["", *names])}
    ranks = sorted({choice.rank for choice in choices})
    codes = np.zeros((len(marked), len(ranks)), dtype=np.int32)
    for position, rank in enumerate(ranks):
        columns = [column for column, choice in enumerate(choices) if choice.rank == rank]
        number = np.array([texts[choices[column].name] for column in columns])
        here = marked[:, columns]
        codes[:, position] = np.where(here.any(axis=1), number[here.argmax(axis=1)], 0)
        for row in np.flatnonzero(here.sum(axis=1) > 1).tolist():
            joined = SEPARATOR.join(names[each - 1] for each in number[here[row]].tolist())
            codes[row, position] = texts.setdefault(joined, len(texts))
    return codes, list(texts)


# ---------------------------------------------------------------------- JSON

Marks = list[tuple[int, str]]  # rank and candidate
Contests = dict[str, list[tuple[int, Marks]]]  # for each contest the number of each ballot and its marks
MAX_RANK = 10_000


def json_contests(source: SourceFile) -> dict[str, TextTable]:
    """Return the ranked contests of a file, folder or archive, each as a table with one column per position.

    The names of several candidates at one position, an overvote, are joined by ``SEPARATOR``.
    """
    documents = dict(read_documents(source))
    try:
        contests: Contests = {}
        for content in documents.values():
            found = dominion_marks(content, documents) if "Sessions" in content else nist_marks(content)
            for contest, ballots in found.items():
                contests.setdefault(contest, []).extend(ballots)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        if isinstance(error, RankingError):
            raise
        problem = f"the structure is not that of a cast vote record ({type(error).__name__}: {error})"
        raise source.error(None, problem) from None
    ranked = {name: ballots for name, ballots in contests.items() if highest_rank(ballots) > 1 or len(contests) == 1}
    if not ranked:
        raise source.error(None, "there is no contest with ranked choices")
    return {name: position_table(ballots, source.with_options(separator=SEPARATOR)) for name, ballots in ranked.items()}


def highest_rank(ballots: list[tuple[int, Marks]]) -> int:
    """Return the largest rank that is marked."""
    return max((rank for _, marks in ballots for rank, _ in marks), default=0)


def position_table(ballots: list[tuple[int, Marks]], source: SourceFile) -> TextTable:
    """Return ballots as a table with one column per position."""
    n_ranks = max(highest_rank(ballots), 1)

    def rows() -> Iterator[tuple[int, list[str]]]:
        yield 1, [f"choice {position}" for position in range(1, n_ranks + 1)]
        for number, marks in ballots:
            cells: list[list[str]] = [[] for _ in range(n_ranks)]
            for rank, name in marks:
                cells[rank - 1].append(name)
            yield number, [SEPARATOR.join(dict.fromkeys(names)) for names in cells]

    return table_of(rows(), source)


# ---------------------------------------------------------------------- files


def read_documents(source: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON documents of a file and its manifests, of a folder, or of an archive."""
    path = source.path
    if path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                members = [member for member in archive.infolist() if member.filename.lower().endswith(".json")]
                n_bytes = sum(member.file_size for member in members)
                source.check_expanded_size(n_bytes, path.stat().st_size)
                raw = [(member.filename, archive.read(member)) for member in members]
        except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, RuntimeError) as error:
            raise source.error(None, f"the archive is damaged ({error}); download the file again") from None
    else:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path, *manifests(path)]
        raw = [(file.name, SourceFile(file, source.options).read_bytes()) for file in files]
        n_bytes = sum(len(content) for _, content in raw)
        source.check_expanded_size(n_bytes, sum(file.stat().st_size for file in files))
    if not raw:
        raise source.error(None, "the folder or archive has no .json file; name the file to read")
    for name, content in raw:
        yield name, read_document(content, SourceFile(name))


def manifests(path: Path) -> list[Path]:
    """Return the manifests in the folder of an export of Dominion."""
    files = [path.with_name(f"{kind}Manifest.json") for kind in ("Contest", "Candidate")]
    return [file for file in files if file.exists() and file != path]


def read_document(raw: bytes, source: SourceFile) -> dict[str, Any]:
    """Return a JSON document that is an object."""
    try:
        content = json.loads(source.decoded(raw, "utf-8"))
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise source.error(line, f"this is not JSON ({getattr(error, 'msg', 'nested too deeply')})") from None
    if not isinstance(content, dict):
        raise source.error(1, "a cast vote record is a JSON object")
    return content


# ---------------------------------------------------------------------- Dominion


def dominion_marks(content: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> Contests:
    """Return the marks in an export, of adjudicated ballots where they exist."""
    contests = manifest_names(documents, "ContestManifest")
    candidates = manifest_names(documents, "CandidateManifest")
    found: Contests = {}
    for number, session in enumerate(content["Sessions"], start=1):
        for card in current_cards(session):
            for contest in card["Contests"]:
                name = contests.get(contest["Id"], f"contest {contest['Id']}")
                marks = [
                    (int(mark["Rank"]), candidates.get(mark["CandidateId"], f"candidate {mark['CandidateId']}"))
                    for mark in contest["Marks"]
                    if mark.get("IsVote", True) and not mark.get("IsAmbiguous", False)
                ]
                check_ranks(marks)
                found.setdefault(name, []).append((number, marks))
    return found


def current_cards(session: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return the cards of a ballot in their current version; older exports list contests without cards."""
    versions = [session[name] for name in ("Modified", "Original") if session.get(name)]
    if not versions:
        return ()
    current = next((version for version in versions if version.get("IsCurrent")), versions[-1])
    cards: Iterable[Mapping[str, Any]] = current.get("Cards", (current,))
    return cards


def manifest_names(documents: Mapping[str, Mapping[str, Any]], kind: str) -> dict[Any, str]:
    """Return the names in a manifest by their numbers; contests of the same name have their numbers appended."""
    entries = [
        (entry["Id"], str(entry["Description"]).strip())
        for name, content in documents.items()
        if kind.lower() in name.lower()
        for entry in content["List"]
    ]
    if kind == "CandidateManifest":
        return dict(entries)
    names = [name for _, name in entries]
    return {number: name if names.count(name) == 1 else f"{name} ({number})" for number, name in entries}


# ---------------------------------------------------------------------- NIST


def nist_marks(content: Mapping[str, Any]) -> Contests:
    """Return the marks in a report of the common data format, of the current snapshot of each ballot."""
    if "CVR" not in content:
        return {}
    contests, selections = nist_names(content)
    found: Contests = {}
    for number, record in enumerate(content["CVR"], start=1):
        snapshots = record["CVRSnapshot"]
        current_id = record.get("CurrentSnapshotId")
        current = [snapshot for snapshot in snapshots if snapshot.get("@id") == current_id] or snapshots[-1:]
        for contest in current[0].get("CVRContest", []):
            name = contests.get(contest["ContestId"], str(contest["ContestId"]))
            marks = []
            for selection in contest.get("CVRContestSelection", []):
                selected = selection.get("ContestSelectionId")
                marks += [(rank, selections.get(selected, str(selected))) for rank in nist_ranks(selection)]
            check_ranks(marks)
            found.setdefault(name, []).append((number, marks))
    return found


def nist_ranks(selection: Mapping[str, Any]) -> list[int]:
    """Return the ranks at which a candidate is marked."""
    ranks = []
    for position in selection.get("SelectionPosition") or [{}]:
        marked = position.get("HasIndication", "yes") == "yes" and position.get("IsAllocable", "yes") != "no"
        rank = position.get("Rank", selection.get("Rank", 1))
        if marked:
            ranks.append(int(rank))
    return ranks


def nist_names(content: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of contests and of their choices, by their identifiers."""
    contests: dict[str, str] = {}
    selections: dict[str, str] = {}
    for election in content.get("Election", []):
        people = {person["@id"]: str(person.get("Name", person["@id"])) for person in election.get("Candidate", [])}
        for contest in election.get("Contest", []):
            contests[contest["@id"]] = str(contest.get("Name", contest["@id"])).strip()
            for selection in contest.get("ContestSelection", []):
                names = [people.get(person, str(person)) for person in selection.get("CandidateIds", [])]
                write_in = "write-in" if selection.get("IsWriteIn") else selection["@id"]
                selections[selection["@id"]] = " / ".join(names) or str(selection.get("Selection", write_in))
    return contests, selections


def check_ranks(marks: Marks) -> None:
    """Raise an error if a rank is out of range."""
    for rank, _ in marks:
        if not 1 <= rank <= MAX_RANK:
            raise ValueError(f"a mark has the rank {rank}")
