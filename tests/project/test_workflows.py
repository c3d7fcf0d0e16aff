"""The workflows do what ``.ci/run`` does, so that running one of them is having tried the other."""

import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="the workflows are read as YAML")
ROOT = Path(__file__).parents[2]
if not (ROOT / ".github").is_dir():
    pytest.skip("the workflows are part of the repository alone", allow_module_level=True)
HERE = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
JOBS = {
    f"{path.stem}, {name}": job
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
}
# Another environment; the name of a tag; the oldest versions, which take as long again.
ONLY_THERE = ("python -m pip install", 'test -f "dist/', "python .ci/oldest.py")


@pytest.mark.parametrize("name", JOBS)
def test_every_command_of_the_workflows_is_run_here(name):
    commands = [step["run"] for step in JOBS[name].get("steps", []) if "run" in step]
    assert [line for line in commands if not line.startswith(ONLY_THERE) and line not in HERE] == []


def test_the_versions_that_are_tried_are_those_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    assert JOBS["tests, newest"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("name", JOBS)
def test_nothing_but_publishing_may_write(name):
    asked = JOBS[name].get("permissions", {})
    assert asked == ({"id-token": "write"} if name == "release, publish" else {})
