"""The recipes of CONTRIBUTING.md, followed literally in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### To add a (.*?)\n(.*?)(?=^##)", TEXT, flags=re.DOTALL | re.MULTILINE))
MAX_FILES = {"kernel": 3, "coupling": 3, "reader": 4, "hypothesis test": 5}
STEP = re.compile(
    r"^`([\w./]+)`, (?:(a new file)|(at the end)|(after|before|instead of) `([^\n]*)`):\n\n```\w*\n(.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^```sh\npython (.*)\n```$", flags=re.MULTILINE)


def test_recipes_are_complete():
    assert list(RECIPES) == list(MAX_FILES)
    for title, text in RECIPES.items():
        assert len({step[0] for step in STEP.findall(text)}) <= MAX_FILES[title]
        assert text.count("```") == 2 * (len(STEP.findall(text)) + len(COMMAND.findall(text)))


def follow(root, step):
    """Carry out one step of a recipe."""
    name, is_new, at_end, how, anchor, code = step
    path = root / name
    if is_new:
        assert not path.exists()
        path.write_text(code, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if at_end:
        path.write_text(text + code, encoding="utf-8")
        return
    lines = text.splitlines(keepends=True)
    assert lines.count(f"{anchor}\n") == 1, f"{name} does not have the line {anchor!r} once"
    index = lines.index(f"{anchor}\n")
    kept = {"after": [lines[index], code], "before": [code, lines[index]], "instead of": [code]}[how]
    path.write_text("".join([*lines[:index], *kept, *lines[index + 1 :]]), encoding="utf-8")


def test_recipes(tmp_path):
    """All recipes in one copy, and the tests that they name in one run."""
    for name in ("src", "tests", "docs", "benchmarks"):  # with compiled loops
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("_build", "generated"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "GLOSSARY.md"):
        shutil.copy(ROOT / name, tmp_path)
    files, selections = [], []
    for text in RECIPES.values():
        for step in STEP.findall(text):
            follow(tmp_path, step)
        (command,) = COMMAND.findall(text)
        given, _, selection = command.removeprefix("-m pytest -q ").partition(" -k ")
        files += [name for name in given.split() if name not in files]
        selections.append("(" + selection.strip('"') + ")")
    options = ["-rA", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--doctest-modules"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *files, "-k", " or ".join(selections), *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    for word in ("TopItem", "top_item.py", "repeated", "lines", "dispersion_matches", "dispersion_test"):
        assert re.search(rf"^PASSED .*{word}", done.stdout, flags=re.MULTILINE), word
