"""The options that commands share, and the groups in which commands take them."""

from __future__ import annotations

import csv
import dataclasses
import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError, option_text, usage_errors
from rankernel.cli.kernel_text import METHODS, kernel_names
from rankernel.errors import Argument
from rankernel.io.read_options import ReadOptions, option_choices, option_texts

READING, COMPUTING, OUTPUT = "Reading the file", "Computing", "Output"
THREADS_VARIABLE = "RANKERNEL_NUM_THREADS"  # default of n_jobs in the library
LINKAGES = ("ward", "average", "complete", "single", "weighted")


def set_debug(context: typer.Context, wanted: bool) -> None:
    """Let the group of commands print tracebacks."""
    if wanted:
        context.find_root().command.debug = True  # type: ignore[attr-defined]


def set_threads(context: typer.Context, n_jobs: int | None) -> int | None:
    """Set the default number of threads until the command ends."""
    if n_jobs is not None:
        before = os.environ.get(THREADS_VARIABLE)
        os.environ[THREADS_VARIABLE] = str(n_jobs)

        def restore() -> None:
            del os.environ[THREADS_VARIABLE]
            if before is not None:
                os.environ[THREADS_VARIABLE] = before

        context.call_on_close(restore)
    return n_jobs


def completion(choices: Callable[[], tuple[str, ...]]) -> Callable[[str], list[str]]:
    """Return a shell completion that offers the choices."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices() if choice.startswith(incomplete)]

    return complete


def choice(name: str, choices: tuple[str, ...], help_text: str, panel: str) -> Any:
    """Return an option with a fixed set of values."""

    def check(value: str) -> str:
        if value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}")
        return value

    return typer.Option(
        name,
        metavar="|".join(choices),
        help=help_text,
        callback=check,
        autocompletion=completion(lambda: choices),
        rich_help_panel=panel,
    )


def option(name: str, help_text: str, panel: str, **more: Any) -> Any:
    """Return an option of a panel of the help page."""
    return typer.Option(name, help=help_text, rich_help_panel=panel, show_default=False, **more)


# ---------------------------------------------------------------------- options and arguments

File: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="PrefLib, BLT, CSV, or a cast vote record; by default the bundled example.",
        show_default=False,
    ),
]
By: TypeAlias = Annotated[str | None, option("--by", "Column with the group of each row.", READING, metavar="COLUMN")]
Only: TypeAlias = Annotated[
    list[str] | None, option("--only", "Group of --by to keep; may be repeated.", READING, metavar="GROUP")
]
Kernel: TypeAlias = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="kendall, mallows:nu=0.1, hamming, spearman, polynomial:degree=3, exponential:distance=hamming,nu=median, "
        "diffusion:beta=0.2; top-weighted rbo:p=0.9, averageoverlap:depth=10, dcg:depth=10; sums such as "
        "0.5*kendall+hamming.",
        autocompletion=completion(kernel_names),
        rich_help_panel=COMPUTING,
    ),
]
Method: TypeAlias = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="auto, exact, enumeration, or montecarlo:draws=64,coupling=antithetic,control_variates=0.",
        autocompletion=completion(lambda: METHODS),
        rich_help_panel=COMPUTING,
    ),
]
Seed: TypeAlias = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of the random generator.", rich_help_panel=COMPUTING)
]
Jobs: TypeAlias = Annotated[
    int | None,
    option("--jobs", "Number of threads; by default one per core.", COMPUTING, min=1, callback=set_threads),
]
Permutations: TypeAlias = Annotated[
    int, typer.Option("--permutations", min=1, help="Number of permutations.", rich_help_panel=COMPUTING)
]
Clusters: TypeAlias = Annotated[
    int | None,
    option("--k", "Number of clusters; by default as many as are significant and stable.", COMPUTING, min=1),
]
Linkage: TypeAlias = Annotated[str, choice("--linkage", LINKAGES, "Linkage of hierarchical clustering.", COMPUTING)]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="File to write.", show_default=False, rich_help_panel=OUTPUT),
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", "-f", help="Replace an existing file.", rich_help_panel=OUTPUT)
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)]
Debug: TypeAlias = Annotated[
    bool,
    typer.Option("--debug", help="Print tracebacks.", callback=set_debug, is_eager=True, rich_help_panel=OUTPUT),
]

# ---------------------------------------------------------------------- options of the readers

READ_DEFAULTS = {each.name: each.default for each in dataclasses.fields(ReadOptions)}
NAMES = {"label_columns": "--labels", "columns": "--column"}  # others are --name
METAVARS = {
    **dict.fromkeys(("count", "label_columns", "ignore"), "COLUMN"),
    **dict.fromkeys(("separator", "na_values", "delimiter"), "TEXT"),
    **dict.fromkeys(("contest", "encoding"), "NAME"),
    "columns": "ROLE=COLUMN",
    "items": "NAMES",
    "max_bytes": "N",
}


def read_parameters() -> list[inspect.Parameter]:
    """Return the options of the readers as parameters of a command."""
    parameters = []
    for name, default in READ_DEFAULTS.items():
        kind: Any = bool if isinstance(default, bool) else int if name == "max_bytes" else str
        if isinstance(default, tuple) or name == "columns":
            kind, default = list[str], None
        choices = option_choices().get(name, ())
        declared = typer.Option(
            NAMES.get(name, f"--{name.replace('_', '-')}"),
            metavar="|".join(choices) or METAVARS.get(name),
            help=summary(name, kind),
            autocompletion=completion(functools.partial(tuple, choices)) if choices else None,
            rich_help_panel=READING,
            show_default=bool(default),
        )
        kind = kind | None if default is None else kind
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, declared]))
    return parameters


def summary(name: str, kind: Any) -> str:
    """Return the first sentence of the documentation of an option."""
    text = " ".join(option_texts().get(name, "").split("\n", 1)[-1].split())
    sentence = text.partition(". ")[0].rstrip(".").replace("``", "").replace('"', "")
    if name == "items":
        sentence += ", separated by commas"
    return f"{sentence}{'; may be repeated' * (kind == list[str])}."


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the readers that differ from their defaults, checked."""
    options = {name: value for name, value in given.items() if value not in (None, READ_DEFAULTS[name])}
    if "items" in options:
        options["items"] = [name.strip() for name in next(csv.reader([options["items"]]), []) if name.strip()]
    if "columns" in options:
        options["columns"] = dict(role_and_column(text) for text in options["columns"])
    with usage_errors():
        ReadOptions(**options)
    return options


