"""Who beats whom: a matrix of duels, as a table to be read and as a picture to be taken away."""

from __future__ import annotations

from dataclasses import dataclass

from rankernel.reports.layout import table
from rankernel.reports.markup import Markup, tag
from rankernel.reports.short_names import short_names
from rankernel.reports.summary import Summary
from rankernel.reports.text_width import text_width

MOST_ITEMS = 20
SHADES = 6
LENGTHS = (30, 22)  # of the names of rows and of columns
CELL = 38.0


@dataclass(frozen=True)
class Duel:
    """How two items stand to each other, in percent of all voters."""

    ahead: float
    behind: float
    undecided: float | None  # None where nobody is undecided between any two

    @property
    def colour(self) -> str:
        """Blue where the first wins among those who say, orange where the second does."""
        margin = (self.ahead - self.behind) / max(self.ahead + self.behind, 1e-12)
        level = round(abs(margin) ** 0.6 * SHADES)  # small majorities shall be seen
        return f"{'win' if margin > 0 else 'lose'}{level}" if level else "even"


def duels_shown(study: Summary) -> tuple[list[int], list[list[Duel | None]]]:
    """Return the items that are shown, best first, and the duel of every two of them."""
    found, shown = study.majorities, study.order[:MOST_ITEMS].tolist()
    percents = 100 * found.ahead / found.n_voters
    undecided = 100 * found.undecided / found.n_voters if found.any_undecided else None
    duels = [
        [
            None
            if row == column
            else Duel(
                float(percents[row, column]),
                float(percents[column, row]),
                None if undecided is None else float(undecided[row, column]),
            )
            for column in shown
        ]
        for row in shown
    ]
    return shown, duels


def names_of(study: Summary, shown: list[int]) -> list[tuple[str, ...]]:
    """Return the names of the rows and of the columns."""
    items = tuple(study.ballots.rankings.items[item] for item in shown)
    return [short_names(items, length) for length in LENGTHS]


def preference_table(study: Summary) -> Markup:
    """Return for every two items the shares that prefer one to the other, and neither, best items first."""
    shown, duels = duels_shown(study)
    rows, columns = names_of(study, shown)
    heads = [tag("td"), *[tag("th", tag("span", name), scope="col") for name in columns]]
    body = [
        tag("tr", tag("th", name, scope="row"), *map(duel_cell, own), data_item=item)
        for item, name, own in zip(shown, rows, duels, strict=True)
    ]
    words = study.words
    label = f"Percent of {words.voters} who {words.prefer('the row', 'the column')}, and of undecided"
    return table("duels", label, heads, body, class_="heat")


def duel_cell(duel: Duel | None) -> Markup:
    """Return one cell."""
    if duel is None:
        return tag("td", "", class_="self")
    below = None if duel.undecided is None else tag("small", f"{duel.undecided:.0f}")
    return tag("td", f"{duel.ahead:.0f}", below, class_=duel.colour)


def duels_picture(study: Summary) -> Markup:
    """Return the same as a picture."""
    shown, duels = duels_shown(study)
    rows, columns = names_of(study, shown)
    left, top = (14 + max(text_width(name) for name in names) for names in (rows, columns))
    side = CELL * len(shown)
    parts = []
    for place, (row, column) in enumerate(zip(rows, columns, strict=True)):
        middle = (place + 0.5) * CELL
        x, y = left + middle + 4, top - 8
        parts += [
            tag("text", row, x=left - 8, y=top + middle + 4, class_="label end"),
            tag("text", column, x=x, y=y, class_="label", transform=f"rotate(-90 {x:g} {y:g})"),
        ]
    for i, own in enumerate(duels):
        for j, duel in enumerate(own):
            x, y = left + j * CELL, top + i * CELL
            colour = "self" if duel is None else duel.colour
            parts.append(tag("rect", x=x, y=y, width=CELL - 1, height=CELL - 1, class_=f"cell {colour}"))
            if duel is not None:
                above = y + CELL / 2 + (4 if duel.undecided is None else -2)
                parts.append(tag("text", f"{duel.ahead:.0f}", x=x + CELL / 2, y=above, class_="number middle"))
                if duel.undecided is not None:
                    below = y + CELL / 2 + 12
                    parts.append(tag("text", f"{duel.undecided:.0f}", x=x + CELL / 2, y=below, class_="axis middle"))
    return tag(
        "svg",
        *parts,
        class_="duels",
        viewBox=f"0 0 {left + side:g} {top + side:g}",
        role="img",
        aria_label=f"Matrix of duels of {study.words.count_items(len(shown))}: the numbers are in the table.",
    )
