"""What several threads ask for at a time is worked out once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rankernel.gram.exact.answers import Answers


def test_a_second_thread_waits_for_the_first():
    answers, begun, may_end, solved = Answers(), Event(), Event(), []

    def slow(places):
        begun.set()
        assert may_end.wait(30)
        solved.extend(places)
        return [f"slow {place}" for place in places]

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(answers.of, [3, 4], slow)
        assert begun.wait(30)
        second = pool.submit(answers.of, [4, 5], lambda places: [f"quick {place}" for place in places])
        while 5 not in answers.known:  # what is new is not kept waiting
            assert not second.done()
        may_end.set()
        assert first.result() == ["slow 0", "slow 1"]
        assert second.result() == ["slow 1", "quick 1"]
    assert solved == [0, 1]
    assert not answers.awaited


def test_who_waits_hears_of_a_failure_and_may_ask_again():
    answers, begun, may_fail = Answers(), Event(), Event()

    def fails(places):
        begun.set()
        assert may_fail.wait(30)
        raise ArithmeticError("no value")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(answers.of, [3], fails)
        assert begun.wait(30)
        second = pool.submit(answers.of, [3, 4], lambda places: [0.5] * len(places))
        while 4 not in answers.known:
            assert not second.done()
        may_fail.set()
        for call in (first, second):
            with pytest.raises(ArithmeticError, match="no value"):
                call.result()
    assert answers.of([3, 4], lambda places: [0.25] * len(places)) == [0.25, 0.5]
