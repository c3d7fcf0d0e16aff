"""The documentation without building it: public names, links, requirements, and code blocks that run."""

import dataclasses
import doctest
import importlib
import inspect
import json
import re
import sys
import tomllib
import warnings
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
from public_names import MODULES, list_file, module_lists, related_names, sections  # noqa: E402
from reference_notes import attributes_of, inherit_attributes  # noqa: E402


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


MODULE_NAMES = sorted(name for names in module_lists() for name in names)


def test_notes_are_about_documented_names():
    assert set(NOTES) <= {*NAMES, *MODULE_NAMES}


@pytest.mark.parametrize("name", NOTES)
def test_notes_refer_to_sections_of_the_theory(name):
    assert NOTES[name]
    assert set(NOTES[name].get("theory", "").split()) <= titled_labels()


def documented(name: str) -> object:
    """The public object of a name of the reference; skips a test if it needs a library that is not installed."""
    module, _, short = name.rpartition(".")
    if module in {"learn.gpy", "learn.gpytorch", "learn.botorch", "learn.dask"}:
        pytest.importorskip({"gpy": "GPy"}.get(module[6:], module[6:]))
    return getattr(importlib.import_module(f"rankernel.{module}") if module else rankernel, short)


def documented_sections(name: str) -> set[str]:
    """The sections of the docstring of a public name, and the example of its note."""
    text = inspect.getdoc(documented(name))
    found = set(re.findall(r"^([A-Z][\w ]+)\n-{3,}$", text, re.MULTILINE))
    return (
        found
        | ({"Parameters"} if "Attributes" in found else set())
        | ({"Examples"} if "example" in NOTES.get(name, {}) else set())
    )


def sections_needed(name: str) -> set[str]:
    """Parameters or attributes where there are any, returned values of functions, and an example."""
    thing = documented(name)
    if isinstance(thing, type):
        is_error = issubclass(thing, Exception)
        has_fields = not is_error and not inspect.isabstract(thing) and bool(inspect.signature(thing).parameters)
        return {"Examples"} | ({"Parameters"} if has_fields else set())
    signature = inspect.signature(thing)
    returns = {"Returns"} if signature.return_annotation not in (None, "None") else set()
    return {"Examples"} | returns | ({"Parameters"} if signature.parameters else set())


@pytest.mark.parametrize("name", [name for name in (*NAMES, *MODULE_NAMES) if name not in MODULES])
def test_reference_entries_have_all_sections(name):
    missing = sections_needed(name) - documented_sections(name)
    assert not missing, f"{name}: add {missing} to the docstring, or an example to docs/reference/notes.toml"
    related = related_names(name, NOTES)
    assert related, f"{name}: add see_also to docs/reference/notes.toml"
    assert set(related) <= {*NAMES, *MODULE_NAMES} - {name}


