"""Two groups side by side: the pairs of items that divide them, and what chance makes of their difference."""

from __future__ import annotations

import numpy as np

from rankernel.reports.comparisons import Comparison
from rankernel.reports.markup import Markup, tag
from rankernel.reports.phrases import percent
from rankernel.reports.text_width import fitted_names, text_width
from rankernel.reports.wording import Wording

LEFT, REACH, ROW, TOP = 6.0, 308.0, 46.0, 26.0


def pairs_picture(comparison: Comparison, names: tuple[str, str], words: Wording) -> Markup | None:
    """Return for some pairs of items the share of both groups that prefers the first to the second."""
    pairs = comparison.pairs
    if not pairs:
        return None
    height = TOP + ROW * len(pairs) + 20
    between = "but not" if words.approvals else "before"
    named = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    short = dict(zip(named, fitted_names(named, 125), strict=True))
    parts = [*key(names), tag("path", d=f"M{LEFT + REACH / 2:g} {TOP:g}V{height - 16:g}", class_="zero")]
    for number, pair in enumerate(pairs):
        y = TOP + 4 + number * ROW
        parts.append(
            tag("text", f"{short[pair.first]} {between} {short[pair.second]}", x=LEFT, y=y + 11, class_="label")
        )
        for place, (share, (low, high)) in enumerate(zip(pair.shares, pair.intervals, strict=True)):
            line, x = y + 21 + 11 * place, LEFT + REACH * share
            parts += [
                tag("path", d=f"M{LEFT + REACH * low:.1f} {line:g}H{LEFT + REACH * high:.1f}", class_="interval"),
                tag("rect", x=x - 4, y=line - 4, width=8.0, height=8.0, class_="fill a" if place == 0 else "fill b"),
            ]
    parts += [
        tag("text", "0%", x=LEFT, y=height - 2, class_="axis"),
        tag("text", "100%", x=LEFT + REACH, y=height - 2, class_="axis end"),
    ]
    spoken = "; ".join(
        f"{words.prefer(pair.first, pair.second)}: {percent(pair.shares[0])} (the reverse {percent(pair.against[0])}) "
        f"and {percent(pair.shares[1])} (the reverse {percent(pair.against[1])})"
        for pair in pairs
    )
    label = f"Shares of {names[0]} and of {names[1]} that {spoken}."
    return tag("svg", *parts, class_="shift", viewBox=f"0 0 320 {height:g}", role="img", aria_label=label)


def key(names: tuple[str, str]) -> list[Markup]:
    """Return which colour is which group."""
    parts, x = [], LEFT
    for name, colour in zip(fitted_names(names, 130), ("a", "b"), strict=True):
        parts += [
            tag("rect", x=x, y=3.0, width=9.0, height=9.0, class_=f"fill {colour}"),
            tag("text", name, x=x + 14, y=12.0, class_="axis"),
        ]
        x += 30 + text_width(name, 12.0)
    return parts


def null_picture(comparison: Comparison, words: Wording) -> Markup:
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
        f"When {words.voters} are divided at random the difference lies between {null.min():.2g} and "
        f"{null.max():.2g}; it is {comparison.statistic:.2g}."
    )
    return tag("svg", *bars, *mark, class_="null", viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=spoken)
