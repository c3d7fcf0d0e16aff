"""From the options of a command to rankings, kernel and method.

Kernels and methods are texts: ``mallows:nu=median``, ``0.5*kendall+hamming``, ``montecarlo:draws=64``.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import numpy as np
import typer

from rankernel._utils.checks import printable
from rankernel.cli.terminal import SHOWN_GROUPS, UsageError, listed, option_text, progress, usage_errors
from rankernel.data import Data, has_ordered_pair, select_items
from rankernel.errors import Argument, ArgumentError, RankingError
from rankernel.io.source import ReadOptions, option_choices, option_texts
from rankernel.rankings import Rankings
from rankernel.reports.ballots import Source
from rankernel.reports.text import plural, round_numbers

if TYPE_CHECKING:
    from rankernel.comparisons import Comparisons
    from rankernel.gram.plan import MethodLike
    from rankernel.kernels.base import Kernel
    from rankernel.reports.summary import Summary

METHODS = ("auto", "exact", "enumeration", "montecarlo")
MONTE_CARLO_ARGUMENTS = {"draws": "n_draws", "coupling": "coupling", "control_variates": "control_variates"}

PLUS = re.compile(r"(?<![0-9.][eE])\+")  # not that of 1e+3
TERM = re.compile(r"(?:(?P<factor>[^*:=]+)\*)?(?P<name>[^*:=]+)(?::(?P<arguments>.*))?", re.DOTALL)


@lru_cache(maxsize=1)
def kernel_classes() -> dict[str, tuple[type[Kernel], tuple[str, ...]]]:
    """Return the kernels by their names in lower case, each with the names of its arguments that are no matrices."""
    from rankernel import kernels
    from rankernel.kernels import SHORT_NAMES

    classes = [getattr(kernels, name) for name in kernels.__all__ if name not in ("Kernel", "Positional")]
    named = {kind.__name__.lower(): kind for kind in classes} | SHORT_NAMES
    fields = {name: [field.name for field in dataclasses.fields(kind)] for name, kind in named.items()}
    return {name: (kind, tuple(each for each in fields[name] if each != "similarity")) for name, kind in named.items()}


def parse_kernel(text: str) -> Kernel:
    """Return the kernel that a text describes, such as ``0.5*kendall+exponential:distance=hamming,nu=median``."""
    return reduce(add, [parse_term(term.strip()) for term in PLUS.split(text)])


def parse_term(text: str) -> Kernel:
    """Return the kernel of one term of a sum."""
    parts, classes = TERM.fullmatch(text), kernel_classes()
    name = parts["name"].strip().lower() if parts else ""
    if parts is None or name not in classes:
        raise UsageError(f"--kernel {printable(text)!r} is unknown; the kernels are {', '.join(classes)}")
    kind, known = classes[name]
    arguments = parse_arguments(parts["arguments"], known, f"--kernel {name}")
    try:
        kernel = kind(**arguments)
        return kernel if parts["factor"] is None else float(parts["factor"]) * kernel
    except (TypeError, ValueError) as error:
        raise UsageError(f"--kernel {printable(text)!r}: {error}") from None


def parse_arguments(text: str | None, known: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the arguments in ``nu=0.1,distance=hamming``."""
    arguments: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals or not value:
            takes = f"takes {', '.join(f'{each}=...' for each in known)}" if known else "takes no arguments"
            raise UsageError(f"{where} {takes}, not {printable(part)!r}")
        arguments[name] = parse_value(value)
    return arguments


