"""Imports follow the flow of data; names are said once; numba stays in its corner; only the command line prints."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import rankernel

PACKAGE = Path(rankernel.__file__).parent
ORDER = [
    "_lazy",
    "arrays",
    "errors",
    "interrupts",
    "checks",
    "seeds",
    "memory",
    "whole_files",
    "encoding",
    "group_names",
    "notebook",
    "multiplicities",
    "column_places",
    "order_lists",
    "pair_tables",
    "rankings",
    "_loops",
    "preferences",
    "data",
    "linear_forms",
    "log_sums",
    "q_factorials",
    "partitions",
    "kemeny_search",
    "io",
    "interop",
    "datasets",
    "distances",
    "kernels",
    "completions",
    "gram",
    "tasks",
    "frontends",
    "plots",
    "analysis",
    "pages",
    "experiments",
    "cli",
]
GRAM_ORDER = [
    "methods",
    "cost",
    "evaluator",
    "tiles",
    "posets",
    "exact",
    "bandwidth",
    "montecarlo",
    "patchwork",
    "normalize",
    "tolerance",
    "estimate",
    "sums",
    "plan",
    "disk",
    "__init__",
]
# Methods that hand over to a later layer, imported when they are called: kernel.gram(...), result.plot().
HANDED_OVER = {("kernels", "gram"), ("preferences", "completions"), ("plan", "disk"), ("tasks", "plots")}
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


def imports_that_run(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = type_checking_only(tree)
    tree.body = [node for node in tree.body if id(node) not in skipped]
    return imports(tree)


def is_upwards(here, there, order, in_function):
    return order.index(there) <= order.index(here) or (in_function and (here, there) in HANDED_OVER)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_upwards_only(path):
    here = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if here == "__init__":
        return
    for module, in_function in imports_that_run(path):
        if module != "rankernel.__version__":
            assert is_upwards(here, layer(module), ORDER, in_function), f"{here} imports {module}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "gram").rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_inside_gram_point_upwards_only(path):
    here = path.relative_to(PACKAGE / "gram").with_suffix("").parts[0]
    for module, in_function in imports_that_run(path):
        if module.startswith("rankernel.gram."):
            there = module.split(".")[2]
            assert is_upwards(here, there, GRAM_ORDER, in_function), f"gram.{here} imports {module}"


def test_every_module_has_a_name_of_its_own():
    names = Counter(path.stem for path in FILES if path.stem not in ("__init__", "__main__"))
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_private_names_stay_in_their_folder(path):
    """What begins with an underscore is imported only from inside the folder that it belongs to."""
    folder = ("rankernel", *path.relative_to(PACKAGE).parent.parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rankernel":
            for name in ((*node.module.split("."), alias.name) for alias in node.names):
                private = [part.startswith("_") and not part.startswith("__") for part in name]
                owner = name[: private.index(True)] if any(private) else ()
                assert folder[: len(owner)] == owner, f"{'.'.join(name)} is private to {'.'.join(owner)}"


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
