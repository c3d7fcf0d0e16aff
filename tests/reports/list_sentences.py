"""Write sentences.md, a list of the sentence templates of the page, each with a test of it.

Run as a script, it runs the tests of this folder with itself as a plugin, which records the templates that each test
fills. The test of a template is the one whose strings have most of its words and, among equals, the one that fills the
fewest templates.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rankernel.reports.text import Wording, sentences

FOLDER = Path(__file__).parent
LIST = FOLDER / "sentences.md"
HEAD = """# Sentence templates of the page

Written by `python tests/reports/list_sentences.py`. A test *checks* a template if the test's strings contain
all words of the template or at least three consecutive ones; one that *writes* it makes a page that has the sentence.

| template | sentence | test | |
|---|---|---|---|
"""
ROW = re.compile(r"^\| `(\w+)\.([\w-]+)` \| (.*) \| `([\w.]+)::(\w+)` \| (checks|writes) \|$", re.MULTILINE)
RECORD_SCRIPT = """
(() => {
  const parse = JSON.parse;
  window.said = [];
  JSON.parse = (text) => {
    const data = parse(text);
    const get = (all, name) => { window.said.push(name); return all[name]; };
    return data && data.sentences ? { ...data, sentences: new Proxy(data.sentences, { get }) } : data;
  };
})();
"""


# ---------------------------------------------------------------------- the plugin


class Recorder:
    """The templates that tests and their shared fixtures fill."""

    def __init__(self):
        self.said, self.of_fixtures = set(), {}

    def patch(self):
        say, recorder = Wording.say, self

        def recorded(wording, name, /, **fields):
            own = wording.approvals and name in sentences()["approvals"]
            recorder.said.add(f"{'approvals' if own else 'rankings'}.{name}")
            return say(wording, name, **fields)

        Wording.say = recorded

    def patch_browser(self):
        """Record what the script of the page says while a test looks at it."""
        from browsing import Watched

        enter, leave, recorder = Watched.__init__, Watched.__exit__, self

        def opened(watched, browser, *arguments, **options):
            if browser.contexts[0] not in recorder.contexts:
                browser.contexts[0].add_init_script(RECORD_SCRIPT)
                recorder.contexts.append(browser.contexts[0])
            enter(watched, browser, *arguments, **options)

        def closed(watched, *error):
            names = watched.page.evaluate("window.said || []")
            recorder.said |= {f"script.{name}" for name in names if name in sentences()["script"]}
            leave(watched, *error)

        self.contexts = []
        Watched.__init__, Watched.__exit__ = opened, closed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        before, self.said = self.said, set()
        try:
            return (yield)
        finally:
            self.of_fixtures[fixturedef] = self.said
            self.said = before | self.said

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.said = set()
        try:
            return (yield)
        finally:
            for definitions in item._fixtureinfo.name2fixturedefs.values():
                self.said |= self.of_fixtures.get(definitions[-1], set())
            item.user_properties.append(("sentences", sorted(self.said)))

    def pytest_collection_finish(self):
        if "browsing" in sys.modules:
            self.patch_browser()


class Collector:
    """The templates that each test fills, from all processes."""

    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            name = re.sub(r"^.*/|\[.*", "", report.nodeid)
            self.found.setdefault(name, set()).update(dict(report.user_properties).get("sentences", ()))

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus == 0 and self.found:
            LIST.write_text(HEAD + "".join(rows_of(self.found)), encoding="utf-8")


def pytest_configure(config):
    recorder = Recorder()
    recorder.patch()
    config.pluginmanager.register(recorder)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector())


# ---------------------------------------------------------------------- the choice of tests


def templates():
    """Return all templates by table and name."""
    return {f"{table}.{name}": text for table, texts in sentences().items() for name, text in texts.items()}


def words_of(text):
    """Return the words of a string of a test, which may be a regular expression."""
    return " ".join(re.sub(r"\\.|[^\w’]+", " ", text).split())


def parts_of(template):
    """Return the words of a template between its fields."""
    return [words_of(part) for part in re.split(r"\{.*?\}", template)]


def text_of_node(node):
    """Return a string of a test, with 0 for the fields of one that is filled."""
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else " 0 " for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def strings_of_tests():
    """Return the strings in each test function of this folder without its docstring, by file and name, in words."""
    found = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                statements = [*node.decorator_list, *node.body[ast.get_docstring(node) is not None :]]
                texts = (text_of_node(each) for statement in statements for each in ast.walk(statement))
                found[f"{path.name}::{node.name}"] = [words_of(text) for text in texts if text]
    return found


def words_in_common(template, strings):
    """Return how many words of a template are in one of the strings: all of them, or consecutive ones of a part."""
    parts = parts_of(template)
    n_words = sum(len(part.split()) for part in parts)
    whole = r"\b" + r".*?".join(rf"\b{re.escape(part)}\b" for part in parts if part) + r"\b"
    if n_words and any(re.search(whole, text) for text in strings):
        return n_words
    best = 0
    for words in map(str.split, parts):
        for start in range(len(words)):
            while start + best < len(words) and any(
                f" {' '.join(words[start : start + best + 1])} " in f" {text} " for text in strings
            ):
                best += 1
    return best


def rows_of(found):
    """Yield a row for each template, with its test; one that no test fills has none."""
    strings, n_filled = strings_of_tests(), Counter({test: len(names) for test, names in found.items()})
    for name, text in templates().items():
        filling = [test for test, names in found.items() if name in names]
        common = {test: words_in_common(text, strings[test]) for test in filling}
        test = min(filling, key=lambda each: (-common[each], n_filled[each], each), default="none")
        n_words = sum(len(part.split()) for part in parts_of(text))
        how = "checks" if filling and common[test] >= min(3, max(n_words, 1)) else "writes"
        yield f"| `{name}` | {text} | `{test}` | {how} |\n"


if __name__ == "__main__":
    folders = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")]))
    old = "--deselect=tests/reports/test_sentences.py::test_list_of_sentences_is_complete"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "list_sentences", "tests/reports", old, *sys.argv[1:]]
    done = subprocess.run(command, cwd=FOLDER.parents[1], env=os.environ | {"PYTHONPATH": folders}, check=False)
    sys.exit(done.returncode)
