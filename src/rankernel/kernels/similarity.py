"""Kernels of rankings of similar items: candidates of one party, near-duplicate documents, aliases.

With S a positive semi-definite matrix on items, ``M[i, j] = sign(rank of j - rank of i)`` and P the permutation matrix
of a ranking, the Kendall kernel becomes ``trace(S M S M'^T)`` and a positional kernel ``trace(S P' G P^T)``. Both are
linear in M and P, so their means over completions are exact for every partial ranking.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_instance, check_list, check_number, check_numbers, short_repr
from rankernel.data import as_data
from rankernel.distances import LinearForm, Transform
from rankernel.kernels.base import Facts, KnownKernel, Parameters, cached_facts, last_axis_product

SCALE = "similarity__scale"  # the name of the parameter in kernels
NAME = "similarity matrix"  # in error messages
ROUNDING = 1e-10  # relative rounding error allowed in the eigenvalues of a matrix


@dataclass(frozen=True, repr=False)
class Similarity(Parameters):
    """Similarity of items, for kernels that count similar items as partly the same.

    Parameters
    ----------
    matrix : array or data frame of shape (n_items, n_items)
        A symmetric positive semi-definite matrix, usually with diagonal 1. A data frame has the names of the items as
        index and columns.
    items : list of names, optional
        The items of the rows of the matrix. By default the names of the data frame, or the order of the items in the
        data. Items that the data does not have are ignored.
    scale : float
        A factor of all entries outside the diagonal, from 0 (all items are distinct) to 1. It is a parameter of the
        kernel, with a gradient.

    Examples
    --------
    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings.from_orders([["a1", "a2", "b"], ["a2", "a1", "b"], ["b", "a1", "a2"]])
    >>> kernel = Kendall(similarity=similarity_from_groups({"A": ["a1", "a2"], "B": ["b"]}, within=0.8))
    >>> kernel.gram(ballots, normalize=True).round(2)
    array([[ 1.  ,  0.82, -0.82],
           [ 0.82,  1.  , -1.  ],
           [-0.82, -1.  ,  1.  ]])
    >>> Kendall().gram(ballots).round(2)[0, 1]
    np.float64(0.33)
    """

    matrix: ArrayLike
    items: Sequence[str] | None = None
    scale: float = 1.0
    parameter_bounds = {"scale": (0.0, 1.0)}  # noqa: RUF012

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", float(check_number("scale", self.scale, 0, 1)))
        given: Any = self.matrix
        names = self.items
        if names is None and hasattr(given, "columns") and hasattr(given, "index"):
            names = list(given.index)
            if len(set(names)) != len(names) or len(given.columns) != len(names) or set(given.columns) != set(names):
                raise ValueError("similarity: the index and the columns of the data frame must be the same names")
            given = given[names].to_numpy()
        matrix = symmetric_matrix(NAME, given)
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        if names is not None:
            names = tuple(map(str, check_list("items", names, "a list of names")))
            if len(set(names)) != len(matrix) or len(names) != len(matrix):
                raise ValueError(f"items: give {len(matrix)} different names, one for each row of the similarity")
            object.__setattr__(self, "items", names)
        self.root  # raises an error if the matrix is not positive semi-definite  # noqa: B018

    def __repr__(self) -> str:
        n = len(np.asarray(self.matrix))
        return f"Similarity(<{n} x {n} matrix>{f', scale={self.scale:g}' if self.scale != 1 else ''})"

    @cached_property
    def derivative(self) -> FloatArray:
        """The entries outside the diagonal: the derivative of :attr:`scaled` in the scale."""
        matrix = np.array(self.matrix)
        np.fill_diagonal(matrix, 0.0)
        return matrix

    @cached_property
    def scaled(self) -> FloatArray:
        """The matrix with the entries outside the diagonal times the scale."""
        return np.diag(np.diag(np.asarray(self.matrix))) + self.scale * self.derivative

    @cached_property
    def root(self) -> FloatArray:
        """One row for each item, with ``root @ root.T`` the scaled matrix."""
        return matrix_root(NAME, self.scaled)

    def resolve(self, X: Any) -> Similarity:
        """Return the similarity of the items of ``X``, in their order."""
        if self.items is None:
            return self
        names = as_data(X).items
        missing = sorted(set(names) - set(self.items))
        if missing:
            raise ValueError(
                f"similarity: {len(missing)} of the {len(names)} items of the data have no row, such as "
                f"{short_repr(missing[0])}; add a row for each item, or similarity_from_groups(..., items=X.items)"
            )
        rows = [self.items.index(name) for name in names]
        return Similarity(np.asarray(self.matrix)[np.ix_(rows, rows)], scale=self.scale)

    def check_items(self, n_items: int) -> None:
        """Raise an error unless the rows are the items of the data."""
        if self.items is not None:
            raise ValueError("similarity is given by names of items; use kernel.gram(X), or kernel.resolve(X) first")
        if len(self.root) != n_items:
            raise ValueError(
                f"similarity has {len(self.root)} rows but the data has {n_items} items; give one row for each item"
            )


def similarity_from_groups(
    groups: Mapping[Any, Iterable[Any]], *, within: float = 1.0, items: Iterable[Any] = ()
) -> Similarity:
    """Return a similarity with one value for any two items of the same group, and 0 for items of different groups.

    Parameters
    ----------
    groups : dict of lists
        The items of each group, such as the candidates of each party. No item may be in two groups.
    within : float
        The similarity of two items of one group, from 0 (distinct) to 1 (interchangeable).
    items : list of names, optional
        Further items, which are in no group.

    Returns
    -------
    Similarity
        The similarity, by the names of the items.

    Examples
    --------
    >>> similarity_from_groups({"red": ["Ann", "Bob"], "blue": ["Cem"]}, within=0.5).matrix
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    check_number("within", within, 0, 1)
    check_instance("groups", groups, Mapping, "a dictionary such as {'party A': ['Ann', 'Bob']}")
    group_of: dict[str, int] = {}
    for number, (group, members) in enumerate(groups.items()):
        for name in map(str, check_list(f"groups[{group!r}]", members, "a list of items")):
            if name in group_of:
                raise ValueError(f"groups: the item {short_repr(name)} is listed twice; give every item one group")
            group_of[name] = number
    others = [name for name in map(str, check_list("items", items, "a list of items")) if name not in group_of]
    codes = np.array([*group_of.values(), *range(len(groups), len(groups) + len(others))])
    matrix = np.where(codes[:, None] == codes, float(within), 0.0)
    np.fill_diagonal(matrix, 1.0)
    return Similarity(matrix, (*group_of, *others))


