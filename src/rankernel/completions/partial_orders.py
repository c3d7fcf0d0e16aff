"""Draws of partial orders, as :mod:`rankernel.completions.draws` makes those of rankings: each order has its stream."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Mask
from rankernel._utils.checks import check_integer
from rankernel.completions.keys import FullRanks, check_width
from rankernel.completions.linear_extensions import draw_extensions
from rankernel.completions.models import CompletionModel, LogDensity, Uniform, self_normalized_weights
from rankernel.completions.streams import NO_ROW, Streams, stream_key
from rankernel.errors import RankingError
from rankernel.models.mallows_model import MallowsModel


def relation_streams(
    packed: NDArray[np.uint8], seed: int, purpose: str, rows: NDArray[np.integer] | None = None
) -> Streams:
    """Return one stream a partial order; with ``rows``, equal orders in different rows have independent ones."""
    numbers = np.full(len(packed), NO_ROW, dtype=np.uint64) if rows is None else np.asarray(rows, dtype=np.uint64)
    key = int(stream_key(seed, purpose)).to_bytes(8, "little")
    digests = [
        blake2b(relation.tobytes() + int(number).to_bytes(8, "little"), digest_size=8, key=key).digest()
        for relation, number in zip(packed, numbers, strict=True)
    ]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def draw_relations(
    relations: Mask, n_draws: int, streams: Streams, model: CompletionModel
) -> tuple[FullRanks, FloatArray | None]:
    """Return independent draws of each partial order, and importance weights if one of them needs some.

    Examples
    --------
    >>> before = np.zeros((1, 3, 3), dtype=bool)
    >>> before[0, 2, 0] = True
    >>> streams = relation_streams(np.packbits(before, axis=2), rng=0, purpose="completions")
    >>> draws, _ = draw_relations(before, 5, streams, Uniform())
    >>> draws.shape, bool((draws[0, :, 2] < draws[0, :, 0]).all())
    ((1, 5, 3), True)
    """
    check_integer("n_draws", n_draws)
    check_width(relations.shape[1])
    full = np.empty((len(relations), n_draws, relations.shape[1]), dtype=np.int16)
    weights = np.ones((len(relations), n_draws))
    weighted = False
    for row, (before, stream) in enumerate(zip(relations, streams, strict=True)):
        full[row], logs = draw_one(model, before, n_draws, np.random.Generator(np.random.PCG64(int(stream))))
        if logs is not None:
            weights[row] = self_normalized_weights(logs[None, :])[0]
            weighted = True
    return full, weights if weighted else None


def draw_one(
    model: CompletionModel, before: Mask, n_draws: int, rng: np.random.Generator
) -> tuple[FullRanks, FloatArray | None]:
    """Return draws of one partial order and their log-weights, None where the draws follow the model exactly."""
    match model:
        case Uniform():
            return draw_extensions(before, n_draws, rng), None
        case MallowsModel():
            return model.draw_relation(before, n_draws, rng)
        case LogDensity(self_normalized=True):
            draws = draw_extensions(before, n_draws, rng)
            return draws, model.evaluate(draws)
    raise RankingError(
        f"completions={model} is not available for partial orders; there are Uniform(), MallowsModel(center, theta) "
        "and LogDensity(function) with self-normalised weights"
    )
