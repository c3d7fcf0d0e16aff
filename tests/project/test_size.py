"""A reader who follows a call through the package passes few files, whatever the kernel and the method."""

import pytest

from benchmarks import size

# Upper limits of the number of files; measured by benchmarks/size.py.
LIMITS = {"exact Gram matrix": 9, "Monte Carlo Gram matrix": 15, "mmd_test": 19}
TWO_FAMILIES = "0.5 * Kendall() + Mallows(nu=0.3), free"  # a sum of closed forms of two families, in files of their own


@pytest.mark.filterwarnings("ignore")  # of kernels with few draws
@pytest.mark.parametrize("name", LIMITS)
def test_calls_pass_few_files(name):
    walks = dict(size.WALKS[name]())
    limits = dict.fromkeys(walks, LIMITS[name])
    if name == "exact Gram matrix":
        limits[TWO_FAMILIES] += 3
    assert len(limits) == len(walks) > 50
    assert not {case: str(walk) for case, walk in walks.items() if len(walk.files) > limits[case]}


def test_walk_counts_files_and_functions():
    walk = size.warm_walk(lambda: size.rk.Mallows(0.1))
    assert [path.rpartition("/")[2] for path in walk.files if "exponential" in path] == ["exponential.py"]
    assert len(walk.functions) >= len(walk.files)


def test_size_of_the_package():
    numbers = size.size()
    assert numbers["files"] <= 200
    assert numbers["lines"] <= 42_000
