"""Whole jobs from end to end, beside what people do today: ``python -m benchmarks.jobs [-o FILE]``.

- ``election``: read an election, cluster its voters, map them, test two halves of the file (Dublin North; needs
  ``RANKERNEL_DATA``). Today: distances by NumPy between voters drawn at random, scikit-learn for the rest.
- ``ballots``: a CSV file of a million ballots of twenty candidates to a report page. Today: pandas reads and counts it.
- ``classification``: a Gaussian process that tells eastern from western users by their sushi (needs
  ``RANKERNEL_DATA``). Today: scikit-learn's RBF kernel on the positions.

Each job runs in a process of its own, so that its memory is its own; times are wall clock, and compiled code is warm.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import save
from benchmarks.ordinary import DUBLIN_NORTH
from reproduction.sushi import load_sushi

N_VOTERS = 2000  # as many as the way by hand can take
N_CLUSTERS = 4
N_TESTED = 2500  # voters of each half
N_BALLOTS = 1_000_000
N_CANDIDATES = 20
N_USERS = 2000


def data_folder() -> Path:
    """Return where real data are."""
    if "RANKERNEL_DATA" not in os.environ:
        raise SystemExit("set RANKERNEL_DATA to the folder with the data")
    return Path(os.environ["RANKERNEL_DATA"])


def command(*arguments: str) -> None:
    """Run the command line."""
    subprocess.run([sys.executable, "-m", "rankernel", *arguments], check=True, stdout=subprocess.DEVNULL)


def election(path: Path) -> None:
    """Cluster and map all voters of an election, and test whether the ballots of its two halves are alike."""
    with tempfile.TemporaryDirectory() as folder:
        command("cluster", str(path), "--k", str(N_CLUSTERS), "-o", str(Path(folder, "clusters.csv")))
        command("map", str(path), "-o", str(Path(folder, "map.csv")))
    ballots = rk.read_preflib(path)
    voters = np.repeat(np.arange(len(ballots)), ballots.counts)
    some = np.random.default_rng(0).permutation(voters)[: 2 * N_TESTED]
    halves = [rk.Rankings(ballots.ranks[half], items=ballots.items) for half in (some[::2], some[1::2])]
    rk.mmd_test(*halves, rk.Mallows("median"), n_permutations=1000)


def election_by_hand(path: Path) -> None:
    """Do the same for some voters with NumPy and scikit-learn: signs of pairs, distances, linkage, MDS, a loop."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.manifold import MDS

    ballots = rk.read_preflib(path)
    rng = np.random.default_rng(0)
    ranks = ballots.ranks[rng.choice(len(ballots), N_VOTERS, p=ballots.counts / ballots.counts.sum())]
    x, y = np.triu_indices(ranks.shape[1], 1)
    signs = np.sign(ranks[:, y] - ranks[:, x]).astype(np.float64)
    distances = (signs.shape[1] - signs @ signs.T) / 2
    K = np.exp(-distances / np.median(distances))
    AgglomerativeClustering(N_CLUSTERS, metric="precomputed", linkage="average").fit(distances)
    MDS(2, dissimilarity="precomputed", n_init=1, random_state=0).fit(distances)
    member = np.arange(N_VOTERS) % 2 == 0
    for _ in range(1000):
        one = rng.permutation(member)
        K[np.ix_(one, one)].mean() + K[np.ix_(~one, ~one)].mean() - 2 * K[np.ix_(one, ~one)].mean()


