"""Small tiles, so that small matrices have many."""

import rankernel.gram.plan  # noqa: F401  all evaluators
from rankernel.gram.evaluator import Evaluator
from rankernel.gram.montecarlo import sampled

SIDE = 16


def shrink(assign=setattr):
    """Give every kind of evaluator with a fixed side of tiles a small one."""
    for kind in kinds(Evaluator):
        if isinstance(vars(kind).get("block_side"), int):
            assign(kind, "block_side", SIDE)
    assign(sampled, "LARGEST_TILE", SIDE)


def kinds(kind):
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)
