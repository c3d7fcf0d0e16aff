"""HTML of results in notebooks: small, escaped, in the colours of the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from rankernel._utils.checks import printable

MAX_LINES = 40
MAX_TEXT = 120  # characters of a value
BOX = "border-left:3px solid currentColor;padding:2px 0 2px 10px;margin:4px 0;color:inherit;background:transparent"
CELL = "text-align:left;padding:1px 12px 1px 0;border:0;background:transparent"


def html_card(value: Any) -> str:
    """Return an object as HTML: the fields of a dataclass with the default ``repr``, otherwise its text."""
    text = str(value)
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    if text.startswith(f"{type(value).__name__}(") and fields and len(text) > MAX_TEXT // 2:
        return box(type(value).__name__, table([(field.name, short(getattr(value, field.name))) for field in fields]))
    head, *rest = text.splitlines() or [""]
    if len(rest) > MAX_LINES:
        rest = [*rest[:MAX_LINES], f"  ... and {len(rest) - MAX_LINES:,} more lines"]
    return box(head, f'<pre style="{CELL};margin:0">{escape(chr(10).join(rest))}</pre>' if rest else "")


def box(head: str, inside: str) -> str:
    """Return a heading with content below it."""
    return f'<div style="{BOX}"><strong>{escape(head)}</strong>{inside}</div>'


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return the first 40 rows as a table; the first cell of each row is its heading."""
    rows = list(rows)
    more = [(f"and {len(rows) - MAX_LINES:,} more",)] if len(rows) > MAX_LINES else []
    lines = [table_row(head, "col")] * bool(head) + [table_row(row, "row") for row in rows[:MAX_LINES] + more]
    return f'<table style="border-collapse:collapse;margin:0">{"".join(lines)}</table>'


def table_row(cells: Sequence[str], scope: str) -> str:
    """Return one row of a table; all cells of a heading row, otherwise the first, are headings."""
    n_heads = len(cells) if scope == "col" else 1
    heading = f'<th scope="{scope}" style="{CELL};font-weight:normal;opacity:.7">'
    shown = [escape(printable(cell)) for cell in cells]
    heads = "".join(f"{heading}{text}</th>" for text in shown[:n_heads])
    return f"<tr>{heads}" + "".join(f'<td style="{CELL}">{text}</td>' for text in shown[n_heads:]) + "</tr>"


def short(value: Any) -> str:
    """Return a value in one short line."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"array of shape {' × '.join(map(str, value.shape))}"
    if isinstance(value, float):
        return f"{value:.4g}"
    lines = str(value).splitlines() or [""]
    text = lines[1].strip() if len(lines) > 1 and "ranking" in lines[0] else lines[0]
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
