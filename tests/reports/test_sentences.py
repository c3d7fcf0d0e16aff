"""The sentence templates: complete, used, filled with known fields, and in the words of the field."""

import re
from pathlib import Path
from string import Formatter

import pytest
from reports.list_sentences import LIST, ROW, strings_of_tests, templates, words_in_common

import rankernel.reports
from rankernel.reports.text import Wording, pluralized, sentences, with_article

FOLDER = Path(rankernel.reports.__file__).parent
PYTHON = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
TEMPLATES = "\n".join(path.read_text(encoding="utf-8") for path in (FOLDER / "templates").glob("*.[hs][tv][mg]*"))
SCRIPT = (FOLDER / "templates" / "script.js").read_text(encoding="utf-8")
# Names that are put together where they are used.
PREFIXES = ("distinctive_", "head_", "heading_", "kind_", "label_", "map_", "result_", "rule_")
RETIRED = r"\b(duels?|places?|circles?|bars?|beats? all|sure|told|apart|doubt\w*|usual\w*|alike ones|who say)\b"


def fields_of(template):
    return {field for _, field, _, _ in Formatter().parse(template) if field}


@pytest.mark.parametrize("table", ["rankings", "approvals"])
def test_sentences_of_the_page_are_used(table):
    for name in sentences()[table]:
        quoted = re.search(rf"""["']{name}["']""", PYTHON + TEMPLATES)
        assert quoted or name.startswith(PREFIXES), name


def test_sentences_that_are_used_exist():
    for name in re.findall(r"""\bsay\(\s*["']([\w-]+)["'][,)]""", PYTHON + TEMPLATES):
        assert name in sentences()["rankings"] or name in sentences()["approvals"], name


def test_sentences_of_the_script_are_used():
    for name in sentences()["script"]:
        assert f'"{name}"' in SCRIPT or name.startswith("head_"), name
    for name in re.findall(r'say\("(\w+)"', SCRIPT):
        assert name in sentences()["script"], name


def test_approval_sentences_have_the_fields_of_the_others():
    """Fields that are not given would fail when the page is written."""
    nouns = set(Wording().nouns)
    general = sentences()["rankings"]
    for name, template in sentences()["approvals"].items():
        if name in general:
            assert fields_of(template) <= fields_of(general[name]) | nouns, name


def test_sentences_are_in_plain_words():
    for table in sentences().values():
        for name, template in table.items():
            assert not re.search(RETIRED, template, re.IGNORECASE), (name, template)
            assert not re.search(r"\s\s|\s[.,;:]", template), (name, template)


def test_fields_are_filled_once():
    """A name with braces is not a field."""
    text = Wording().say("contest", ahead="1%", behind="2%", first="{second}", second="{0}")
    assert "rank {second} above {0}" in text


def test_nouns():
    wording = Wording("city", "judge")
    assert tuple(wording.nouns[name] for name in ("items", "voters", "ballot")) == ("cities", "judges", "ranking")
    assert Wording().nouns["ballot"] == "ballot"
    assert [pluralized(noun) for noun in ("box", "day", "dish")] == ["boxes", "days", "dishes"]
    assert with_article("apple") == "an apple"


def test_shifts_have_the_sign_of_an_improvement():
    assert Wording().signed_shift(-1.04) == "+1.0"  # a smaller mean position
    assert Wording(approvals=True).signed_shift(12.3) == "−12"


def test_list_of_sentences_is_complete():
    """sentences.md has every template with a test that exists."""
    found = ROW.findall(LIST.read_text(encoding="utf-8"))
    assert {f"{table}.{name}": text for table, name, text, _, _, _ in found} == templates()
    assert {f"{file}::{test}" for _, _, _, file, test, _ in found} <= set(strings_of_tests())


@pytest.mark.parametrize(
    ("strings", "number"),
    [
        (["x has 3 apples and four pears"], 5),
        (["has 3 apples"], 1),
        (["apples and four"], 3),
        (["other"], 0),
    ],
)
def test_words_in_common_with_a_template(strings, number):
    assert words_in_common("{name} has {n:,} apples and four pears.", strings) == number