def as_similarity(given: Any) -> Similarity | None:
    """Return a similarity, or None for the identity matrix, which makes all items distinct."""
    similarity = given if given is None or isinstance(given, Similarity) else Similarity(given)
    if similarity is None or np.array_equal(np.asarray(similarity.matrix), np.eye(len(similarity.root))):
        return None
    return similarity


# ---------------------------------------------------------------------- symmetric matrices


def symmetric_matrix(name: str, given: ArrayLike) -> FloatArray:
    """Return a matrix, or raise an error if it is not square and symmetric."""
    matrix = check_numbers(name, given, (None, None))
    if matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(
            f"{name} has shape {matrix.shape}; it must be a square matrix, one row and column for each item or position"
        )
    if not np.allclose(matrix, matrix.T, rtol=0, atol=ROUNDING * np.abs(matrix).max()):
        p, q = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
        raise ValueError(
            f"{name} is not symmetric: {name}[{p}, {q}] = {matrix[p, q]:g} but {name}[{q}, {p}] = {matrix[q, p]:g}"
        )
    return (matrix + matrix.T) / 2 + 0.0  # adding 0 turns -0 into 0, so that equal matrices have equal bytes


def matrix_root(name: str, matrix: FloatArray) -> FloatArray:
    """Return F with ``F @ F.T`` a symmetric matrix, or raise an error if it is not positive semi-definite."""
    values, vectors = np.linalg.eigh(matrix)
    largest = float(np.abs(values).max())
    if values[0] < -ROUNDING * largest:
        raise ValueError(
            f"{name} is not positive semi-definite: its eigenvalues range from {values[0]:.3g} to {values[-1]:.3g}; "
            f"add at least {-values[0]:.3g} to its diagonal, or give another matrix"
        )
    positive = values > 1e-14 * largest
    return np.asarray(vectors[:, positive] * np.sqrt(values[positive]))


# ---------------------------------------------------------------------- kernels


