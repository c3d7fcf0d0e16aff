"""BlockEstimate: first choices or approvals of all items, and what sets a cluster apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.reports.markup import Markup, tag
from rankernel.reports.phrases import percent
from rankernel.reports.summary import Summary
from rankernel.reports.text_width import fitted_names, text_width
from rankernel.reports.wording import Wording

ROW = 26.0
MOST_ITEMS = 25
SIZE = 14.0  # of the letters
TOGETHER = 9  # bars that stay on one page of paper


@dataclass(frozen=True)
class BarSize:
    """How large a picture of bars is."""

    width: float
    longest: float  # room for a name
    places: bool  # whether there is room for mean places


WIDE = BarSize(780.0, 260.0, places=True)
NARROW = BarSize(342.0, 150.0, places=False)


def first_choices(study: Summary, size: BarSize, together: int = MOST_ITEMS) -> list[Markup]:
    """Return how often each item is first or approved of, the most frequent first, so many bars in a picture."""
    shown = np.lexsort((study.places, -study.shares))[:MOST_ITEMS].tolist()
    parts = [shown[start : start + together] for start in range(0, len(shown), together)]
    names = dict(
        zip(shown, fitted_names([study.ballots.rankings.items[i] for i in shown], size.longest, SIZE), strict=True)
    )
    return [bars(study, part, names, size, head=part is parts[0]) for part in parts]


def bars(study: Summary, shown: list[int], names: dict[int, str], size: BarSize, head: bool) -> Markup:
    """Return the bars of some items, as long as those of all that are named."""
    items, shares, approvals = study.ballots.rankings.items, study.shares, study.words.approvals
    title, places = "approved by" if approvals else "first choices", size.places and not approvals
    largest = max(float(shares[list(names)].max()), 1e-9)
    left = 12 + max(text_width(name, SIZE) for name in names.values())
    room = size.width - left - (130 if places else 50)
    top = 22.0 if head else 0.0
    parts = [tag("text", title, x=left, y=14.0, class_="axis")] if head else []
    if places and head:
        parts.append(tag("text", "mean place", x=size.width, y=14.0, class_="axis end"))
    for number, item in enumerate(shown):
        y, width = top + number * ROW, room * float(shares[item]) / largest
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
        viewBox=f"0 0 {size.width:g} {top + len(shown) * ROW:g}",
        role="img",
        aria_label=f"{title.capitalize()}. {spoken}.",
    )


def striking(shift: FloatArray, least: float, most: int = 6) -> list[int]:
    """Return the items that stand most differently, from those that stand higher to those that stand lower."""
    largest = np.argsort(-np.abs(shift), kind="stable")[:most]
    kept = [int(item) for item in largest if abs(shift[item]) >= least]
    return sorted(kept, key=lambda item: float(shift[item]))


def shift_bars(
    items: tuple[str, ...], shift: FloatArray, largest: float, shade: str, title: str, words: Wording
) -> Markup | None:
    """Return by how much items stand higher (to the right) or lower (to the left) than usual.

    ``largest`` is the shift whose bar is as long as there is room for, so that several pictures can be compared.
    """
    shown = striking(shift, words.least_shift)
    if not shown:
        return None
    middle, reach = 152.0, 108.0  # half of the width, less a number
    names = fitted_names([items[item] for item in shown], middle - 10)
    parts = [tag("path", d=f"M{middle:g} 2V{2 + len(shown) * 22:g}", class_="zero")]
    for number, (item, name) in enumerate(zip(shown, names, strict=True)):
        y, value = 2 + number * 22.0, float(shift[item])
        length = reach * abs(value) / largest
        higher = value < 0
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
                words.signed_shift(value),
                x=middle + length + 6 if higher else middle - length - 6,
                y=y + 16,
                class_="number" if higher else "number end",
            ),
        ]
    spoken = "; ".join(f"{items[item]} {words.shift_words(float(shift[item]))}" for item in shown)
    return tag(
        "svg",
        *parts,
        class_="shift",
        viewBox=f"0 0 300 {4 + len(shown) * 22:g}",
        role="img",
        aria_label=f"{title}, in {words.unit}: {spoken}.",
    )
