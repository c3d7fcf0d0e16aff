"""Kernels on rankings for GPyTorch, with parameters trained by exact gradients.

A ranking is a row of floats: the ranks of the items, smaller is better, equal is tied, -1 is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import Indices
from rankernel._utils.checks import check_instance
from rankernel.data import Data, as_data
from rankernel.errors import missing_extra
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.learn.plan_cache import Block, GramBlocks

try:
    import gpytorch
    import torch
    from gpytorch.constraints import Interval, Positive
except ModuleNotFoundError as error:
    if error.name not in ("torch", "gpytorch", "linear_operator"):
        raise
    raise missing_extra("GPyTorch", "gpytorch") from None


class RankingKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]
    r"""A kernel on rankings, averaged over their completions.

    :math:`\frac{1}{|R||R'|} \sum_{\sigma \in R} \sum_{\sigma' \in R'} k(\sigma, \sigma')`. The parameters of the kernel
    are parameters of the module, named as in ``kernel.params``: ``module.nu`` is the value,
    ``module.initialize(nu=0.1)`` sets it, and optimizers change ``module.raw_nu``. Use GPyTorch's ``ScaleKernel`` for
    an output scale.

    Parameters
    ----------
    kernel : Kernel or str
        The kernel k on full rankings.
    method : as in :meth:`Kernel.gram`
        How to average over completions. Draws depend only on the seed and the ranking, so training and test data share
        them.
    data : Rankings or array of ranks, optional
        The training data, which resolves "median" and "auto".
    constraints : dict, optional
        GPyTorch constraints by parameter; by default the bounds of the kernel.
    **options
        Arguments of GPyTorch's ``Kernel``: ``batch_shape``, ``active_dims``.

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
        kernel: Kernel | str,
        *,
        method: MethodLike = "auto",
        data: Any = None,
        constraints: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.blocks = GramBlocks(kernel, method, data)
        self.base = self.blocks.kernel
        given = check_instance(
            "constraints", {} if constraints is None else constraints, Mapping, "a mapping by parameters"
        )
        unknown = sorted(map(str, given.keys() - self.base.params.keys()))
        if unknown:
            known = ", ".join(self.base.params) or "none"
            raise ValueError(f"constraints has {unknown[0]!r}, but {self.base} has the parameters: {known}")
        for name, value in self.base.params.items():
            low, high = self.base.bounds[name]
            own = Interval(low, high) if math.isfinite(high) else Positive()
            self.register_parameter(f"raw_{name}", torch.nn.Parameter(torch.zeros(self.batch_shape)))
            self.register_constraint(f"raw_{name}", given.get(name) or own)
            setattr(self, name, value)

    # ------------------------------------------------------------------ parameters

    def __getattr__(self, name: str) -> Any:
        if name in self._names():
            return self.value_of(name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names():
            super().__setattr__(name, value)
            return
        raw = getattr(self, f"raw_{name}")
        wanted = torch.as_tensor(value, dtype=raw.dtype, device=raw.device).expand(raw.shape)
        self.initialize(**{f"raw_{name}": getattr(self, f"raw_{name}_constraint").inverse_transform(wanted)})

    def _names(self) -> tuple[str, ...]:
        base = self.__dict__.get("base")
        return tuple(base.params) if base is not None else ()

    def value_of(self, name: str) -> Any:
        """Return the value of a parameter of the kernel, also if GPyTorch uses its name for something else."""
        return getattr(self, f"raw_{name}_constraint").transform(getattr(self, f"raw_{name}"))

    def current(self) -> Kernel:
        """Return the kernel with the current parameters, for use outside of GPyTorch."""
        return self.base.replace(**{name: self.value_of(name).item() for name in self.base.params})

    # ------------------------------------------------------------------ values

    def forward(
        self, x1: Any, x2: Any, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> torch.Tensor:
        """Return the Gram matrix, or its diagonal: shape (..., n_rows, n_columns), or (..., n_rows)."""
        if last_dim_is_batch:
            raise ValueError("last_dim_is_batch=True is not possible: a ranking cannot be split into its items")
        batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], self.batch_shape)
        left, right = batch_ranks(x1, batch), batch_ranks(x2, batch)
        same = left.shape == right.shape and np.array_equal(left, right)
        evaluate = partial(self._blocks, left, None if same else right, diag)
        parameters = [self.value_of(name).expand(batch).to(x1) for name in self.base.params]
        shape = (*batch, x1.shape[-2]) if diag else (*batch, x1.shape[-2], x2.shape[-2])
        result: torch.Tensor = MarginalisedKernel.apply(evaluate, x1.new_empty(0).expand(*batch, 0), shape, *parameters)
        return result

    def _blocks(
        self,
        left: NDArray[Any],
        right: NDArray[Any] | None,
        diag: bool,
        values: list[list[float]],
        gradient: bool,
    ) -> list[Block]:
        """Return one block, or its diagonal, for each element of a batch and its parameters.

        ``left`` and ``right`` are ranks of shape (n_batch, n_rankings, n_items); ``right`` is None if they are equal.
        """
        kernels = [self.base.replace(**dict(zip(self.base.params, row, strict=True))) for row in values]
        n_batch, n_rankings, n_items = left.shape
        if all(kernel == kernels[0] for kernel in kernels):
            # Single rankings with themselves, the candidates of Bayesian optimization, are diagonals, too.
            if right is None and (diag or n_rankings == 1):
                block = self.blocks.diagonal(kernels[0], as_data(left.reshape(-1, n_items)), gradient)
                return [entries(block, row) for row in np.arange(n_batch * n_rankings).reshape(n_batch, n_rankings)]
            if not diag and n_batch > 1:
                X, rows = distinct(left)
                Y, columns = (None, rows) if right is None else distinct(right)
                if len(X) * len(X if Y is None else Y) <= rows.size * columns.shape[1]:  # smaller than all blocks
                    block = self.blocks.gram(kernels[0], X, Y, gradient)
                    return [entries(block, np.ix_(*pair)) for pair in zip(rows, columns, strict=True)]
        blocks = []
        for element, kernel in enumerate(kernels):
            X, Y = as_data(left[element]), None if right is None else as_data(right[element])
            if diag and Y is None:
                blocks.append(self.blocks.diagonal(kernel, X, gradient))
            else:
                block = self.blocks.gram(kernel, X, Y, gradient)
                blocks.append(entries(block, np.diag_indices(n_rankings)) if diag else block)
        return blocks


