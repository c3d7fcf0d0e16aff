"""Mutation tests of the numerical core and the readers: ``python -m benchmarks.mutation``.

A mutant is a module in which one operator, comparison, constant, branch or order of arguments was changed. The tests
of the module run on it in a forked process; a mutant on which all of them pass has survived. Compiled loops of a
mutant, and of the modules that import it, are compiled again.

Results are written to ``docs/benchmarks/mutation.json`` after every mutant. Killed mutants are not run again while
their module is unchanged; survivors are, unless the file explains them (``explained``).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rankernel"
RESULTS = ROOT / "docs" / "benchmarks" / "mutation.json"

CORE = {  # module: its tests, the quickest first
    "_loops/pairs.py": "test_distances.py gram/exact/test_exact_features.py gram/test_montecarlo.py",
    "completions/draws.py": "completions/test_couplings.py completions/test_draws.py",
    "completions/marginals.py": "completions/test_marginals.py gram/exact/test_exact_features.py",
    "gram/exact/cayley.py": "gram/exact/test_exact_cayley.py",
    "gram/exact/diffusion.py": "gram/exact/test_exact_diffusion.py",
    "gram/exact/features.py": "gram/exact/test_exact_features.py gram/test_partial_orders.py",
    "gram/exact/footrule.py": "gram/exact/test_exact_footrule.py",
    "gram/exact/hamming.py": "gram/exact/test_exact_hamming.py",
    "gram/exact/kendall.py": "gram/exact/test_exact_kendall.py gram/exact/test_exact_mallows.py gram/test_gram.py",
    "gram/exact/mallows_free.py": "gram/exact/test_exact_mallows_free.py",
    "gram/exact/spearman.py": "gram/exact/test_exact_spearman.py",
    "gram/jackknife.py": "gram/test_jackknife.py gram/test_normalize.py",
    "stats/groups.py": "stats/test_k_sample.py stats/test_mmd.py stats/test_effects.py",
    "stats/base.py": "stats/test_effects.py stats/test_mmd.py",
    "stats/_permutations.py": "stats/test_moments.py stats/test_mmd.py stats/test_hsic.py stats/test_k_sample.py "
    "stats/test_goodness_of_fit.py stats/test_change_points.py",
    "stats/hsic.py": "stats/test_hsic.py stats/test_trend.py",
    "stats/pairwise.py": "stats/test_k_sample.py",
    "stats/mmd.py": "stats/test_mmd.py gram/test_streaming.py",
    "stats/paired.py": "stats/test_paired.py stats/test_effects.py stats/test_power.py",
    "models/kemeny_search.py": "models/test_consensus.py reports/test_standing.py",
    "learn/hierarchy.py": "learn/test_hierarchy.py",
    "io/blt.py": "io/test_formats.py io/test_reader_contract.py",
    "io/cvr.py": "io/test_formats.py io/test_reader_contract.py",
    "io/pairs.py": "io/test_formats.py test_preferences.py test_comparisons.py",
    "io/preflib.py": "io/test_preflib.py io/test_reader_contract.py",
    "io/layouts.py": "io/test_layouts.py io/test_tables.py io/test_formats.py",
}

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


# ---------------------------------------------------------------------- mutants


PRICES = {"seconds", "one_code", "steps", "n_steps", "states_and_steps", "chain_states"}


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that compute a value: no annotations, decorators or words of errors, and no prices or limits."""
    for field, value in ast.iter_fields(tree):
        if field in {"annotation", "returns", "decorator_list"} or changes_no_value(tree):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from places(node)


def changes_no_value(node: ast.AST) -> bool:
    """Say whether a node only words an error, or says how long something takes or how much is done at once."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.keyword(arg="strict"):
            return True
        case ast.FunctionDef(name=name):
            return name in PRICES
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.isupper()
    return False


def change(node: ast.AST) -> str | None:
    """Change a node in place, and say how; None if there is nothing to change."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS:
            node.op = OPERATORS[type(op)]()
            return f"{type(op).__name__} -> {type(node.op).__name__}"
        case ast.Compare(ops=[op, *_]) if type(op) in OPERATORS:
            node.ops[0] = OPERATORS[type(op)]()
            return f"{type(op).__name__} -> {type(node.ops[0]).__name__}"
        case ast.Constant(value=bool()):
            node.value = not node.value
            return f"{not node.value} -> {node.value}"
        case ast.Constant(value=int() | float()):
            node.value += 1
            return f"{node.value - 1} -> {node.value}"
        case ast.If() | ast.IfExp():
            node.test = ast.Constant(False)
            return "branch dropped"
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
            if isinstance(node.op, ast.Not):
                node.operand = ast.UnaryOp(ast.Not(), node.operand)
            return "sign or not dropped"
        case ast.Call(args=[first, second, *rest]) if not (isinstance(first, ast.Starred) or symmetric(node.func)):
            node.args = [second, first, *rest]
            return "arguments swapped"
    return None


def symmetric(function: ast.expr) -> bool:
    """Say whether a function is known not to care about the order of its arguments."""
    return ast.unparse(function).rpartition(".")[2] in {"min", "max", "minimum", "maximum", "array_equal", "gcd"}


