"""Structured errors and argument checks."""

import pickle
import signal

import numpy as np
import pytest

from rankernel import RankingError, ReadingWarning
from rankernel._utils import checks
from rankernel.errors import Argument, ArgumentError, ArgumentTypeError, ArgumentValueError, OutputExistsError, warn


def as_option(argument):
    return f"--{argument.name}"


def test_argument_errors_have_attributes():
    with pytest.raises(ArgumentValueError) as caught:
        checks.check_integer("n_draws", 0)
    error = caught.value
    assert (error.argument, error.value, error.expected, error.hint) == ("n_draws", 0, "an integer >= 1", "")
    assert str(error) == "n_draws=0 is not possible; it must be an integer >= 1"
    assert error.phrase(as_option) == "--n_draws is not possible; it must be an integer >= 1"


@pytest.mark.parametrize(("kind", "builtin"), [(ArgumentValueError, ValueError), (ArgumentTypeError, TypeError)])
def test_argument_errors_are_builtin_errors(kind, builtin):
    error = kind("items", None, "a list", hint=("give ", Argument("items", ["a", "b"])))
    assert isinstance(error, builtin)
    assert isinstance(error, ArgumentError)
    assert str(error) == "items=None is not possible; it must be a list; give items=['a', 'b']"
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), twin.phrase(as_option)) == (kind, str(error), error.phrase(as_option))


@pytest.mark.parametrize("kind", [RankingError, OutputExistsError])
def test_messages_refer_to_arguments(kind):
    error = kind("K.npy exists; ", Argument("overwrite", True), " replaces it")
    assert str(error) == "K.npy exists; overwrite=True replaces it"
    assert error.phrase(as_option) == "K.npy exists; --overwrite replaces it"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_warnings_refer_to_arguments():
    with pytest.warns(ReadingWarning, match="fold_case=True merges them") as caught:
        warn(("names differ in case; ", Argument("fold_case", True), " merges them"), ReadingWarning)
    assert caught[0].message.phrase(as_option) == "names differ in case; --fold_case merges them"
    assert caught[0].filename == __file__


def test_long_values_are_shortened():
    with pytest.raises(TypeError) as caught:
        checks.check_flag("biased", "x" * 10_000)
    assert len(str(caught.value)) < 200


def list_repeatedly(texts):
    for _ in range(20):
        assert len(checks.check_list("groups", texts, "labels")) == len(texts)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals")
def test_interrupt_while_strings_are_listed():
    """NumPy swallows exceptions while it iterates over an array of strings."""
    texts = np.array(["north", "south"] * 200_000)

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        with pytest.raises(KeyboardInterrupt):
            list_repeatedly(texts)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("check", "arguments", "kind", "message"),
    [
        ("check_integer", (2.5,), ArgumentValueError, "x=2.5 is not possible; it must be an integer >= 1"),
        (
            "check_number",
            ("high", 0, 1),
            ArgumentTypeError,
            "it must be a number from 0 to 1",
        ),
        ("check_unmasked", (np.ma.array([1, 2], mask=[False, True]),), ArgumentValueError, "x is masked at 1"),
        ("check_numbers", ([1, "two"], (2,)), ArgumentTypeError, "it must be an array of 2 numbers"),
        ("check_array", ([[1, 2], [3]], "one length"), ArgumentTypeError, "it must be one length"),
        ("check_flag", ("no",), ArgumentTypeError, "x='no' is not possible; it must be True or False"),
        ("check_choice", ("break", ("keep", "items")), ArgumentValueError, "it must be 'keep' or 'items'"),
        ("check_instance", (5, dict, "a mapping"), ArgumentTypeError, "x=5 is not possible; it must be a mapping"),
        ("check_text", (5,), ArgumentTypeError, "x=5 is not possible; it must be a string"),
        ("check_list", (3, "a list of kernels"), ArgumentTypeError, "it must be a list of kernels"),
        ("check_names", ([1, 2],), ArgumentTypeError, "it must be a list of names"),
        ("check_path", (3,), ArgumentTypeError, "x=3 is not possible; it must be the name of a file"),
    ],
)
def test_checks_name_the_argument_and_what_is_expected(check, arguments, kind, message):
    with pytest.raises(kind) as caught:
        getattr(checks, check)("x", *arguments)
    assert message in str(caught.value)


def test_a_single_name_is_a_list():
    assert checks.check_names("ignore", "district") == ["district"]
    assert checks.check_names("ignore", ("district", "age")) == ["district", "age"]