def parse_value(text: str) -> Any:
    """Return a number if the text is one, a tuple if it contains slashes, else the text."""
    if "/" in text:
        return tuple(parse_value(part) for part in text.split("/"))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_method(text: str, seed: int) -> MethodLike:
    """Return the method that a text describes, such as ``montecarlo:draws=20,coupling=iid``."""
    name, _, rest = text.partition(":")
    if name not in METHODS:
        raise UsageError(f"--method {printable(text)!r} is unknown; the methods are {', '.join(METHODS)}")
    if name != "montecarlo" and rest:
        raise UsageError(f"--method {name} takes no arguments, not {printable(rest)!r}")
    from rankernel.gram.montecarlo import MonteCarlo
    from rankernel.gram.plan import Auto

    if name == "auto":
        return Auto(fallback=MonteCarlo(rng=seed))
    if name != "montecarlo":
        return name  # type: ignore[return-value]
    arguments = parse_arguments(rest, tuple(MONTE_CARLO_ARGUMENTS), "--method montecarlo")
    try:
        return MonteCarlo(**{MONTE_CARLO_ARGUMENTS[key]: value for key, value in arguments.items()}, rng=seed)
    except (TypeError, ValueError) as error:
        problem = error.phrase(lambda each: str(each).removeprefix("n_")) if isinstance(error, ArgumentError) else error
        raise UsageError(f"--method {printable(text)!r}: {problem}") from None


# ---------------------------------------------------------------------- options and their groups

READING, COMPUTING, OUTPUT = "Reading the file", "Computing", "Output"
BALLOTS, TABLES = "Reading ballots: repairs and names", "Reading tables and text"
THREADS_VARIABLE = "RANKERNEL_NUM_THREADS"  # default of n_jobs in the library
LINKAGES = ("ward", "average", "complete", "single")


def option(
    names: str, help_text: str, panel: str, default: Any = None, *, choices: tuple[str, ...] = (), **more: Any
) -> Any:
    """Return a field of a group of options: ``names`` are what can be typed and the word for its value."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{printable(value)!r} is not one of {', '.join(choices)}")
        return value

    words = names.split()
    declared = typer.Option(
        *(word for word in words if word.startswith("-")),
        metavar=next((word for word in words if not word.startswith("-")), None),
        help=f"{help_text} One of {', '.join(choices)}." if choices else help_text,
        rich_help_panel=panel,
        show_default=default not in (None, ()) and not isinstance(default, bool),
        **{"callback": check if choices else None, "autocompletion": completion(lambda: choices)} | more,
    )
    return field(default=default, metadata={"declared": declared})


def completion(choices: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a shell completion that offers the choices."""
    return lambda incomplete: [choice for choice in choices() if choice.startswith(incomplete)]


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


# ---------------------------------------------------------------------- options of the readers

READER_OPTIONS = {  # by panel
    READING: {
        "format": "--format NAME",
        "layout": "--layout NAME",
        "items": "--items NAMES",
        "count": "--count COLUMN",
        "label_columns": "--labels COLUMN",
        "ignore": "--ignore COLUMN",
        "contest": "--contest NAME",
        "unlisted": "--unlisted NAME",
    },
    TABLES: {
        "header": "--header/--no-header",
        "columns": "--column ROLE=COLUMN",
        "ascending": "--ascending",
        "separator": "--separator TEXT",
        "delimiter": "--delimiter TEXT",
        "encoding": "--encoding NAME",
        "max_bytes": "--max-bytes N",
    },
    BALLOTS: {
        "skipped": "--skipped NAME",
        "repeated": "--repeated NAME",
        "overvotes": "--overvotes NAME",
        "write_ins": "--write-ins NAME",
        "aliases": "--alias ALIAS=NAME",
        "na_values": "--na-values TEXT",
        "fold_case": "--fold-case",
        "blank": "--blank NAME",
        "withdrawn": "--withdrawn NAME",
    },
}
READ_DEFAULTS = {"format": "auto"} | {each.name: each.default for each in dataclasses.fields(ReadOptions)}
FORMAT_HELP = "Format of the file: auto, PrefLib, BLT, TREC, orders, pairs, table, or 'cast vote record'."


