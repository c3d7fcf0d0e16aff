"""What other libraries ask of a kernel: blocks between training rankings and others, while parameters move.

Whatever is open is decided by the training rankings, and stays so: a plan made of them serves all other blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from rankernel._utils.arrays import FloatArray
from rankernel.data import Data, as_data
from rankernel.gram.estimate import slopes
from rankernel.gram.methods import MethodLike, as_method
from rankernel.gram.plan import Plan
from rankernel.kernels import as_kernel
from rankernel.kernels.base import MEDIAN, Kernel

Block = tuple[FloatArray, dict[str, FloatArray]]  # values, and their derivative in each parameter

KEPT = 8  # plans at hand: while a model is trained, it is always the same blocks, with other parameters


def training_plan(kernel: Kernel, X: Data, Y: Data | None, method: MethodLike, recent: RecentPlans) -> Plan:
    """Return the plan of a block whose columns are the training data: they decide, whatever the rows are."""
    train = X if Y is None else Y
    base = recent.plan((train,), kernel, lambda: kernel.plan(train, method=method))
    return base if Y is None else recent.plan((X, train), kernel, lambda: base.against(X))


class RecentPlans:
    """The plans of the last blocks, for kernels that differ in their parameters only."""

    def __init__(self) -> None:
        self.plans: OrderedDict[Any, Plan] = OrderedDict()
        self.lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return RecentPlans, ()  # they are made again where they are needed

    def __deepcopy__(self, memo: Any) -> RecentPlans:
        return RecentPlans()

    def plan(self, data: tuple[Data | None, ...], kernel: Kernel, make: Any) -> Plan:
        """Return the plan of some data, made if it is not at hand, with these parameters."""
        with self.lock:
            found = self.plans.get(data)
            if found is None:
                found = self.plans[data] = make()
                while len(self.plans) > KEPT:
                    self.plans.popitem(last=False)
            else:
                self.plans.move_to_end(data)
        return found if found.kernel == kernel else found.with_kernel(kernel)


class GramBlocks:
    """A kernel whose parameters move, on training and test rankings that are seen apart.

    The training rankings, ``data``, settle the width "median" and what the method "auto" means; if left out, they are
    those of the first block.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> blocks = GramBlocks(Mallows(1.0))
    >>> value, slopes = blocks.gram(Mallows(2.0), Rankings([[0, 1]]), Rankings([[1, 0]]), gradient=True)
    >>> value, slopes["nu"]  # exp(-nu) and its derivative
    (array([[0.13533528]]), array([[-0.13533528]]))
    """

    def __init__(self, kernel: Kernel, method: MethodLike = "auto", data: Any = None) -> None:
        self.requested = as_method(method)
        given, training = as_kernel(kernel), None if data is None else as_data(data, name="data")
        self.kernel = numeric(given if training is None else given.resolve(training))
        self.plan: Plan | None = None if training is None else self.kernel.plan(training, method=self.requested)
        self.recent = RecentPlans()

    def gram(self, kernel: Kernel, X: Data, Y: Data | None = None, gradient: bool = False) -> Block:
        """Return a block for a kernel with these parameters, and its derivatives if asked for."""
        plan = self.block_plan(kernel, X, Y)
        return plan.gram(), slopes(plan, None) if gradient else {}

    def diagonal(self, kernel: Kernel, X: Data, gradient: bool = False) -> Block:
        """Return the diagonal of the block of rankings with themselves, and its derivatives if asked for."""
        plan = self.new_rows(kernel, X)
        return plan.diagonal(), plan.diagonal_gradient() if gradient else {}

    def new_rows(self, kernel: Kernel, X: Data) -> Plan:
        """Return the plan of rankings against the training ones: each row by itself, however many there are."""
        base = self.training(X)
        return self.recent.plan((X, None), kernel, lambda: base.against(X))

    def training(self, X: Data) -> Plan:
        """Return the plan of the training rankings; they are the first that are seen, if none were given."""
        if self.plan is None:
            self.plan = self.kernel.plan(X, method=self.requested)
        return self.plan

    def block_plan(self, kernel: Kernel, X: Data, Y: Data | None) -> Plan:
        """Return the plan of a block, with the decisions of the training rankings."""
        base = self.training(X)
        return self.recent.plan((X,) if Y is None else (X, Y), kernel, lambda: base.between(X, Y))


def numeric(kernel: Kernel) -> Kernel:
    """Return a kernel whose width is a number, refusing one that depends on the data."""
    if MEDIAN in kernel.params.values():
        raise ValueError(
            f"the width of {kernel} depends on the data, and training and test data are seen apart; "
            "give the training rankings: data=X"
        )
    return kernel
