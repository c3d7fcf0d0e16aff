"""Bars: first choices of all items, what sets a cluster apart, and the null distribution of a test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel.analysis.comparisons import Comparison
from rankernel.analysis.phrases import percent, shift_text
from rankernel.analysis.summary import Summary
from rankernel.arrays import FloatArray
from rankernel.pages.markup import Markup, tag
from rankernel.pages.story import shown_shares
from rankernel.pages.text_width import fitted, text_width

ROW = 26.0
MOST_ITEMS = 25
SIZE = 14.0  # of the letters


@dataclass(frozen=True)
class BarSize:
    """How large a picture of bars is."""

    width: float
    longest: float  # room for a name
    places: bool  # whether there is room for mean places


WIDE = BarSize(780.0, 260.0, places=True)
NARROW = BarSize(342.0, 150.0, places=False)


def first_choices(study: Summary, size: BarSize) -> Markup:
    """Return how often each item is first or approved of, the most frequent first."""
    items, shares, approvals = study.ballots.rankings.items, shown_shares(study), study.source.approvals
    shown = np.lexsort((study.places, -shares))[:MOST_ITEMS].tolist()
    title, places = "approved by" if approvals else "first choices", size.places and not approvals
    largest = max(float(shares[shown].max()), 1e-9)
    names = {item: fitted(items[item], size.longest, SIZE) for item in shown}
    left = 12 + max(text_width(name, SIZE) for name in names.values())
    room = size.width - left - (130 if places else 50)
    parts = [tag("text", title, x=left, y=14.0, class_="axis")]
    if places:
        parts.append(tag("text", "mean place", x=size.width, y=14.0, class_="axis end"))
    for number, item in enumerate(shown):
        y, width = 22 + number * ROW, room * float(shares[item]) / largest
        parts += [
            tag("text", names[item], x=left - 12, y=y + 17, class_="label end"),
            tag("rect", x=left, y=y + 4, width=max(width, 1.0), height=ROW - 9, rx=2.0, class_="bar"),
            tag("text", percent(float(shares[item])), x=left + 6 + width, y=y + 17, class_="number"),
        ]
        if places:
            parts.append(tag("text", f"{study.places[item]:.1f}", x=size.width, y=y + 17, class_="number end"))
    spoken = "; ".join(f"{items[item]}: {percent(float(shares[item]))}" for item in shown)
    return tag(
        "svg",
        *parts,
        class_="bars",
        viewBox=f"0 0 {size.width:g} {28 + len(shown) * ROW:g}",
        role="img",
        aria_label=f"{title.capitalize()}. {spoken}.",
    )


def striking(shift: FloatArray, most: int = 6) -> list[int]:
    """Return the items whose mean places differ most, from those that stand higher to those that stand lower."""
    largest = np.argsort(-np.abs(shift), kind="stable")[:most]
    kept = [int(item) for item in largest if abs(shift[item]) >= 0.05]
    return sorted(kept, key=lambda item: float(shift[item]))


def shift_bars(items: tuple[str, ...], shift: FloatArray, largest: float, shade: str, title: str) -> Markup | None:
    """Return by how many places items stand higher (to the right) or lower (to the left) than usual.

    ``largest`` is the shift whose bar is as long as there is room for, so that several pictures can be compared.
    """
    shown = striking(shift)
    if not shown:
        return None
    middle, reach = 152.0, 108.0  # half of the width, less a number
    parts = [tag("path", d=f"M{middle:g} 2V{2 + len(shown) * 22:g}", class_="zero")]
    for number, item in enumerate(shown):
        y, value = 2 + number * 22.0, float(shift[item])
        length = reach * abs(value) / largest
        higher = value < 0
        name, figure = fitted(items[item], middle - 10), f"{'+' if higher else '−'}{abs(value):.1f}"
        parts += [
            tag(
                "rect",
                x=middle if higher else middle - length,
                y=y + 4,
                width=length,
                height=14.0,
                rx=2.0,
                class_=f"fill {shade}" if higher else "fill low",
            ),
            tag("text", name, x=middle + (-8 if higher else 8), y=y + 16, class_="label end" if higher else "label"),
            tag(
                "text",
                figure,
                x=middle + length + 6 if higher else middle - length - 6,
                y=y + 16,
                class_="number" if higher else "number end",
            ),
        ]
    spoken = "; ".join(f"{items[item]} {shift_text(float(shift[item]))}" for item in shown)
    return tag(
        "svg",
        *parts,
        class_="shift",
        viewBox=f"0 0 300 {4 + len(shown) * 22:g}",
        role="img",
        aria_label=f"{title}, in places: {spoken}.",
    )


def pairs_picture(comparison: Comparison, names: tuple[str, str]) -> Markup | None:
    """Return for some pairs of items the share of both groups that puts the first before the second."""
    if not comparison.pairs:
        return None
    left, reach, row = 6.0, 308.0, 46.0
    height = 20 + row * len(comparison.pairs)
    parts = [tag("path", d=f"M{left + reach / 2:g} 2V{height - 16:g}", class_="zero")]
    for number, pair in enumerate(comparison.pairs):
        y = 4 + number * row
        words = f"{fitted(pair.first, 125)} before {fitted(pair.second, 125)}"
        parts.append(tag("text", words, x=left, y=y + 11, class_="label"))
        for place, (share, (low, high)) in enumerate(zip(pair.shares, pair.intervals, strict=True)):
            line, x = y + 21 + 11 * place, left + reach * share
            parts += [
                tag("path", d=f"M{left + reach * low:.1f} {line:g}H{left + reach * high:.1f}", class_="interval"),
                tag("rect", x=x - 4, y=line - 4, width=8.0, height=8.0, class_="fill a" if place == 0 else "fill b"),
            ]
    parts += [
        tag("text", "0%", x=left, y=height - 2, class_="axis"),
        tag("text", "100%", x=left + reach, y=height - 2, class_="axis end"),
    ]
    spoken = "; ".join(
        f"{pair.first} before {pair.second}: {percent(pair.shares[0])} (the reverse {percent(pair.against[0])}) and "
        f"{percent(pair.shares[1])} (the reverse {percent(pair.against[1])})"
        for pair in comparison.pairs
    )
    label = f"Shares that put one before the other, in {names[0]} and {names[1]}. {spoken}."
    return tag("svg", *parts, class_="shift", viewBox=f"0 0 320 {height:g}", role="img", aria_label=label)


def null_picture(comparison: Comparison) -> Markup:
    """Return the null distribution of a test, and where the statistic stands."""
    width, height, base = 260.0, 64.0, 46.0
    null = comparison.null if comparison.null is not None else np.zeros(1)
    low = min(float(null.min()), comparison.statistic, 0.0)
    high = max(float(null.max()), comparison.statistic)
    room = max(high - low, 1e-12)
    counts, _ = np.histogram(null, bins=40, range=(low, low + room))
    step = (width - 20) / len(counts)
    bars = [
        tag(
            "rect",
            x=10 + number * step,
            y=base - 38 * count / counts.max(),
            width=max(step - 0.8, 0.5),
            height=38 * count / counts.max(),
            class_="fill low",
        )
        for number, count in enumerate(counts.tolist())
        if count
    ]
    x = 10 + (width - 20) * (comparison.statistic - low) / room
    mark = [
        tag("path", d=f"M{x:.1f} 4V{base:g}", class_="found"),
        tag("text", "found", x=min(max(x, 22.0), width - 22), y=height - 4, class_="axis middle"),
        tag("path", d=f"M10 {base:g}H{width - 10:g}", class_="zero"),
    ]
    if x > 90:
        mark.append(tag("text", "chance", x=10 + (width - 20) * (0 - low) / room, y=height - 4, class_="axis"))
    spoken = (
        f"When voters are divided at random the difference lies between {null.min():.2g} and {null.max():.2g}; it is "
        f"{comparison.statistic:.2g}."
    )
    return tag("svg", *bars, *mark, class_="null", viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=spoken)