def reader_fields() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the type and the field of each option of the readers."""
    for panel, options in READER_OPTIONS.items():
        for name, names in options.items():
            default = READ_DEFAULTS[name]
            kind: Any = bool if isinstance(default, bool) or name == "header" else int if name == "max_bytes" else str
            if isinstance(default, tuple) or name in ("columns", "aliases"):
                kind, default = list[str], None
            words = f"{first_sentence(name)}{'; may be repeated' * (kind == list[str])}."
            choices = option_choices().get(name, ())
            # Values are checked by ReadOptions.
            given = option(names, words, panel, default, choices=choices, callback=None)
            yield name, kind | None if default is None else kind, given


def first_sentence(name: str) -> str:
    """Return the first sentence of the documentation of an option of the readers."""
    text = " ".join(option_texts().get(name, FORMAT_HELP).split("\n", 1)[-1].split())
    sentence = re.split(r"\. |: ``", text)[0].rstrip(".").replace("``", "").replace('"', "")
    return sentence + ", separated by commas" * (name == "items")


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the readers that differ from their defaults, checked."""
    options = {name: value for name, value in given.items() if value not in (None, READ_DEFAULTS[name])}
    if "items" in options:
        options["items"] = [name.strip() for name in next(csv.reader([options["items"]]), []) if name.strip()]
    for name in {"columns", "aliases"} & options.keys():
        options[name] = dict(key_and_value(name, text) for text in options[name])
    if str(options.get("skipped", "")).isdecimal():
        options["skipped"] = int(options["skipped"])
    if options:
        with usage_errors():
            ReadOptions(**{name: value for name, value in options.items() if name != "format"})
    return options


def key_and_value(name: str, text: str) -> tuple[str, str]:
    """Return the two parts of ``user=expert``."""
    key, sign, value = text.partition("=")
    if not sign or not value:
        form = "ROLE=COLUMN" if name == "columns" else "ALIAS=NAME"
        raise UsageError(f"{option_text(Argument(name))} {printable(text)} is not of the form {form}")
    return key.strip(), value.strip()


# ---------------------------------------------------------------------- groups of options

FILE_HELP = "PrefLib, BLT, CSV, or a cast vote record; by default the bundled example."
KERNEL_HELP = (
    "kendall, mallows:nu=0.1, hamming, spearman, polynomial:degree=3, exponential:distance=hamming, "
    "diffusion:beta=0.2; top-weighted rbo:p=0.9, averageoverlap:depth=10, dcg:depth=10; arguments are separated by "
    "commas; sums such as 0.5*kendall+hamming."
)
METHOD_HELP = (
    "auto, exact, enumeration, or montecarlo:draws=64; further arguments after commas: coupling=antithetic, "
    "control_variates=0."
)
K_HELP = "Number of clusters; by default as many as are significant and stable."
File: TypeAlias = Annotated[Path | None, typer.Argument(metavar="FILE", help=FILE_HELP, show_default=False)]


@dataclass(frozen=True)
class Reading:
    """How a file is read: its groups, and the options of its reader that were given."""

    by: str | None = option("--by COLUMN", "Column with the group of each row.", READING)
    only: list[str] | None = option("--only GROUP", "Group of --by to keep; may be repeated.", READING)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Computing:
    """How kernel values are computed."""

    kernel: str = option(
        "--kernel KERNEL", KERNEL_HELP, COMPUTING, "mallows:nu=median", autocompletion=completion(kernel_classes)
    )
    method: str = option("--method METHOD", METHOD_HELP, COMPUTING, "auto", autocompletion=completion(lambda: METHODS))
    seed: int = option("--seed N", "Seed of the random generator.", COMPUTING, 0, min=0)
    jobs: int | None = option(
        "--jobs N", "Number of threads; by default one per core.", COMPUTING, min=1, callback=set_threads
    )


@dataclass(frozen=True)
class Cutting:
    """How the dendrogram is made, and cut into clusters."""

    k: int | None = option("--k N", K_HELP, COMPUTING, min=1)
    linkage: str = option("--linkage NAME", "Linkage of hierarchical clustering.", COMPUTING, "ward", choices=LINKAGES)


@dataclass(frozen=True)
class Showing:
    """How results are printed."""

    json: bool = option("--json", "Print JSON.", OUTPUT, default=False)
    debug: bool = option("--debug", "Print tracebacks.", OUTPUT, default=False, callback=set_debug, is_eager=True)


