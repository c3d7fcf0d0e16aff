"""The dendrogram: its upper branches, the ballots below each named by the most common one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel.reports.clustering import Clustering
from rankernel.reports.layout import shade
from rankernel.reports.markup import Markup, tag
from rankernel.reports.phrases import ballot_text, plural
from rankernel.reports.short_names import told_apart
from rankernel.reports.summary import Summary
from rankernel.reports.text_width import fitted, text_width

TOP, LEFT = 30.0, 14.0
MOST_LETTERS = 18  # of a name in a ballot
LINE = 17.0  # from one line of a ballot to the next


@dataclass(frozen=True)
class TreeSize:
    """How large a picture of a tree is."""

    width: float
    right: float  # where the leaves stand
    head: str  # of the column of ballots
    branches: int  # at most
    lines: int = 1  # of a ballot

    @property
    def row(self) -> float:
        """The height of a branch."""
        return 21.0 + LINE * (self.lines - 1)

    @property
    def room(self) -> float:
        """The width of a ballot."""
        return self.width - self.right - 62


WIDE = TreeSize(960.0, 480.0, "most common {ballot} of the branch", 30)
NARROW = TreeSize(342.0, 100.0, "most common {ballot}", 16, lines=2)
PAPER = TreeSize(672.0, 270.0, "most common {ballot} of the branch", 14)


@dataclass(frozen=True)
class Branch:
    """What stands at the end of a branch."""

    y: float
    ballot: int  # the most common one


@dataclass(frozen=True)
class Node:
    """Where a branch begins: its place, and the cluster of all that is below, -1 if it is of several."""

    x: float
    y: float
    cluster: int


def tree_picture(study: Summary, clustering: Clustering, size: TreeSize) -> Markup:
    """Return the picture of the tree."""
    drawing = Drawing(study, clustering, size)
    return tag(
        "svg",
        *drawing.parts,
        class_="tree",
        viewBox=f"0 0 {size.width:g} {drawing.height:g}",
        role="img",
        aria_label=f"Dendrogram of {study.words.count_ballots(drawing.n_leaves)} cut into "
        f"{plural(len(clustering.clusters), 'cluster')}. The sizes and consensus rankings of the clusters are in the "
        "section about what divides them.",
    )


class Drawing:
    """The parts of the picture of a tree."""

    def __init__(self, study: Summary, clustering: Clustering, size: TreeSize) -> None:
        self.size, self.right = size, size.right
        self.study, self.clustering, self.tree = study, clustering, clustering.tree
        self.n_leaves = len(self.tree) + 1
        self.n_branches = min(max(size.branches, len(clustering.clusters)), self.n_leaves)
        self.highest = max(float(self.tree[-1, 2]), 1e-12)
        self.height = TOP + self.n_branches * size.row + 34
        self.parts: list[Markup] = []
        self.placed: list[Branch] = []
        self.axis()
        self.draw(2 * self.n_leaves - 2)
        self.name_branches()
        self.cut_line()

    def x_of(self, height: float) -> float:
        """Return where a height stands: the root at the left."""
        return self.right - (self.right - LEFT) * height / self.highest

    def leaves_below(self, node: int) -> list[int]:
        """Return the leaves below a node."""
        found, stack = [], [node]
        while stack:
            each = stack.pop()
            if each < self.n_leaves:
                found.append(each)
            else:
                stack.extend(self.tree[each - self.n_leaves, :2].astype(int).tolist())
        return found

    def draw(self, node: int) -> Node:
        """Draw a node and all below it."""
        if node < 2 * self.n_leaves - self.n_branches:
            return self.branch(node)
        merger = self.tree[node - self.n_leaves]
        children = [self.draw(int(child)) for child in merger[:2]]
        x, ys = self.x_of(float(merger[2])), [child.y for child in children]
        cluster = children[0].cluster if children[0].cluster == children[1].cluster else -1
        for child in children:
            shade = child.cluster if cluster < 0 else cluster
            path = f"M{x:.1f} {child.y:.1f}H{child.x:.1f}"
            self.parts.append(tag("path", d=path, class_=stroke(shade)))
        self.parts.append(tag("path", d=f"M{x:.1f} {min(ys):.1f}V{max(ys):.1f}", class_=stroke(cluster)))
        return Node(x, sum(ys) / 2, cluster)

    def branch(self, node: int) -> Node:
        """Draw what stands at the end: how many voters, and a wedge for the branches that are not drawn."""
        y = TOP + (len(self.placed) + 0.5) * self.size.row
        leaves = np.array(self.leaves_below(node))
        rows, counts = self.study.view.rows[leaves], self.study.view.counts[leaves]
        self.placed.append(Branch(y, int(rows[int(np.argmax(counts))])))
        self.parts.append(tag("text", f"{int(counts.sum()):,}", x=self.right + 50, y=y + 4.5, class_="number end"))
        cluster = int(self.clustering.labels[rows[0]])
        x = self.x_of(float(self.tree[node - self.n_leaves, 2]) if node >= self.n_leaves else 0.0)
        half = 5.0 if len(leaves) > 1 else 0.0
        wedge = f"M{x:.1f} {y:.1f}L{self.right:g} {y - half:.1f}V{y + half:.1f}Z"
        self.parts.append(tag("path", d=wedge, class_=f"wedge k{shade(cluster)}"))
        return Node(x, y, cluster)

    def name_branches(self) -> None:
        """Write the most common ballot of each branch, no two alike: they are different, so they look so."""
        rankings, approvals = self.study.ballots.rankings, self.study.words.approvals
        whole = [
            ballot_text(rankings[each.ballot], most=rankings.n_items, length=MOST_LETTERS, approvals=approvals)
            for each in self.placed
        ]
        for each, lines in zip(self.placed, lines_told_apart(whole, self.size.room, self.size.lines), strict=True):
            top = each.y + 4.5 - LINE * (len(lines) - 1) / 2
            places = [{"x": self.right + 60, "y": top + LINE * number} for number in range(len(lines))]
            spans = [tag("tspan", f"{line} ", **place) for line, place in zip(lines, places, strict=True)]
            self.parts.append(tag("text", *spans, class_="leaf"))

    def axis(self) -> None:
        """Draw the heads of the columns and what the horizontal direction is."""
        bottom = self.height - 8
        self.parts += [
            tag("text", "← apart", x=LEFT, y=bottom, class_="axis"),
            tag("text", "alike", x=self.right, y=bottom, class_="axis end"),
            tag("text", self.study.words.voters, x=self.right + 50, y=16.0, class_="axis end"),
            tag(
                "text", self.size.head.format(ballot=self.study.words.ballot), x=self.right + 60, y=16.0, class_="axis"
            ),
        ]

    def cut_line(self) -> None:
        """Draw where the tree is cut into clusters."""
        k = len(self.clustering.clusters)
        if k < 2:
            return
        above = float(self.tree[-(k - 1), 2])
        below = float(self.tree[-k, 2]) if k < self.n_leaves else 0.0
        x = self.x_of((above + below) / 2)
        bottom = self.height - 30
        self.parts += [
            tag("path", d=f"M{x:.1f} {TOP - 6:g}V{bottom:.1f}", class_="cut"),
            tag("text", f"cut: {k}", x=max(x, 34.0), y=16.0, class_="axis middle"),
        ]


def lines_told_apart(texts: list[str], room: float, most: int) -> list[list[str]]:
    """Return texts in at most so many lines each, those that are too long shortened so that no two become equal."""
    shown = told_apart(texts, lambda text: len(in_lines(text, room)) <= most)
    return [in_lines(text, room) for text in shown]


def in_lines(text: str, room: float) -> list[str]:
    """Return a text in lines that are not wider than there is room, if it has blanks where it can be divided."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(fitted(word, room))
    return lines


def stroke(cluster: int) -> str:
    """Return the class of a branch."""
    return f"branch k{shade(cluster)}" if cluster >= 0 else "branch"
