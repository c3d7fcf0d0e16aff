"""Maps of the ballots of Scottish council wards, with and without similarity of the candidates of one party.

The files are those of mggg/scot-elex (``RANKERNEL_DATA/scottish``). For each ward in which a party has several
candidates, the mean features of the Kendall kernel are mapped to two dimensions by weighted principal components. The
shares are of the variance of a map that lies between the parties of the first preferences; the distance of two maps is
the Procrustes disparity of SciPy (0 for equal maps up to rotation and scale, at most 1).

    RANKERNEL_DATA=... python benchmarks/similar_items.py --output docs/benchmarks/similar_items.json
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
from scipy.spatial import procrustes

import rankernel as rk

WITHIN = 0.8


def parties_of(path: Path) -> dict[str, str]:
    """Return the party of each candidate; an independent candidate is a party of one."""
    rows = [row for row in csv.reader(path.open(encoding="utf-8", errors="replace")) if len(row) >= 3]
    found = {row[1]: re.search(r"\(([^)]*)\)\s*$", row[2]) for row in rows if row[0].startswith("Candidate")}
    return {name: match[1] if match and match[1] != "Ind" else name for name, match in found.items()}


def weighted_map(ballots: rk.Rankings, kernel: rk.Kernel) -> np.ndarray:
    """Return the first two principal components of the mean features, each ballot weighted by its voters."""
    features = rk.MeanFeatures(kernel.resolve(ballots)).fit_transform(ballots)
    weights = ballots.counts / ballots.counts.sum()
    centred = features - weights @ features
    _, _, axes = np.linalg.svd(np.sqrt(weights)[:, None] * centred, full_matrices=False)
    return centred @ axes[:2].T


def share_between(points: np.ndarray, groups: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of the weighted variance of points, centred at 0, that lies between groups."""
    between = 0.0
    for group in np.unique(groups):
        chosen = groups == group
        mean = weights[chosen] @ points[chosen] / weights[chosen].sum()
        between += weights[chosen].sum() * float(mean @ mean)
    return between / float(weights @ (points**2).sum(axis=1))


def ward(path: Path) -> dict[str, object] | None:
    """Return the shares and the distance of the maps of one ward; None if no party has two candidates."""
    ballots, parties = rk.read(path).unique(), parties_of(path)
    ballots = ballots[np.flatnonzero((ballots.ranks == 0).sum(axis=1) == 1)]
    groups: dict[str, list[str]] = {}
    for name in ballots.items:
        groups.setdefault(parties[name], []).append(name)
    if max(map(len, groups.values())) < 2:
        return None
    first = np.array([parties[ballots.items[item]] for item in (ballots.ranks == 0).argmax(axis=1)])
    similarity = rk.similarity_from_groups(groups, within=WITHIN)
    plain, alike = (weighted_map(ballots, kernel) for kernel in (rk.Kendall(), rk.Kendall(similarity=similarity)))
    repeated = np.repeat(np.arange(len(ballots)), ballots.counts)
    return {
        "file": path.name,
        "candidates": ballots.n_items,
        "parties": len(groups),
        "voters": int(ballots.n_voters),
        "share_distinct": round(share_between(plain, first, ballots.counts), 3),
        "share_similar": round(share_between(alike, first, ballots.counts), 3),
        "disparity": round(float(procrustes(plain[repeated], alike[repeated])[2]), 3),
    }


def main() -> None:
    """Measure all wards and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    output = parser.parse_args().output
    folder = Path(os.environ["RANKERNEL_DATA"]) / "scottish"
    warnings.simplefilter("ignore", rk.ReadingWarning)
    rows = [row for path in sorted(folder.glob("*.csv")) if (row := ward(path)) is not None]
    columns = ("share_distinct", "share_similar", "disparity")
    summary = {name: np.quantile([row[name] for row in rows], [0, 0.5, 1]).round(3).tolist() for name in columns}
    summary["larger_share"] = int(sum(row["share_similar"] > row["share_distinct"] for row in rows))
    result = {
        "measured": "maps of Scottish wards",
        "within": WITHIN,
        "n_wards": len(rows),
        "min_median_max": summary,
        "rows": rows,
    }
    if output is not None:
        output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: result[name] for name in ("n_wards", "min_median_max")}, indent=1))


if __name__ == "__main__":
    main()
