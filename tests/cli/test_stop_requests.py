"""Ctrl-C and SIGTERM end a command even where what they raise is thrown away, and disturb nobody who tidies up."""

import signal
import time
from contextlib import suppress

import numpy as np
import pytest
from commands import run

from rankernel._utils import checks
from rankernel.cli import stop_requests

ENDS = pytest.mark.parametrize(
    ("sign", "code", "how"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
REPEATS = 5


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch):
    monkeypatch.setattr(stop_requests, "PAUSE", 0.01)


def outcome(monkeypatch, work):
    """Return how a command ends whose work is this."""
    before = [signal.getsignal(sign) for sign in stop_requests.ENDS]
    monkeypatch.setattr("rankernel.cli.info_command.read", work)
    done = run("info")
    assert [signal.getsignal(sign) for sign in stop_requests.ENDS] == before
    return done.exit_code, done.stderr


def asked_in_vain(sign):
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        signal.raise_signal(sign)


def working():
    for _ in range(3000):
        time.sleep(0.01)
    pytest.fail("nobody ended it")


@ENDS
def test_a_request_that_is_thrown_away_is_made_again(monkeypatch, sign, code, how):
    def deaf(*_):
        asked_in_vain(sign)
        with suppress(BaseException):  # once more
            working()
        working()

    ended = f"rankernel: {how}; nothing was written; the same command starts again\n"
    assert outcome(monkeypatch, deaf) == (code, ended)


@ENDS
def test_tidying_up_is_not_disturbed(monkeypatch, sign, code, how):
    tidied = []

    def careful(*_):
        try:
            signal.raise_signal(sign)
        finally:
            try:
                time.sleep(REPEATS * stop_requests.PAUSE)
                raise ValueError("while tidying up")
            except ValueError:
                time.sleep(REPEATS * stop_requests.PAUSE)
            tidied.append("all")

    assert outcome(monkeypatch, careful)[0] == code
    assert tidied == ["all"]


@ENDS
def test_who_asks_twice_is_heard_at_once(monkeypatch, sign, code, how):
    def slow_to_tidy(*_):
        try:
            signal.raise_signal(sign)
        finally:
            signal.raise_signal(sign)
            pytest.fail("went on tidying")

    assert outcome(monkeypatch, slow_to_tidy)[0] == code


@ENDS
def test_a_request_that_became_another_error(monkeypatch, sign, code, how):
    def misled(*_):
        asked_in_vain(sign)
        raise ValueError("a list that ended too early")

    assert outcome(monkeypatch, misled) == (
        code,
        f"rankernel: {how}; nothing was written; the same command starts again\n",
    )


@ENDS
def test_a_request_that_came_too_late(monkeypatch, sign, code, how):
    from rankernel.cli.reading import read

    def done(*given):
        source = read(*given)
        asked_in_vain(sign)
        monkeypatch.setattr(stop_requests.StopRequests, "is_unwinding", lambda _: True)  # no time for a repeat
        return source

    assert outcome(monkeypatch, done) == (code, f"rankernel: {how} when everything was done\n")


def test_what_is_ignored_stays_ignored(monkeypatch):
    """As in a job that a shell has put into the background."""
    from rankernel.cli.reading import read

    def asked(*given):
        signal.raise_signal(signal.SIGINT)
        return read(*given)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert outcome(monkeypatch, asked) == (0, "")
    finally:
        signal.signal(signal.SIGINT, before)


def listed_again_and_again(texts):
    for _ in range(20):
        assert len(checks.check_list("groups", texts, "labels")) == len(texts)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals")
def test_ctrl_c_while_texts_are_listed():
    """NumPy throws it away while an array of texts is gone through."""
    texts = np.array(["north", "south"] * 200_000)

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        with pytest.raises(KeyboardInterrupt):
            listed_again_and_again(texts)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
