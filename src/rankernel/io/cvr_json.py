"""Cast vote records in JSON: exports of Dominion with their manifests, and the common data format of NIST."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rankernel.errors import RankingError
from rankernel.io.read_options import ReadOptions
from rankernel.io.text_files import SourceFile, read_bytes
from rankernel.io.text_table import TextTable, table_of

Marks = list[tuple[int, str]]  # rank and candidate
Contests = dict[str, list[tuple[int, Marks]]]  # for each contest the number of each ballot and its marks
MAX_RANK = 10_000


def json_contests(source: SourceFile, options: ReadOptions, separator: str) -> dict[str, TextTable]:
    """Return the ranked contests of a file, folder or archive, each as a table with one column per position.

    The names of several candidates at one position, an overvote, are joined by the separator.
    """
    documents = dict(read_documents(source, options))
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
    return {name: position_table(ballots, source, separator) for name, ballots in ranked.items()}


def highest_rank(ballots: list[tuple[int, Marks]]) -> int:
    """Return the largest rank that is marked."""
    return max((rank for _, marks in ballots for rank, _ in marks), default=0)


def position_table(ballots: list[tuple[int, Marks]], source: SourceFile, separator: str) -> TextTable:
    """Return ballots as a table with one column per position."""
    width = max(highest_rank(ballots), 1)

    def rows() -> Iterator[tuple[int, list[str]]]:
        yield 1, [f"choice {position}" for position in range(1, width + 1)]
        for number, marks in ballots:
            cells: list[list[str]] = [[] for _ in range(width)]
            for rank, name in marks:
                cells[rank - 1].append(name)
            yield number, [separator.join(dict.fromkeys(names)) for names in cells]

    return table_of(rows(), source)


# ---------------------------------------------------------------------- files


def read_documents(source: SourceFile, options: ReadOptions) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON documents of a file and its manifests, of a folder, or of an archive."""
    path = source.path
    if path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                members = [member for member in archive.infolist() if member.filename.lower().endswith(".json")]
                n_bytes = sum(member.file_size for member in members)
                source.check_expanded_size(n_bytes, path.stat().st_size, options)
                raw = [(member.filename, archive.read(member)) for member in members]
        except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, RuntimeError) as error:
            raise source.error(None, f"the archive is damaged ({error}); download the file again") from None
    else:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path, *manifests(path)]
        raw = [(file.name, read_bytes(file, options)) for file in files]
        n_bytes = sum(len(content) for _, content in raw)
        source.check_expanded_size(n_bytes, sum(file.stat().st_size for file in files), options)
    if not raw:
        raise source.error(None, "there is no .json file in it")
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
