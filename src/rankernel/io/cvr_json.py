"""Cast vote records as JSON: that of Dominion, with its manifests, and the common data format of NIST."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rankernel.errors import RankingError
from rankernel.io.files import AnyPath, check_unpacked_size, decoded, fail, read_bytes
from rankernel.io.records import Records, coded

Marks = list[tuple[int, str]]  # rank and candidate
ManyMarks = dict[str, list[tuple[int, Marks]]]  # by contest: number of the ballot, its marks


def json_contests(path: AnyPath, max_bytes: int, separator: str) -> dict[str, Records]:
    """Return the ranked contests of a file, folder or archive, each as a table with one column a place.

    A place with several candidates is an overvote: their names, joined by the separator.
    """
    documents = dict(read_documents(path, max_bytes))
    try:
        marks: ManyMarks = {}
        for content in documents.values():
            found = dominion_marks(content, documents) if "Sessions" in content else nist_marks(content)
            for contest, ballots in found.items():
                marks.setdefault(contest, []).extend(ballots)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        if isinstance(error, RankingError):
            raise
        raise fail(
            path, None, f"the structure is not that of a cast vote record ({type(error).__name__}: {error})"
        ) from None
    ranked = {name: ballots for name, ballots in marks.items() if highest_rank(ballots) > 1 or len(marks) == 1}
    if not ranked:
        raise fail(path, None, "there is no contest with ranked choices in it")
    return {name: as_records(ballots, path, separator) for name, ballots in ranked.items()}


def highest_rank(ballots: list[tuple[int, Marks]]) -> int:
    """Return the last place that somebody marked."""
    return max((rank for _, marks in ballots for rank, _ in marks), default=0)


def as_records(ballots: list[tuple[int, Marks]], path: AnyPath, separator: str) -> Records:
    """Return ballots as a table with one column a place."""
    width = max(highest_rank(ballots), 1)

    def rows() -> Iterator[tuple[int, list[str]]]:
        yield 1, [f"choice {place}" for place in range(1, width + 1)]
        for number, marks in ballots:
            cells: list[list[str]] = [[] for _ in range(width)]
            for rank, name in marks:
                cells[rank - 1].append(name)
            yield number, [separator.join(dict.fromkeys(names)) for names in cells]

    return coded(rows(), path)


# ---------------------------------------------------------------------- files


def read_documents(path: AnyPath, max_bytes: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON documents of a file with those beside it, of a folder, or of an archive."""
    place = Path(path)
    if place.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(place) as archive:
                parts = [part for part in archive.infolist() if part.filename.lower().endswith(".json")]
                n_bytes = sum(part.file_size for part in parts)
                check_unpacked_size(n_bytes, place.stat().st_size, path, max_bytes)
                raw = [(part.filename, archive.read(part)) for part in parts]
        except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, RuntimeError) as error:
            raise fail(path, None, f"the archive is damaged ({error}); get the file again") from None
    else:
        files = sorted(place.glob("*.json")) if place.is_dir() else [place, *manifests_beside(place)]
        raw = [(file.name, read_bytes(file, max_bytes)) for file in files]
        n_bytes = sum(len(content) for _, content in raw)
        check_unpacked_size(n_bytes, sum(file.stat().st_size for file in files), path, max_bytes)
    if not raw:
        raise fail(path, None, "there is no .json in it")
    for name, content in raw:
        yield name, document(content, Path(name))


def manifests_beside(path: Path) -> list[Path]:
    """Return the manifests that stand beside the export of a Dominion system."""
    beside = [path.with_name(f"{kind}Manifest.json") for kind in ("Contest", "Candidate")]
    return [file for file in beside if file.exists() and file != path]


def document(raw: bytes, path: AnyPath) -> dict[str, Any]:
    """Return one JSON document, which is an object."""
    try:
        content = json.loads(decoded(raw, path, "utf-8"))
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise fail(path, line, f"this is not JSON ({getattr(error, 'msg', 'nested too deeply')})") from None
    if not isinstance(content, dict):
        raise fail(path, 1, "a cast vote record is a JSON object")
    return content


# ---------------------------------------------------------------------- Dominion


def dominion_marks(content: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> ManyMarks:
    """Return the marks in an export: the adjudicated ballot where there is one."""
    contests = manifest(documents, "ContestManifest")
    candidates = manifest(documents, "CandidateManifest")
    found: ManyMarks = {}
    for number, session in enumerate(content["Sessions"], start=1):
        for card in cards_of(session):
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


def cards_of(session: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return the cards of a ballot as they count; older exports have the contests of all cards in one place."""
    versions = [session[name] for name in ("Modified", "Original") if session.get(name)]
    if not versions:
        return ()
    current = next((version for version in versions if version.get("IsCurrent")), versions[-1])
    cards: Iterable[Mapping[str, Any]] = current.get("Cards", (current,))
    return cards


def manifest(documents: Mapping[str, Mapping[str, Any]], kind: str) -> dict[Any, str]:
    """Return the names in a manifest by their numbers; two entries of one name get their numbers with it."""
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


def nist_marks(content: Mapping[str, Any]) -> ManyMarks:
    """Return the marks in a report of the common data format: those of the current snapshot of each ballot."""
    if "CVR" not in content:
        return {}
    contests, selections = nist_names(content)
    found: ManyMarks = {}
    for number, record in enumerate(content["CVR"], start=1):
        snapshots = record["CVRSnapshot"]
        wanted = record.get("CurrentSnapshotId")
        current = [snapshot for snapshot in snapshots if snapshot.get("@id") == wanted] or snapshots[-1:]
        for contest in current[0].get("CVRContest", []):
            name = contests.get(contest["ContestId"], str(contest["ContestId"]))
            marks = []
            for selection in contest.get("CVRContestSelection", []):
                chosen = selections.get(selection.get("ContestSelectionId"), str(selection.get("ContestSelectionId")))
                marks += [(rank, chosen) for rank in nist_ranks(selection)]
            check_ranks(marks)
            found.setdefault(name, []).append((number, marks))
    return found


def nist_ranks(selection: Mapping[str, Any]) -> list[int]:
    """Return the places at which a candidate is marked."""
    ranks = []
    for position in selection.get("SelectionPosition") or [{}]:
        marked = position.get("HasIndication", "yes") == "yes" and position.get("IsAllocable", "yes") != "no"
        rank = position.get("Rank", selection.get("Rank", 1))
        if marked:
            ranks.append(int(rank))
    return ranks


def nist_names(content: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of contests and of what can be chosen in them."""
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
    """Refuse places that are none."""
    for rank, _ in marks:
        if not 1 <= rank <= 10_000:
            raise ValueError(f"a mark has the rank {rank}")