class MarginalisedKernel(torch.autograd.Function):  # type: ignore[misc]
    """The kernel averaged over completions as a differentiable function of its parameters, each of shape batch."""

    @staticmethod
    def forward(
        ctx: Any,
        evaluate: Callable[[list[list[float]], bool], list[Block]],
        like: torch.Tensor,
        shape: tuple[int, ...],
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        """Return the values, and save their derivatives for the backward pass."""
        n_batch = like.shape[:-1].numel()
        values = [parameter.detach().reshape(n_batch).tolist() for parameter in parameters]
        by_element = [list(row) for row in zip(*values, strict=True)] if parameters else [[]] * n_batch
        blocks = evaluate(by_element, any(ctx.needs_input_grad))
        ctx.batch_dims = like.ndim - 1

        def stacked(matrices: list[NDArray[Any]]) -> torch.Tensor:
            return torch.as_tensor(np.stack(matrices).reshape(shape)).to(like)

        if any(ctx.needs_input_grad):
            ctx.save_for_backward(*(stacked([gradients[name] for _, gradients in blocks]) for name in blocks[0][1]))
        return stacked([value for value, _ in blocks])

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, outer: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the derivative in each parameter."""
        inner = tuple(range(ctx.batch_dims, outer.ndim))
        return None, None, None, *((outer * gradient).sum(dim=inner) for gradient in ctx.saved_tensors)


def batch_ranks(x: torch.Tensor, batch: torch.Size) -> NDArray[Any]:
    """Return ranks as an array of shape (n_batch, n_rankings, n_items)."""
    ranks: NDArray[Any] = x.detach().expand(*batch, *x.shape[-2:]).cpu().numpy()
    return ranks.reshape(-1, *x.shape[-2:])


def distinct(ranks: NDArray[Any]) -> tuple[Data, Indices]:
    """Return the distinct rankings of a batch, and the index of each ranking among them."""
    rankings = as_data(ranks.reshape(-1, ranks.shape[2]))
    first, inverse = rankings.unique_indices()
    return rankings[first], inverse.reshape(ranks.shape[:2])


def entries(block: Block, index: Any) -> Block:
    """Return entries of a block and of its derivatives."""
    return block[0][index], {name: gradient[index] for name, gradient in block[1].items()}
