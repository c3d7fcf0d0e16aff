"""One page of everything, as Markdown and as HTML, and the same numbers as CSV and JSON."""

from __future__ import annotations

import json
import platform
from html import escape
from importlib.metadata import PackageNotFoundError, version

from rankernel import __version__
from reproduction.outcome import SYNTHETIC, Outcome, Table
from reproduction.study import Study, write_text

TITLE = "The paper's experiments, measured again"
INTRODUCTION = (
    "Antithetic and Monte Carlo kernel estimators for partial rankings (Lomeli, Rowland, Gretton, Ghahramani): every "
    "table and figure of the paper beside what this package measures, with the protocol. Nothing was tuned to agree; "
    "where the paper's text admits several readings, all are shown."
)
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "GPy")


def write_all(study: Study, outcomes: list[Outcome]) -> None:
    """Write all files: README.md, index.html, results.json, and a CSV file for each table."""
    for outcome in outcomes:
        for table in outcome.tables:
            write_text(study.folder / "tables" / f"{table.name}.csv", table.csv())
    write_text(study.folder / "README.md", markdown(study, outcomes))
    write_text(study.folder / "index.html", html(study, outcomes))
    write_text(study.folder / "results.json", record(study, outcomes))


def provenance(study: Study, outcomes: list[Outcome]) -> list[str]:
    """Return how this page came about."""
    names = " ".join(outcome.name for outcome in outcomes)
    quick = " --quick" if study.quick else ""
    size = "A quick run: few repetitions, to see that everything works. " if study.quick else ""
    if any(outcome.synthetic for outcome in outcomes):
        size += f"Without the SUSHI data: numbers with {SYNTHETIC} are of synthetic data. "
    libraries = ", ".join(f"{name} {installed(name)}" for name in LIBRARIES)
    return [
        (
            f"{size}Command: `rankernel reproduce {names}{quick} --seed {study.seed}`. Seed: {study.seed}. The same "
            "seed gives the same numbers to the last digit."
        ),
        f"rankernel {__version__}, Python {platform.python_version()}, {libraries}.",
    ]


def installed(name: str) -> str:
    """Return the version of a library."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def record(study: Study, outcomes: list[Outcome]) -> str:
    """Return all results that are the same every time, with all digits."""
    found = {
        outcome.name: {
            "title": outcome.title,
            "protocol": outcome.protocol,
            "tables": {table.name: table.record() for table in outcome.tables},
            "findings": outcome.findings,
        }
        for outcome in outcomes
    }
    everything = {"seed": study.seed, "quick": study.quick, "version": __version__, "experiments": found}
    return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------------- Markdown


def markdown(study: Study, outcomes: list[Outcome]) -> str:
    """Return the page as Markdown."""
    parts = [f"# {TITLE}", INTRODUCTION, *provenance(study, outcomes)]
    for outcome in outcomes:
        parts += [f"## {outcome.title}", *outcome.protocol, *map(markdown_table, outcome.tables)]
        parts += [f"![{caption}](figures/{name}.svg)\n\n*{caption}*" for name, caption in outcome.figures]
        if outcome.findings:
            parts += ["**What holds**", "\n".join(f"- {line}" for line in outcome.findings)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """Return a table as Markdown."""
    lines = [table.columns, tuple("---" for _ in table.columns), *table.text()]
    body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"**{table.title}**\n\n{body}" + (f"\n\n{table.note}" if table.note else "")


# ---------------------------------------------------------------------- HTML

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; margin: 0.5rem 0; }
caption { text-align: left; font-weight: 600; padding: 0.4rem 0; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #e5e5e5; text-align: right; }
th { border-bottom: 2px solid #999; vertical-align: bottom; }
th:first-child, td:first-child, td:nth-child(2) { text-align: left; }
.note, figcaption { color: #555; font-size: 0.9rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; }
"""


def html(study: Study, outcomes: list[Outcome]) -> str:
    """Return the page as one HTML file; its pictures are inside."""
    body = [f"<h1>{TITLE}</h1>", *map(paragraph, [INTRODUCTION, *provenance(study, outcomes)])]
    for outcome in outcomes:
        body += [f"<h2>{escape(outcome.title)}</h2>", *map(paragraph, outcome.protocol)]
        body += map(html_table, outcome.tables)
        body += [html_figure(study, name, caption) for name, caption in outcome.figures]
        if outcome.findings:
            items = "".join(f"<li>{marked(line)}</li>" for line in outcome.findings)
            body += ["<h3>What holds</h3>", f"<ul>{items}</ul>"]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{TITLE}</title>'
    return (
        f"<!doctype html>\n<html lang=en><head>{head}<style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{marked(text)}</p>"


def marked(text: str) -> str:
    """Return text with the two marks of Markdown that are used here: emphasis and code."""
    pieces = escape(text, quote=False)
    for sign, tag in (("`", "code"), ("*", "em")):
        halves = pieces.split(sign)
        if len(halves) % 2:  # every mark that opens also closes
            pieces = "".join(f"<{tag}>{part}</{tag}>" if i % 2 else part for i, part in enumerate(halves))
    return pieces


def html_table(table: Table) -> str:
    """Return a table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in table.text())
    note = f"<p class=note>{escape(table.note)}</p>" if table.note else ""
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<div class=wide><table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>{note}"


def html_figure(study: Study, name: str, caption: str) -> str:
    """Return a picture, written into the page."""
    from base64 import b64encode

    picture = b64encode((study.folder / "figures" / f"{name}.svg").read_bytes()).decode("ascii")
    image = f'<img alt="{escape(caption)}" src="data:image/svg+xml;base64,{picture}">'
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"