def write_ballots(path: Path) -> None:
    """Write a million ballots that list some of twenty candidates, one row a voter."""
    rng = np.random.default_rng(0)
    names = np.array([f"candidate {chr(65 + c)}" for c in range(N_CANDIDATES)])
    columns = [f"rank {place + 1}" for place in range(6)]
    with path.open("w", encoding="utf-8") as file:
        file.write("district," + ",".join(columns) + "\n")
        for _ in range(N_BALLOTS // 10_000):
            scores = rng.gumbel(size=(10_000, N_CANDIDATES)) + np.linspace(2, 0, N_CANDIDATES)
            orders = np.argsort(-scores, axis=1)[:, :6]
            lengths = rng.integers(1, 7, 10_000)
            for row, length, district in zip(orders, lengths, rng.integers(0, 3, 10_000), strict=True):
                listed = [*names[row[:length]], *[""] * (6 - length)]
                file.write(f"district {district}," + ",".join(listed) + "\n")


def ballots(path: Path) -> None:
    """Write the report of a table."""
    with tempfile.TemporaryDirectory() as folder:
        command("report", str(path), "--by", "district", "-o", str(Path(folder, "report.html")))


def ballots_by_hand(path: Path) -> None:
    """Read the table with pandas, and count ballots and first choices: as far as one gets without more code."""
    import pandas as pd

    frame = pd.read_csv(path)
    frame.drop(columns="district").fillna("").agg(">".join, axis=1).value_counts()
    frame.groupby("district")["rank 1"].value_counts()


def users(folder: Path) -> tuple[rk.Rankings, np.ndarray]:
    """Return some users and whether they live in the west."""
    data = load_sushi(folder)
    return data.rankings[:N_USERS].top(6), data.users["east_west"][:N_USERS]


def classification(folder: Path) -> None:
    """Fit a Gaussian process with the kernel on lists."""
    from sklearn.gaussian_process import GaussianProcessClassifier

    rankings, west = users(folder)
    kernel = rk.SklearnKernel(rk.Mallows("median").resolve(rankings))
    GaussianProcessClassifier(kernel, random_state=0).fit(rankings.ranks, west)


def classification_by_hand(folder: Path) -> None:
    """Fit a Gaussian process with the RBF kernel on positions, unlisted items last."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    rankings, west = users(folder)
    GaussianProcessClassifier(RBF(5.0), random_state=0).fit(rankings.ranks.astype(float), west)


FILES = {"election": Path("preflib", DUBLIN_NORTH), "classification": "sushi3-2016"}
JOBS = {
    "election": (election, election_by_hand, "Dublin North: cluster, map, test", f"by hand, {N_VOTERS:,} voters"),
    "ballots": (
        ballots,
        ballots_by_hand,
        f"{N_BALLOTS:,} ballots of {N_CANDIDATES}: CSV to report",
        "pandas: read, count",
    ),
    "classification": (
        classification,
        classification_by_hand,
        f"GP classification, {N_USERS:,} users",
        "RBF on positions",
    ),
}


def alone(job: str, by_hand: bool, file: Path) -> tuple[float, float]:
    """Return the seconds and the peak megabytes of a job in a process of its own (and those it starts)."""
    code = (
        "import resource, sys, time, warnings; from pathlib import Path; from benchmarks import jobs\n"
        "warnings.simplefilter('ignore')\n"
        f"call = jobs.JOBS[{job!r}][{int(by_hand)}]\n"
        f"start = time.perf_counter(); call(Path({str(file)!r}))\n"
        "who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)\n"
        "print(time.perf_counter() - start, max(resource.getrusage(w).ru_maxrss for w in who) / 1024)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)
    seconds, peak = map(float, run.stdout.split()[-2:])
    return seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "ballots.csv")
        if "ballots" in options.jobs:
            write_ballots(table)
        for job in options.jobs:
            _, _, what, peer = JOBS[job]
            file = table if job == "ballots" else data_folder() / FILES[job]
            alone(job, False, file)  # compiles
            (seconds, peak), (peer_seconds, peer_peak) = alone(job, False, file), alone(job, True, file)
            rows.append(
                {
                    "what": what,
                    "seconds": seconds,
                    "peak_MB": peak,
                    "peer": peer,
                    "peer_seconds": peer_seconds,
                    "peer_MB": peer_peak,
                }
            )
            print(f"{what:46} {seconds:8.1f} s {peak:8.0f} MB   {peer:24} {peer_seconds:8.1f} s {peer_peak:8.0f} MB")
    if options.output is not None:
        save(options.output, rows)


if __name__ == "__main__":
    main()
