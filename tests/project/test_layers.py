"""Imports follow the data flow, tests mirror the package, numba stays in `_loops`, and only commands print."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rankernel

PACKAGE = Path(rankernel.__file__).parent
ORDER = [
    "_lazy",
    "errors",
    "_utils",
    "rankings",
    "columns",
    "_loops",
    "preferences",
    "data",
    "comparisons",
    "io",
    "interop",
    "datasets",
    "distances",
    "kernels",
    "completions",
    "gram",
    "models",
    "stats",
    "learn",
    "plots",
    "reports",
    "cli",
    "__main__",
]
GRAM_ORDER = [
    "jackknife",
    "evaluator",
    "rows",
    "exact",
    "bandwidth",
    "montecarlo",
    "estimate",
    "plan",
    "storage",
    "__init__",
]
# Methods that hand over to a later layer, imported when they are called: kernel.gram(...), result.plot().
HANDED_OVER = {
    ("rankings", "columns"),
    ("kernels", "gram"),
    ("distances", "completions"),
    ("preferences", "comparisons"),
    ("preferences", "completions"),
    ("comparisons", "models"),
    ("models", "plots"),
    ("plan", "storage"),
    ("stats", "plots"),
    ("models", "gram"),
    ("learn", "plots"),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer(module):
    return module.split(".")[1]


@cache
def nodes_of(path):
    """All imports and calls of a file, whether they are in a function, and whether only type checkers read them."""
    result, stack = [], [(ast.parse(path.read_text(encoding="utf-8")), False, False)]
    while stack:
        node, in_function, for_types = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            result.append((node, in_function, for_types))
        in_function |= isinstance(node, ast.FunctionDef)
        for_types |= isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        stack += [(child, in_function, for_types) for child in ast.iter_child_nodes(node)]
    return result


def package_imports(path):
    """All imports from the package."""
    for node, in_function, for_types in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rankernel":
            yield node, in_function, for_types


def imports_that_run(path):
    """The modules of the package that a file imports, and whether within a function."""
    for node, in_function, for_types in package_imports(path):
        names = [f"rankernel.{alias.name}" for alias in node.names] if node.module == "rankernel" else [node.module]
        if not for_types:
            yield from ((name, in_function) for name in names)


def is_upwards(here, there, order, in_function):
    return order.index(there) <= order.index(here) or (in_function and (here, there) in HANDED_OVER)


def test_imports_point_upwards_only():
    for path in FILES:
        here = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if here != "__init__":
            for module, in_function in imports_that_run(path):
                if module != "rankernel.__version__":
                    assert is_upwards(here, layer(module), ORDER, in_function), f"{path} imports {module}"


def test_imports_inside_gram_point_upwards_only():
    for path in sorted((PACKAGE / "gram").rglob("*.py")):
        here = path.relative_to(PACKAGE / "gram").with_suffix("").parts[0]
        for module, in_function in imports_that_run(path):
            if module.startswith("rankernel.gram."):
                there = module.split(".")[2]
                assert is_upwards(here, there, GRAM_ORDER, in_function), f"{path} imports {module}"


def test_private_names_stay_in_their_folder():
    """Names with an underscore are imported only within their folder."""
    for path in FILES:
        folder = ("rankernel", *path.relative_to(PACKAGE).parent.parts)
        for node, *_ in package_imports(path):
            for name in ((*node.module.split("."), alias.name) for alias in node.names):
                private = [part.startswith("_") and not part.startswith("__") for part in name]
                owner = name[: private.index(True)] if any(private) else ()
                assert folder[: len(owner)] == owner, f"{path}: {'.'.join(name)} is private to {'.'.join(owner)}"


def names_of_imports(path):
    for node, *_ in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_only_loops_import_numba_and_only_commands_print():
    for path in FILES:
        here = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if here != "_loops":
            assert not any(name.split(".")[0] in ("numba", "llvmlite") for name in names_of_imports(path)), path
        if here != "cli":
            calls = [node for node, *_ in nodes_of(path) if isinstance(node, ast.Call)]
            assert not any(getattr(call.func, "id", "") == "print" for call in calls), path


def test_import_is_light():
    steps = ("import rankernel as rk", "rk.Rankings.from_orders([['a', 'b']]).kinds(); rk.Mallows(0.1)")
    heavy = ("numba", "sklearn", "pandas", "matplotlib", "scipy.stats")
    show = f"print([name for name in {heavy!r} if name in sys.modules])"
    script = "\n".join(["import sys", *(f"{step}\n{show}" for step in steps)])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


def test_tests_mirror_the_package():
    tests = Path(__file__).parents[1]
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")} - {Path(), Path("gram/disk")}
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")} - {Path()}
    assert folders - {Path("project"), Path("reproduction")} <= packages
    assert {folder for folder in packages if not folder.parts[0].startswith("_")} <= folders


def test_public_names_exist():
    for name in rankernel.__all__:
        assert getattr(rankernel, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Malows'"):
        rankernel.Malows  # noqa: B018
