"""Imports follow the flow of data; numba stays in its corner; nothing below the command line prints."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rankernel

PACKAGE = Path(rankernel.__file__).parent
ORDER = [
    "_lazy",
    "errors",
    "encoding",
    "rankings",
    "_loops",
    "preferences",
    "io",
    "datasets",
    "distances",
    "kernels",
    "completions",
    "gram",
    "tasks",
    "frontends",
    "plots",
    "experiments",
    "report",
    "cli",
]
# Methods that hand over to a later layer, imported when they are called: kernel.gram(...), preferences.n_extensions().
HANDED_OVER = {("kernels", "gram"), ("preferences", "completions")}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer(module):
    return module.split(".")[1]


def imports(tree):
    """Every module of the package that a file imports, and whether only inside a function."""
    inside = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rankernel":
            names = [f"rankernel.{alias.name}" for alias in node.names] if node.module == "rankernel" else [node.module]
            for name in names:
                yield name, id(node) in inside


def type_checking_only(tree):
    """Imports under ``if TYPE_CHECKING`` do not run."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and getattr(n.test, "id", "") == "TYPE_CHECKING"]
    return {id(node) for block in blocks for node in ast.walk(block)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_upwards_only(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    here = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if here == "__init__":
        return
    skipped = type_checking_only(tree)
    tree.body = [node for node in tree.body if id(node) not in skipped]
    for module, in_function in imports(tree):
        if module.count(".") == 0 or layer(module) not in ORDER:
            continue
        there = layer(module)
        allowed = ORDER.index(there) <= ORDER.index(here) or (in_function and (here, there) in HANDED_OVER)
        assert allowed, f"{here} imports {module}"


def names_of_imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_numba_lives_in_its_corner_and_nothing_prints(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    here = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if here != "_loops":
        assert not any(name.split(".")[0] in ("numba", "llvmlite") for name in names_of_imports(tree))
    if here != "cli":
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert not any(getattr(call.func, "id", "") == "print" for call in calls)


def loaded_by(code):
    """The heavy packages that running some code imports, in a fresh interpreter."""
    heavy = ("numba", "sklearn", "pandas", "matplotlib", "scipy.stats")
    script = f"import sys\n{code}\nprint([name for name in {heavy!r} if name in sys.modules])"
    return ast.literal_eval(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    )


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import rankernel") == []
    assert loaded_by("import rankernel as rk; rk.Rankings.from_orders([['a', 'b']]).kinds(); rk.Mallows(0.1)") == []


def test_every_public_name_exists():
    for name in rankernel.__all__:
        assert getattr(rankernel, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Malows'"):
        rankernel.Malows  # noqa: B018
