"""A kernel on rankings for GPyTorch, its parameters trained by autograd through exact derivatives.

A ranking is a row of floats, as GPyTorch wants it: the ranks of the items, smaller is better, equal is tied, -1 is
free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import Indices
from rankernel._utils.checks import check_instance
from rankernel.data import Data, as_data
from rankernel.errors import missing_extra
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.learn._training_plans import Block, GramBlocks

try:
    import gpytorch
    import torch
except ModuleNotFoundError as error:
    if error.name not in ("torch", "gpytorch", "linear_operator"):
        raise
    raise missing_extra("GPyTorch", "gpytorch") from None

Values = list[float]


class RankingKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]
    r"""A kernel on rankings, averaged over their completions.

    :math:`\frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`. The parameters of the kernel
    are parameters of the module, by the names of ``kernel.params``: ``module.nu`` is the value,
    ``module.initialize(nu=0.1)`` sets it, ``module.raw_nu`` is what an optimiser moves. For a scale put it into
    GPyTorch's ``ScaleKernel``.

    Parameters
    ----------
    kernel : Kernel
        The kernel k on full rankings.
    method : as in :meth:`Kernel.gram`
        How to average over completions; draws of a ranking depend on the seed and the ranking alone, so training and
        test data fit together.
    data : Rankings or array of ranks, optional
        Training data: settles the width "median" and the method "auto".
    constraints : dict, optional
        GPyTorch constraints by the name of a parameter; if left out, the limits of the kernel: positive or an interval.
    **options
        Of GPyTorch's ``Kernel``: ``batch_shape``, ``active_dims``.

    Examples
    --------
    >>> import rankernel as rk
    >>> module = RankingKernel(rk.Mallows(nu=1.0))
    >>> value = module(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])).to_dense().sum()
    >>> value.backward()  # exp(-nu), whose derivative at 1 is minus itself
    >>> round(value.item(), 4), round(module.raw_nu.grad.item() / torch.sigmoid(module.raw_nu).item(), 4)
    (0.3679, -0.3679)
    """

    has_lengthscale = False

    def __init__(
        self,
        kernel: Kernel,
        method: MethodLike = "auto",
        data: Any = None,
        constraints: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.blocks = GramBlocks(kernel, method, data)
        self.base = self.blocks.kernel
        chosen = check_instance(
            "constraints", {} if constraints is None else constraints, Mapping, "a mapping by parameters"
        )
        unknown = sorted(map(str, chosen.keys() - self.base.params.keys()))
        if unknown:
            known = ", ".join(self.base.params) or "none"
            raise ValueError(f"constraints name {unknown[0]!r}, but {self.base} has the parameters: {known}")
        limits = self.base.limits
        for name, value in self.base.params.items():
            self.register_parameter(f"raw_{name}", torch.nn.Parameter(torch.zeros(self.batch_shape)))
            self.register_constraint(f"raw_{name}", chosen.get(name) or constraint_within(*limits[name]))
            setattr(self, name, value)

    # ------------------------------------------------------------------ parameters by their own names

    def __getattr__(self, name: str) -> Any:
        if name in self._names():
            return self.constraint_of(name).transform(getattr(self, f"raw_{name}"))
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names():
            super().__setattr__(name, value)
            return
        raw = getattr(self, f"raw_{name}")
        wanted = torch.as_tensor(value, dtype=raw.dtype, device=raw.device).expand(raw.shape)
        self.initialize(**{f"raw_{name}": self.constraint_of(name).inverse_transform(wanted)})

    def _names(self) -> tuple[str, ...]:
        base = self.__dict__.get("base")
        return tuple(base.params) if base is not None else ()

    def constraint_of(self, name: str) -> Any:
        """Return the constraint of a parameter of the kernel."""
        return getattr(self, f"raw_{name}_constraint")

    def current(self) -> Kernel:
        """Return the kernel with its present parameters, to use outside of GPyTorch."""
        return self.base.replace(**{name: getattr(self, name).item() for name in self.base.params})

    # ------------------------------------------------------------------ values

    def forward(
        self, x1: Any, x2: Any, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> torch.Tensor:
        """Return the Gram matrix, or its diagonal: shape (..., n_rows, n_columns), or (..., n_rows)."""
        if last_dim_is_batch:
            raise ValueError("last_dim_is_batch takes every item by itself, but only all items make up a ranking")
        batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], self.batch_shape)
        left, right = on_batch(x1, batch), on_batch(x2, batch)
        same = left.shape == right.shape and np.array_equal(left, right)

        def evaluate(values: list[Values], gradient: bool) -> list[Block]:
            return Batch(self.blocks, self.base, left, left if same else right, diag).evaluated(values, gradient)

        parameters = [getattr(self, name).expand(batch).to(x1) for name in self.base.params]
        shape = (*batch, x1.shape[-2]) if diag else (*batch, x1.shape[-2], x2.shape[-2])
        found: torch.Tensor = Averaged.apply(evaluate, x1.new_empty(0).expand(*batch, 0), shape, *parameters)
        return found


def constraint_within(low: float, high: float) -> Any:
    """Return the constraint of a parameter that stays within its limits."""
    return gpytorch.constraints.Interval(low, high) if math.isfinite(high) else gpytorch.constraints.Positive()


class Averaged(torch.autograd.Function):  # type: ignore[misc]
    """The average over completions as a function of the parameters of a kernel, each of shape batch."""

    @staticmethod
    def forward(
        ctx: Any,
        evaluate: Callable[[list[Values], bool], list[Block]],
        like: torch.Tensor,
        shape: tuple[int, ...],
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        """Return the values, and keep their derivatives for later."""
        n_batch = like.shape[:-1].numel()
        values = [parameter.detach().reshape(n_batch).tolist() for parameter in parameters]
        by_element = [list(row) for row in zip(*values, strict=True)] if parameters else [[]] * n_batch
        blocks = evaluate(by_element, any(ctx.needs_input_grad))
        ctx.batch_dims = like.ndim - 1

        def stacked(matrices: list[NDArray[Any]]) -> torch.Tensor:
            return torch.as_tensor(np.stack(matrices).reshape(shape)).to(like)

        if any(ctx.needs_input_grad):
            ctx.save_for_backward(*(stacked([slopes[name] for _, slopes in blocks]) for name in blocks[0][1]))
        return stacked([value for value, _ in blocks])

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, outer: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the derivative in each parameter, by the chain rule."""
        inner = tuple(range(ctx.batch_dims, outer.ndim))
        return None, None, None, *((outer * slope).sum(dim=inner) for slope in ctx.saved_tensors)