def mutants(module: str) -> list[tuple[int, dict[str, Any]]]:
    """Return all that can be changed in a module: which of its places, and what a reader wants to know of it."""
    text = (SOURCE / module).read_text(encoding="utf-8")
    lines = text.splitlines()
    found = []
    for index, node in enumerate(list(places(ast.parse(text)))):
        line = getattr(node, "lineno", 0)
        how = change(node)
        if how is not None:
            about = {"module": module, "line": line, "column": node.col_offset, "change": how}
            found.append((index, about | {"code": lines[line - 1].strip()}))
    return found


def mutated(module: str, place: int) -> ast.Module:
    """Return a module with one place changed."""
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    change(list(places(tree))[place])
    return ast.fix_missing_locations(tree)


def affected(module: str) -> set[str]:
    """Return the modules into which the compiled loops of a module are compiled: itself, and modules importing it."""
    name = "rankernel." + module.removesuffix(".py").replace("/", ".")
    imports = {
        "rankernel." + path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", "."): {
            node.module for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)
        }
        for path in SOURCE.rglob("*.py")
    }
    result, new = set(), {name}
    while new:
        result |= new
        new = {importer for importer, modules in imports.items() if modules & result} - result
    return result


def forget(modules: set[str]) -> None:
    """Make Numba compile some modules again, without caching them."""
    from numba.core.dispatcher import Dispatcher

    enable_caching = Dispatcher.enable_caching

    def enable(self: Any) -> None:
        if self.py_func.__module__ not in modules:
            enable_caching(self)

    Dispatcher.enable_caching = enable


class MutantLoader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the mutant in place of its module."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.name = "rankernel." + module.removesuffix(".py").replace("/", ".")
        self.path = SOURCE / module
        self.code = compile(tree, str(self.path), "exec")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def exec_module(self, module: Any) -> None:
        exec(self.code, module.__dict__)


# ---------------------------------------------------------------------- running


class Impatient:
    """Makes hypothesis stop at the first counterexample, without shrinking it."""

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("mutation", deadline=None, phases=[Phase.explicit, Phase.generate], database=None)
        settings.load_profile("mutation")


def outcome(module: str, place: int | None, seconds: int) -> tuple[str, float]:
    """Run the tests of a module on a mutant of it, or on itself; return what happened and the processor time."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        import pytest

        try:
            if place is not None:
                forget(affected(module))
                sys.meta_path.insert(0, MutantLoader(module, mutated(module, place)))
            tests = [str(ROOT / "tests" / name) for name in CORE[module].split()]
            options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--assert=plain"]
            code = pytest.main([*options, *tests], plugins=[Impatient()])
        except BaseException:
            code = 3
        os._exit(int(code))
    _, status, used = os.wait4(child, 0)
    spent = used.ru_utime + used.ru_stime
    if os.WIFSIGNALED(status):
        return "killed: no end", spent
    code = os.WEXITSTATUS(status)
    if code not in (0, 1, 2):  # 2: the mutant cannot even be imported; others are no answer of a test
        raise SystemExit(f"{module}: pytest ended with {code}")
    return "survived" if code == 0 else "killed", spent


def read() -> dict[str, Any]:
    """Return the stored results."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"rows": []}


def write(content: dict[str, Any]) -> None:
    """Store the results, atomically."""
    temporary = RESULTS.with_suffix(".part")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    temporary.replace(RESULTS)


def is_done(row: dict[str, Any], stamp: str) -> bool:
    """Whether a mutant need not be run again: its module is unchanged, and it was killed or explained."""
    return row["source"] == stamp and (row["result"] != "survived" or "explained" in row)


def study(module: str, n_mutants: int) -> None:
    """Run mutants of one module, drawn by a fixed seed, until there are enough of them."""
    import numba  # noqa: F401 - loaded once, for all mutants
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.base  # noqa: F401

    sys.path.insert(0, str(ROOT / "src"))
    stamp = hashlib.sha256((SOURCE / module).read_bytes()).hexdigest()[:12]
    content = read()
    content["rows"] = [row for row in content["rows"] if row["module"] != module or is_done(row, stamp)]
    done = {(row["line"], row["column"], row["change"]) for row in content["rows"] if row["module"] == module}
    found = mutants(module)
    chosen = random.Random(module).sample(found, min(n_mutants, len(found)))
    chosen = [
        (place, about) for place, about in chosen if (about["line"], about["column"], about["change"]) not in done
    ]
    if not chosen:
        return
    healthy, seconds = outcome(module, None, 600)
    if healthy != "survived":
        raise SystemExit(f"{module}: its tests fail without any change")
    for place, about in chosen:
        result, spent = outcome(module, place, int(5 * seconds) + 10)
        print(f"{result:15} {spent:5.1f} s  {module}:{about['line']}  {about['change']}  {about['code']}", flush=True)
        content["rows"].append(about | {"result": result, "source": stamp})
        write(content)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=list(CORE), help="such as io/preflib.py; all by default")
    parser.add_argument("--each", type=int, default=8, help="mutants of each module")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in this process, which is prepared
    options = parser.parse_args()
    if options.here:
        for module in options.modules:
            study(module, options.each)
        return
    for module in options.modules:
        command = [sys.executable, "-m", "benchmarks.mutation", "--here", "--each", str(options.each), module]
        subprocess.run(command, cwd=ROOT, check=False)
    rows = read()["rows"]
    print(f"{len(rows)} mutants:", dict(Counter(row["result"] for row in rows)))
    for row in rows:
        if row["result"] == "survived" and "explained" not in row:
            print(f"survived: {row['module']}:{row['line']}  {row['change']}  {row['code']}")


if __name__ == "__main__":
    main()
