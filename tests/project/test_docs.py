"""What the documentation promises without building it: every name is there, every link has an end."""

import json
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import rankernel
import rankernel.stats

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "generated", "reproduction"} & set(path.parts))
NOTES = tomllib.loads((DOCS / "reference" / "notes.toml").read_text(encoding="utf-8"))
NAMES = sorted(set(rankernel.__all__) - {"__version__"})
# Files that the build makes from the stub file, which groups the public names.
sys.path.insert(0, str(DOCS / "_ext"))
from public_names import MODULES, list_file, sections  # noqa: E402


@cache
def text_of(path: Path) -> str:
    """The page without its code."""
    return re.sub(r"```\{code-cell\}.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@cache
def labels() -> set[str]:
    return {label for path in PAGES for label in re.findall(r"^\(([\w-]+)\)=$", text_of(path), flags=re.MULTILINE)}


@cache
def titled_labels() -> set[str]:
    return {label for path in PAGES for label in re.findall(r"^\(([\w-]+)\)=\n#", text_of(path), flags=re.MULTILINE)}


def test_notes_are_about_documented_names():
    results = {f"stats.{name}" for name in rankernel.stats.__all__} | {"gram.GramSums"}
    assert set(NOTES) <= {*NAMES, *results}


@pytest.mark.parametrize("name", NOTES)
def test_notes_refer_to_sections_of_the_theory(name):
    assert NOTES[name]
    assert set(NOTES[name].get("theory", "").split()) <= titled_labels()


def test_groups_of_the_reference_are_those_of_the_stub_file():
    groups = sections()
    assert list(groups) == ["Data", "Kernels", "Statistics", "Models and consensus", "Learning"]
    assert sorted(name for group in groups.values() for names in group.values() for name in names) == NAMES
    for group, listed in groups.items():
        page = (DOCS / "reference" / f"{group.split()[0].lower()}.md").read_text(encoding="utf-8")
        assert page.splitlines()[0] == f"# {group}"
        for section, names in listed.items():
            assert f"## {section}\n" in page, f"{group}: {section} has no section"
            assert set(names) <= set(MODULES) or f".. include:: {list_file(section)}\n" in page


def test_results_are_on_the_page_of_statistics():
    page = (DOCS / "reference" / "statistics.md").read_text(encoding="utf-8")
    assert [name for name in rankernel.stats.__all__ if f"   {name}\n" not in page] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_links_inside_the_documentation_have_an_end(path):
    text = text_of(path)
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= labels()
    for target in re.findall(r"\]\((?!#|<|https?:)([^)]+)\)", text):
        assert (path.parent / target).is_file()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_code_on_pages_compiles(path):
    for code in re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL):
        lines = [line for line in code.splitlines() if not line.startswith((":tags:", "!"))]
        compile("\n".join(lines), str(path), "exec")


@pytest.mark.parametrize("name", ["tests.md", "tutorials/two_groups.md"])
def test_cells_about_tests_run(name, monkeypatch, capsys):
    """The build of the pages runs all cells of all pages; those about tests run here, too, as they are quick."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    text, known = (DOCS / name).read_text(encoding="utf-8"), {}
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for cell in cells:
        exec(compile(cell, name, "exec"), known)
    pyplot.close("all")
    assert len(cells) > 3
    assert re.search(r"p-value +0\.\d|p = 0\.\d", capsys.readouterr().out)


RUN = [path for path in PAGES if "```{code-cell}" in path.read_text(encoding="utf-8")]
EXTRAS = {"matplotlib": "plots", "pandas": "frames", "gpytorch": "gpytorch", "GPy": "gpy", "dask": "dask"}


PROSE = {"bibliography.md", "changelog.md", "contributing.md", "glossary.md"}  # nothing to run


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in PROSE], ids=lambda path: path.name)
def test_every_page_says_what_to_install(path):
    assert "pip install" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RUN, ids=lambda path: str(path.relative_to(DOCS)))
def test_pages_with_code_say_what_to_install(path):
    text = path.read_text(encoding="utf-8")
    (installed,) = re.findall(r"pip install '?(?:rankernel|\.)(?:\[([\w,]+)\])?", text)[:1]
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, flags=re.MULTILINE))
    assert {EXTRAS[name] for name in imported & set(EXTRAS)} <= set(installed.split(","))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_tests_that_pages_name_are_there(path):
    for file, name in re.findall(r"`(test_\w+\.py)::(\w+)`", text_of(path)):
        (found,) = Path(__file__).parents[1].rglob(file)
        assert f"\ndef {name}(" in found.read_text(encoding="utf-8")


def test_committed_results_can_be_shown():
    for path in (DOCS / "benchmarks").glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["rows"] if isinstance(content, dict) else content
        assert all(isinstance(row, dict) for row in rows)