@pytest.mark.parametrize("name", [name for name in NOTES if "example" in NOTES[name]])
def test_examples_of_the_notes(name, tmp_path, monkeypatch):
    example = NOTES[name]["example"]
    for library in set(re.findall(r"botorch|votekit|pref_voting|preflibtools", example)):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(example, {}, name, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("module", ["plots", "datasets", "interop", "io", "gram", "completions"])
def test_public_names_of_modules_are_in_the_reference(module):
    home = importlib.import_module(f"rankernel.{module}")
    own = [thing for thing in vars(home).values() if getattr(thing, "__module__", "") == home.__name__]
    with_example = [thing.__name__ for thing in own if "\n    Examples\n" in (thing.__doc__ or "")]
    shown = {*NAMES, *(name.rpartition(".")[2] for name in MODULE_NAMES)}
    assert set(getattr(home, "__all__", with_example)) <= shown


@pytest.mark.parametrize("name", rankernel.stats.__all__)
def test_pages_of_results_show_all_fields(name):
    thing = getattr(rankernel.stats, name)
    lines = inspect.cleandoc(thing.__doc__).splitlines()
    inherit_attributes("class", thing, lines)
    entries = attributes_of("\n".join(lines))[0]
    shown = {field for names in entries for field in names.split(", ")}
    assert {field.name for field in dataclasses.fields(thing) if field.name[0] != "_"} <= shown


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
def test_internal_links(path):
    text = text_of(path)
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= labels()
    for target in re.findall(r"\]\((?!#|<|https?:)([^)]+)\)", text):
        assert (path.parent / target).is_file()


def cells_of(path: Path) -> list[str]:
    """The Python cells that the documentation build executes."""
    text = path.read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return ["\n".join(line for line in cell.splitlines() if not line.startswith((":tags:", "!"))) for cell in cells]


def python_blocks(path: Path) -> list[str]:
    """The Python blocks that are shown but not executed by the documentation build."""
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_tutorials_draw_with_the_package():
    pages = [path for path in PAGES if path.parent.name in {"guide", "tutorials"}]
    assert pages
    assert [path for path in pages if re.search(r"^(import|from) matplotlib", "\n".join(cells_of(path)), re.M)] == []


def test_pages_with_cells_are_executed():
    """MyST-NB executes the pages with this header, except those about libraries that need not be installed."""
    header = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n"
    assert [path for path in PAGES if cells_of(path) and not path.read_text(encoding="utf-8").startswith(header)] == []
    configuration = (DOCS / "conf.py").read_text(encoding="utf-8")
    optional = re.findall(
        r'"(\w+)": "(\w+)"', configuration.partition("nb_execution_excludepatterns")[2].partition("]")[0]
    )
    assert {page for page, _ in optional} == {"dask", "gpy", "gpytorch"}
    assert "gpy,gpytorch" in (DOCS.parent / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_cells_compile(path):
    for cell in cells_of(path):
        compile(cell, str(path), "exec")


@pytest.mark.parametrize("name", ["guide/tests.md", "tutorials/own_kernel.md", "tutorials/two_groups.md"])
def test_cells_run(name, monkeypatch, capsys):
    """The documentation build executes all cells; these pages are quick enough for a test."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    known = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rankernel.NotCharacteristicWarning)
        warnings.simplefilter("ignore", rankernel.IndefiniteKernelWarning)
        for cell in cells_of(DOCS / name):
            exec(compile(cell, name, "exec"), known)
    pyplot.close("all")
    assert re.search(r"p-value +0\.\d|p = 0\.\d", capsys.readouterr().out)


@pytest.mark.parametrize("path", [path for path in PAGES if python_blocks(path)], ids=lambda path: path.stem)
def test_python_blocks_run(path, capsys):
    known = {}
    for block in python_blocks(path):
        for library in set(re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)) - {"rankernel"}:
            pytest.importorskip(library)
        exec(compile(block, str(path), "exec"), known)


def test_shell_blocks_are_run_or_install():
    """Commands run in test_printed_commands.py, recipes in test_contributing.py; installation needs a network."""
    program = r"(\.venv/bin/)?(rankernel|pip install|sphinx-build|ruff|python -m pytest)\b"
    allowed = re.compile(rf"{program}|python3 -m venv\b|#|$")
    for path in (*PAGES, DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"):
        for block in re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            assert all(allowed.match(line) for line in block.splitlines()), (path, block)


def test_blocks_have_a_language_that_is_run():
    """Python, shell and cells are executed here, in test_printed_commands.py or by the documentation build.

    README is executed by test_readme.py, and CONTRIBUTING by test_contributing.py.
    """
    known = re.compile(r"sh|python|text|\{[\w-]+\}.*|:::.*")
    for path in (*PAGES, *(DOCS.parent / f"{name}.md" for name in ("README", "CHANGELOG", "GLOSSARY"))):
        opened = False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                opened = not opened
                assert not opened or known.fullmatch(line[3:].strip()), (path, line)


RUN = [path for path in PAGES if "```{code-cell}" in path.read_text(encoding="utf-8")]
EXTRAS = {"matplotlib": "plots", "pandas": "frames", "gpytorch": "gpytorch", "GPy": "gpy", "dask": "dask"}
INSTALLATION = {"cli", "frames", "plots"}  # the one installation; a page names the extras that it needs beyond it


def installed(path: Path) -> list[set[str]]:
    """The extras of each installation of the package that a page shows; any other form is an error."""
    text = path.read_text(encoding="utf-8")
    lines = re.findall(r"pip install (?:-[qe] )*([^\s`]*(?:rankernel|\.\[|'\.)[^\s`]*)", text)
    forms = [re.fullmatch(r"'\.\[([\w,]+)\]'", line) for line in lines]
    assert None not in forms, f"{path.name}: {lines}; write pip install '.[extra]' (from a clone)"
    return [set(form[1].split(",")) for form in forms if form]


def test_pages_agree_on_the_installation():
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    for path in (DOCS.parent / "README.md", DOCS / "index.md", DOCS / "start.md"):
        assert installed(path)[0] == INSTALLATION, f"{path.name} installs {installed(path)[0]}"
        assert "not on PyPI yet" in path.read_text(encoding="utf-8"), path.name
    for path in (*PAGES, DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", DOCS.parent / "GLOSSARY.md"):
        assert all(found <= extras for found in installed(path)), path


@pytest.mark.parametrize("path", RUN, ids=lambda path: str(path.relative_to(DOCS)))
def test_requirements_cover_imports(path):
    imported = set(re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {EXTRAS[name] for name in imported & set(EXTRAS)} <= INSTALLATION.union(*installed(path))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_named_tests_and_modules_exist(path):
    for name in re.findall(r"`((?:tests|benchmarks)/[\w./]+)`", text_of(path)):
        assert (DOCS.parent / name).exists()
    for name in re.findall(r"`(?:python -m )(benchmarks[\w.]*|reproduction)", text_of(path)):
        module = DOCS.parent / name.replace(".", "/")
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()


def test_committed_results_can_be_shown():
    for path in (DOCS / "benchmarks").glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["rows"] if isinstance(content, dict) else content
        assert all(isinstance(row, dict) for row in rows)


def test_two_commands_of_readme_do_everything():
    """One installs and runs the main job, one installs and runs the tests, each a single line."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS.parent / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [block.count("\n") for block in blocks] == [1, 1]
    assert all(block.startswith("python3 -m venv .venv && .venv/bin/pip install ") for block in blocks)
    assert [block.split(" && ")[-1].split()[0] for block in blocks] == [".venv/bin/rankernel", ".venv/bin/python"]
