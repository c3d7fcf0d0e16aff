"""Plans for other libraries, which evaluate a kernel on separate blocks of data while its parameters change.

"median" and "auto" are resolved once, by the training data; plans derived from that one are used for all other blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from rankernel._utils import FloatArray
from rankernel.data import Data, as_data
from rankernel.gram.estimate import gradient_of
from rankernel.gram.plan import MethodLike, Plan, as_method
from rankernel.kernels.base import MEDIAN, Kernel, as_kernel

Block = tuple[FloatArray, dict[str, FloatArray]]  # values, and their derivative in each parameter

MAX_PLANS = 8  # training alternates between few blocks


class PlanCache:
    """The most recently used plans by data, for kernels that differ only in their parameters."""

    def __init__(self) -> None:
        self.plans: OrderedDict[Any, Plan] = OrderedDict()
        self.lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return PlanCache, ()  # copies start empty

    def plan(self, data: tuple[Any, ...], kernel: Kernel, make: Callable[[], Plan]) -> Plan:
        """Return the cached plan for the data, made if necessary, with this kernel."""
        with self.lock:
            plan = self.plans.get(data)
            if plan is None:
                plan = self.plans[data] = make()
                while len(self.plans) > MAX_PLANS:
                    self.plans.popitem(last=False)
            else:
                self.plans.move_to_end(data)
        return plan if plan.kernel == kernel else plan._with_kernel(kernel)


class GramBlocks:
    """Blocks of Gram matrices of a kernel whose parameters change, on training and test rankings.

    The training rankings ``data`` resolve "median" and "auto"; by default they are those of the first block.
    """

    def __init__(self, kernel: Kernel | str, method: MethodLike = "auto", data: Any = None) -> None:
        self.requested = as_method(method)
        kernel, training = as_kernel(kernel), None if data is None else as_data(data, name="data")
        self.kernel = require_numeric(kernel, "data=X_train") if training is None else kernel.resolve(training)
        self.base: Plan | None = None if training is None else self.kernel.plan(training, method=self.requested)
        self.cache = PlanCache()

    def gram(self, kernel: Kernel, X: Data, Y: Data | None = None, gradient: bool = False) -> Block:
        """Return a block for a kernel with other parameters, with its derivatives if ``gradient``."""
        plan = self.plan(kernel, X, Y)
        return plan.gram(), gradient_of(plan) if gradient else {}

    def diagonal(self, kernel: Kernel, X: Data, gradient: bool = False) -> Block:
        """Return the diagonal of a block, with its derivatives if ``gradient``."""
        plan = self.plan(kernel, X, by_row=True)
        names = plan.kernel.params if gradient else ()
        return plan.diagonal(), {name: plan._diagonal_entries(None, parameter=name) for name in names}

    def plan(self, kernel: Kernel, X: Data, Y: Data | None = None, by_row: bool = False) -> Plan:
        """Return the plan of a block; ``by_row`` against the training rankings, which treats rows independently."""
        if self.base is None:
            self.base = self.kernel.plan(X, method=self.requested)
        make = partial(self.base.against, X) if by_row else partial(self.base._between, X, Y)
        return self.cache.plan((X, Y, by_row), kernel, make)


def require_numeric(kernel: Kernel, advice: str) -> Kernel:
    """Return a kernel, or raise if a parameter is "median": training and test data are evaluated separately."""
    if MEDIAN in kernel.params.values():
        raise ValueError(
            f"{kernel} has a parameter 'median', which must be resolved from the training data; give it: {advice}"
        )
    return kernel