def role_and_column(text: str) -> tuple[str, str]:
    """Return the role and the name of a column, from ``user=expert``."""
    role, sign, name = text.partition("=")
    if not sign or not name:
        raise UsageError(f"--column {printable(text)} is not of the form user=expert")
    return role.strip(), name.strip()


def option_of(name: str) -> str:
    """Return the option of a field of a group or of the readers."""
    return NAMES.get(name) or option_text(Argument(name))


# ---------------------------------------------------------------------- groups


@dataclass(frozen=True)
class Reading:
    """How a file is read: its groups, and the options of its reader that were given."""

    by: By = None
    only: Only = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Computing:
    """How kernel values are computed."""

    kernel: Kernel = "mallows:nu=median"
    method: Method = "auto"
    seed: Seed = 0
    jobs: Jobs = None


@dataclass(frozen=True)
class Showing:
    """How results are printed."""

    json: Json = False
    debug: Debug = False


@dataclass(frozen=True)
class Writing(Showing):
    """How results are printed and written."""

    output: Output = None
    force: Force = False


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with a parameter for each option of its groups, from which typer builds the command line."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if not dataclasses.is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = hints[name]
        types = get_type_hints(hints[name], include_extras=True)
        for each in dataclasses.fields(hints[name]):
            if each.name == "options":
                parameters += read_parameters()
                continue
            default = getattr(parameter.default, each.name, each.default)
            keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(inspect.Parameter(each.name, keyword, default=default, annotation=types[each.name]))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        if any(group is Reading for group in groups.values()):
            given["options"] = read_options({name: given.pop(name) for name in READ_DEFAULTS})
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in dataclasses.fields(group)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