@dataclass(frozen=True)
class Writing(Showing):
    """How results are printed and written."""

    output: Path | None = option("-o --output FILE", "File to write.", OUTPUT)
    force: bool = option("--force -f", "Replace an existing file.", OUTPUT, default=False)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with a parameter for each option of its groups, from which typer builds the command line."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters = [
        parameter
        for name, each in inspect.signature(command).parameters.items()
        for parameter in (group_parameters(groups[name]) if name in groups else [each.replace(annotation=hints[name])])
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        if "count" in given:
            given["options"] = read_options({name: given.pop(name) for name in READ_DEFAULTS})
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in dataclasses.fields(group)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def group_parameters(group: Any) -> Iterator[inspect.Parameter]:
    """Yield the options of a group as parameters of a command."""
    types, own = get_type_hints(group), dataclasses.fields(group)
    named = [(each.name, types[each.name], each) for each in own if each.name != "options"]
    for name, kind, each in named + list(reader_fields()) * (len(named) < len(own)):
        annotation: Any = Annotated[kind, each.metadata["declared"]]
        yield inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=each.default, annotation=annotation
        )


MAX_NAMES = 8  # in a message


# ---------------------------------------------------------------------- rankings


def read_source(file: Path | None, reading: Reading, *labels: str, battles: bool = False) -> Source:
    """Return the rankings of a file, by default the bundled example, with their groups and further label columns.

    With ``battles``, the source of a table of comparisons contains the comparisons, too.
    """
    from rankernel.io.registry import read

    if reading.only and file is not None and reading.by is None:
        raise UsageError("--only selects groups of a column: give --by COLUMN, too")
    with progress("Reading"):
        if file is None:
            source = bundled_example(reading, labels)
        else:
            columns = [*([reading.by] if reading.by else []), *reading.options.get("label_columns", []), *labels]
            named = {"label_columns": list(dict.fromkeys(columns))} if columns else {}
            data: Any = read_battles(file, reading) if battles and not labels else None
            data = read(file, **reading.options | named) if data is None else data
            with usage_errors():
                source = Source.of(data, reading.by, printable(reading.by or ""), origin=file.name)
        return select_groups(source, reading.only) if reading.only else source


def read_battles(file: Path, reading: Reading) -> Comparisons | None:
    """Return the comparisons of a file; None if it is no table of comparisons."""
    from rankernel.io import read_comparisons
    from rankernel.io.registry import is_table_of_pairs

    options = {name: value for name, value in reading.options.items() if name not in ("label_columns", "format")}
    wanted = reading.options.get("format")
    is_known = wanted == "pairs" if wanted else is_table_of_pairs(file, options)
    return read_comparisons(file, **options) if is_known else None


def bundled_example(reading: Reading, labels: tuple[str, ...]) -> Source:
    """Return the bundled example, grouped by district or bloc."""
    from rankernel.datasets import load_example

    for name in reading.options:
        raise UsageError(f"{option_text(Argument(name))} is for a file; the bundled example has no options")
    if labels:
        raise UsageError(f"the bundled example has no column {printable(labels[0])!r}; name a file")
    example = load_example()
    groups = {"district": example.districts, "group": example.groups}
    column = reading.by or "district"
    if column not in groups:
        raise UsageError(f"--by {printable(column)}: the bundled example has the groups {', '.join(groups)}")
    description = " ".join(example.description.split())
    title = "The council election of Nowhere Bay"
    return Source(example.rankings, title, "the bundled example", description, column, groups[column], noun="candidate")


def select_groups(source: Source, wanted: list[str]) -> Source:
    """Return the rows of some groups."""
    groups, of_row = source.named_groups
    for name in wanted:
        if name not in groups:
            known = listed(groups, SHOWN_GROUPS)
            raise UsageError(
                f"--only: there is no group {printable(name)!r} in {source.group_name}; the groups are {known}"
            )
    rows = np.isin(of_row, [groups.index(name) for name in wanted])
    if source.comparison_groups is not None and source.comparisons is not None:
        chosen = {"comparisons": source.comparisons[rows], "comparison_groups": source.comparison_groups[rows]}
        return dataclasses.replace(source, **chosen)  # type: ignore[arg-type]
    assert source.groups is not None
    about = None if source.about is None else dataclasses.replace(source.about, n_all_in_first=None, blank_rows=())
    return dataclasses.replace(source, rankings=source.rankings[rows], groups=source.groups[rows], about=about)


# ---------------------------------------------------------------------- two files with different items


