"""Values that several threads need at the same time are computed once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rankernel.gram.exact.formulas import ValueCache


def test_second_thread_waits_for_pending_values():
    cache, started, may_end, solved = ValueCache(10), Event(), Event(), []

    def slow(positions):
        started.set()
        assert may_end.wait(30)
        solved.extend(positions)
        return [f"slow {position}" for position in positions]

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, [3, 4], slow)
        assert started.wait(30)
        second = pool.submit(cache.get, [4, 5], lambda positions: [f"quick {position}" for position in positions])
        while 5 not in cache.values:  # new values are computed before waiting
            assert not second.done()
        may_end.set()
        assert first.result() == ["slow 0", "slow 1"]
        assert second.result() == ["slow 1", "quick 1"]
    assert solved == [0, 1]
    assert not cache.pending


def test_waiting_thread_gets_the_error_and_may_retry():
    cache, started, may_fail = ValueCache(10), Event(), Event()

    def fails(positions):
        started.set()
        assert may_fail.wait(30)
        raise ArithmeticError("no value")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, [3], fails)
        assert started.wait(30)
        second = pool.submit(cache.get, [3, 4], lambda positions: [0.5] * len(positions))
        while 4 not in cache.values:
            assert not second.done()
        may_fail.set()
        for call in (first, second):
            with pytest.raises(ArithmeticError, match="no value"):
                call.result()
    assert cache.get([3, 4], lambda positions: [0.25] * len(positions)) == [0.25, 0.5]


def test_cache_never_exceeds_its_size():
    cache = ValueCache(4)
    for start in range(20):
        codes = [start, start + 1, start + 2]
        assert cache.get(codes, lambda positions, codes=codes: [codes[p] for p in positions]) == codes
        assert len(cache.values) <= 4
