"""What sets clusters apart from each other, in a few words each: no two are called the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.data import Data
from rankernel.reports.majorities import count_majorities
from rankernel.reports.phrases import ballot_text
from rankernel.reports.standing import approved_counts, first_counts

EASILY_SAID = 1.5  # how many times as much a pair of items must set a cluster apart as a first choice, to be its mark
HARDLY_SAID = 0.1  # the same for a whole ballot, which is always there, and which only one cluster has


@dataclass(frozen=True)
class Mark:
    """What sets a cluster apart from all other voters."""

    first: str  # an item that it puts first, or before another one; or a whole ballot
    second: str | None  # the other one
    share: float  # of its voters who say so
    others: float  # of all other voters who do
    approval: bool = False  # whether it approves of the item, rather than putting it first
    whole: bool = False  # whether it is a ballot

    def __str__(self) -> str:
        if self.whole:
            return self.first
        if self.second is not None:
            return f"{self.first}, not {self.second}" if self.approval else f"{self.first} over {self.second}"
        return f"approves {self.first}" if self.approval else f"{self.first} first"


def marks_of(parts: list[Data], approving: float | None = None) -> list[Mark]:
    """Return what sets each part apart: the first choice, or the pair of items, whose share differs most from others.

    No two parts get the same: what is said most clearly of all parts together is chosen. Where there are more parts
    than items and pairs of them, some are named after their most common ballot.
    """
    from scipy.optimize import linear_sum_assignment

    items, voters = parts[0].items, np.array([part.n_voters for part in parts], dtype=np.float64)
    approval = approving is not None
    pairs = np.argwhere(~np.eye(len(items), dtype=bool))
    counts = np.stack([said_counts(part, pairs, approving) for part in parts])
    shares = counts / voters[:, None]
    others = (counts.sum(axis=0) - counts) / np.maximum(voters.sum() - voters, 1)[:, None]
    clarity = shares - others
    clarity[:, : len(items)] *= EASILY_SAID
    common = np.array([part.counts.max() / part.n_voters for part in parts])
    own = np.where(np.eye(len(parts), dtype=bool), HARDLY_SAID * common, -(len(items) ** 2))
    marks = []
    for part, said in zip(*linear_sum_assignment(-np.concatenate([clarity, own], axis=1)), strict=True):
        if said >= counts.shape[1]:
            ballot = parts[part][int(np.argmax(parts[part].counts))]
            words = ballot_text(ballot, most=len(items), approvals=approval)
            marks.append(Mark(words, None, float(common[part]), 0.0, approval, whole=True))
            continue
        a, b = (said, None) if said < len(items) else pairs[said - len(items)]
        second = None if b is None else items[b]
        marks.append(Mark(items[a], second, float(shares[part, said]), float(others[part, said]), approval))
    return marks


def said_counts(
    part: Data, pairs: np.ndarray[tuple[int, int], np.dtype[np.intp]], approving: float | None
) -> FloatArray:
    """Return how many voters want each item most, and one item more than another, pair by pair."""
    first = first_counts(part) if approving is None else approved_counts(part, approving)
    ahead = count_majorities(part).ahead[pairs[:, 0], pairs[:, 1]]
    return np.concatenate([first, ahead])