def align_items(sources: list[Source], over: str) -> tuple[list[Data], str]:
    """Return the rankings of two sources over the same items, and a description if the items differ."""
    first, second = (source.rankings for source in sources)
    shared = [item for item in first.items if item in second.items]
    unshared = [[item for item in a.items if item not in b.items] for a, b in ((first, second), (second, first))]
    if not any(unshared):
        return [first, over_items(second, first.items)], ""
    missing = "; ".join(
        f"only in {source.origin}: {listed(items, MAX_NAMES)}"
        for source, items in zip(sources, unshared, strict=True)
        if items
    )
    if over == "union":
        union = (*first.items, *unshared[1])
        description = f"all {len(union)} items of both files (--over union), free where a file lacks them; {missing}"
        return [over_items(data, union) for data in (first, second)], description
    if len(shared) < 2:
        raise RankingError(
            f"the files have {plural(len(shared), 'item')} in common ({missing}); --over union compares them over all "
            "items, and --fold-case merges names that differ only in case or spaces"
        )
    description = f"the {len(shared)} items in both files (--over intersection); {missing}"
    aligned = []
    for source in sources:
        data = over_items(source.rankings, tuple(shared))
        informative = has_ordered_pair(data)
        if not informative.any():
            raise RankingError(f"no row of {source.origin} orders the items in common; give --over union")
        if not informative.all():
            n_dropped = int(data.counts[~informative].sum())
            description += f"; dropped: {plural(n_dropped, 'voter')} of {source.origin} who do not order these items"
        aligned.append(data[informative])
    return aligned, description


def over_items(data: Data, items: tuple[str, ...]) -> Data:
    """Return the rows over the given items; items that the data lack are free."""
    known = select_items(data, [data.items.index(item) for item in items if item in data.items])
    if len(known.items) == len(items):
        return known
    return known.with_items(items, unlisted="free") if isinstance(known, Rankings) else known.with_items(items)


# ---------------------------------------------------------------------- rankings with kernel and method


@dataclass(frozen=True, eq=False)
class Job:
    """The rankings, the kernel, the method and the seed of a command."""

    source: Source
    kernel: Kernel
    method: MethodLike
    seed: int

    def summarize(self, cutting: Cutting, **settings: Any) -> Summary:
        """Return the results that the report shows, with a progress bar."""
        from rankernel.reports.clusters import Settings
        from rankernel.reports.summary import summarize

        chosen = Settings(self.kernel, self.method, cutting.k, cutting.linkage, rng=self.seed, **settings)
        with progress("Ballots") as step:
            return summarize(self.source, chosen, step)

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of voters and items, for JSON."""
        return {"n_voters": self.source.rankings.n_voters, "n_items": self.source.rankings.n_items}

    def facts(self, values: str) -> dict[str, str]:
        """Return a description of the data and of how kernel values are computed."""
        rankings, words, battles = self.source.rankings, self.source.wording, self.source.comparisons
        sizes = [] if battles is None else [plural(len(battles), "comparison")]
        if battles is None or battles.judges:
            sizes.append(words.count_voters(rankings.n_voters if battles is None else battles.n_judges))
        return {
            "data": f"{self.source.title}: {', '.join([*sizes, words.count_items(rankings.n_items)])}",
            "read as": self.source.reading,
            "kernel": round_numbers(str(self.kernel)),
            "values": values,
        }


def parse_computing(computing: Computing, auto: bool = False) -> tuple[Kernel | None, MethodLike]:
    """Return the kernel and the method of a command; with ``auto``, the kernel "auto" is None."""
    with progress("Starting"):  # the numerical modules are imported here
        kernel = None if auto and computing.kernel == "auto" else parse_kernel(computing.kernel)
        return kernel, parse_method(computing.method, computing.seed)


def read_job(file: Path | None, reading: Reading, computing: Computing, battles: bool = False) -> Job:
    """Return the job of a command; the options are checked before the file is read."""
    kernel, method = parse_computing(computing)
    assert kernel is not None
    source = read_source(file, reading, battles=battles)
    with progress("Kernel"):
        return Job(source, kernel.resolve(source.rankings), method, computing.seed)