@dataclass(frozen=True, repr=False)
class SimilarItemsKernel(KnownKernel):
    """A kernel that is linear in signs of pairs, positions or ranks, with an optional similarity of items."""

    similarity: Similarity | ArrayLike | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "similarity", as_similarity(self.similarity))

    @abstractmethod
    def facts_of_distinct_items(self, n_items: int) -> Facts:
        """Return the facts of the kernel without similarity."""

    @cached_facts
    def facts(self, n_items: int) -> Facts:
        """Return the facts of the kernel of distinct items, or the form of similar items."""
        plain, similarity = self.facts_of_distinct_items(n_items), self.similarity
        if similarity is None:
            return plain
        assert plain.form is not None
        assert isinstance(similarity, Similarity)
        similarity.check_items(n_items)
        if n_items == 1:
            form = replace(plain.form, derivatives={SCALE: np.zeros_like})
        else:
            form = (pair_form if plain.form.statistic == "pairs" else item_form)(plain.form, similarity)
        return Facts(is_psd=True, max_dimension=plain.max_dimension, form=form, coupling=plain.coupling)


def item_form(plain: LinearForm, similarity: Similarity) -> LinearForm:
    """Return ``trace(S P' G P^T)``, P the probabilities of items and positions, or ``r' S r`` for centred ranks r."""
    axis = -2 if plain.statistic == "positions" else -1  # of the items

    def by_item(S: FloatArray, multiply: Transform) -> Transform:
        return lambda means: np.swapaxes(last_axis_product(np.swapaxes(multiply(means), axis, -1), S), axis, -1)

    derivatives = {name: by_item(similarity.scaled, change) for name, change in plain.derivatives.items()}
    derivatives[SCALE] = by_item(similarity.derivative, plain.multiply)
    multiply, root = by_item(similarity.scaled, plain.multiply), by_item(similarity.root, plain.root)
    return LinearForm(plain.statistic, multiply, root, derivatives, mixes_items=True)


def pair_form(_: LinearForm, similarity: Similarity) -> LinearForm:
    """Return ``trace(S M S M'^T)``, divided by the mean norm of full rankings."""
    S, change, factor = similarity.scaled, similarity.derivative, similarity.root
    first, second = np.triu_indices(len(S), 1)
    rows, columns = np.triu_indices(factor.shape[1], 1)
    norm, norm_change = mean_norm(S, change)
    if norm <= ROUNDING * np.trace(S) ** 2:
        raise ValueError("similarity: all items are the same, so they have no order; give a smaller similarity")

    def signs(pairs: FloatArray) -> FloatArray:
        result = np.zeros((len(pairs), len(S), len(S)))
        result[:, first, second], result[:, second, first] = pairs, -pairs
        return result

    def product(left: FloatArray, pairs: FloatArray, right: FloatArray) -> FloatArray:
        """Return ``left.T @ M @ right`` for the signs M of each row."""
        half = np.swapaxes(last_axis_product(signs(pairs), right), 1, 2)
        return np.swapaxes(last_axis_product(half, left), 1, 2)

    def root(pairs: FloatArray) -> FloatArray:
        return np.asarray(product(factor, pairs, factor)[:, rows, columns] * np.sqrt(2 / norm))

    def multiply(pairs: FloatArray) -> FloatArray:
        return np.asarray(product(S, pairs, S)[:, first, second] * (2 / norm))

    def derivative(pairs: FloatArray) -> FloatArray:
        mixed = product(change, pairs, S)  # M is antisymmetric
        both = mixed - np.swapaxes(mixed, 1, 2) - norm_change / norm * product(S, pairs, S)
        return np.asarray(both[:, first, second] * (2 / norm))

    return LinearForm("pairs", multiply, root, {SCALE: derivative}, mixes_items=True)


def mean_norm(S: FloatArray, change: FloatArray) -> tuple[float, float]:
    """Return the mean over all full rankings of ``trace(S M S M^T)``, and its derivative along a change of S.

    It is n (n - 1) if S is the identity. Signs of two pairs that share one item have correlation 1/3 or -1/3.

    Examples
    --------
    >>> mean_norm(np.eye(3), np.zeros((3, 3)))
    (6.0, 0.0)
    """
    trace, rows, d_rows = np.trace(S), S.sum(axis=1), change.sum(axis=1)
    value = trace**2 - (S**2).sum() + 2 * (trace * rows.sum() - rows @ rows)
    derivative = 2 * (trace * d_rows.sum() - 2 * rows @ d_rows) - 2 * (S * change).sum()
    return float(value / 3), float(derivative / 3)