class Batch:
    """Blocks of rankings, one for each element of a batch: ranks of shape (n_batch, n_rankings, n_items)."""

    def __init__(self, blocks: GramBlocks, kernel: Kernel, left: NDArray[Any], right: NDArray[Any], diag: bool) -> None:
        self.blocks, self.kernel, self.left, self.right = blocks, kernel, left, right
        self.same = left is right
        # One entry for each element is a diagonal, too: so are candidates of Bayesian optimisation evaluated.
        self.diag = diag or (self.same and left.shape[1] == 1)

    def evaluated(self, values: list[Values], gradient: bool) -> list[Block]:
        """Return one block for each element of the batch, given the parameters of each."""
        kernels = [self.kernel.replace(**dict(zip(self.kernel.params, row, strict=True))) for row in values]
        if all(kernel == kernels[0] for kernel in kernels):
            if self.diag and self.same:
                return self.diagonals(kernels[0], gradient)
            if not self.diag and len(kernels) > 1:
                return self.together(kernels[0], gradient)
        return [self.single(kernel, element, gradient) for element, kernel in enumerate(kernels)]

    def single(self, kernel: Kernel, element: int, gradient: bool) -> Block:
        """Return the block of one element."""
        X = as_data(self.left[element])
        if self.diag and self.same:
            return self.blocks.diagonal(kernel, X, gradient)
        Y = None if self.same else as_data(self.right[element])
        block = self.blocks.gram(kernel, X, Y, gradient)
        return picked(block, np.diag_indices(len(X))) if self.diag else block

    def diagonals(self, kernel: Kernel, gradient: bool) -> list[Block]:
        """Return the diagonals of all elements at once."""
        n_batch, n_rankings, n_items = self.left.shape
        block = self.blocks.diagonal(kernel, as_data(self.left.reshape(-1, n_items)), gradient)
        rows = np.arange(n_batch * n_rankings).reshape(n_batch, n_rankings)
        return [picked(block, own) for own in rows]

    def together(self, kernel: Kernel, gradient: bool) -> list[Block]:
        """Return the blocks out of one matrix of distinct rankings, where it has no more entries than they have."""
        X, rows = distinct(self.left)
        Y, columns = (X, rows) if self.same else distinct(self.right)
        if len(X) * len(Y) > rows.size * columns.shape[1]:
            return [self.single(kernel, element, gradient) for element in range(len(rows))]
        block = self.blocks.gram(kernel, X, None if self.same else Y, gradient)
        return [picked(block, np.ix_(*pair)) for pair in zip(rows, columns, strict=True)]


def on_batch(x: torch.Tensor, batch: torch.Size) -> NDArray[Any]:
    """Return ranks as one array of shape (n_batch, n_rankings, n_items)."""
    ranks: NDArray[Any] = x.detach().expand(*batch, *x.shape[-2:]).cpu().numpy()
    return ranks.reshape(-1, *x.shape[-2:])


def distinct(ranks: NDArray[Any]) -> tuple[Data, Indices]:
    """Return the distinct rankings of a batch, and which of them each one is."""
    rankings = as_data(ranks.reshape(-1, ranks.shape[2]))
    first, inverse = rankings.unique_indices()
    return rankings[first], inverse.reshape(ranks.shape[:2])


def picked(block: Block, index: Any) -> Block:
    """Return some entries of a block, and their derivatives."""
    return block[0][index], {name: slope[index] for name, slope in block[1].items()}
