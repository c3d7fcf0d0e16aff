"""Tables of pairwise comparisons: one row states which of two items a user prefers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel.columns import Roles, find_columns, first_rows
from rankernel.comparisons import Comparisons
from rankernel.errors import ArgumentValueError
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.io.table import Table, read_table
from rankernel.preferences import Preferences


@accepts(
    "layout", "header", "items", "count", "label_columns", "ignore", "columns", "delimiter", "encoding", "max_bytes"
)
def read_pairs(path: Any, **keywords: Any) -> Preferences:
    """Read pairwise preferences from a table, in any format of :func:`read_csv`: one row per comparison.

    Columns are recognised by their names, in any order, among any others: ``winner`` and ``loser``, or ``model_a``,
    ``model_b`` and ``winner`` (also ``left``, ``right``; a winner 1, 2 or 1.5; columns ``winner_model_a``,
    ``winner_model_b`` and ``winner_tie`` of 0 and 1), optionally with a ``judge`` and a ``count``; see
    :meth:`Preferences.from_pairs`. An ambiguous table is an error. If the pairs of a user form a cycle, the items of
    the cycle are tied, and ``n_contradicting`` counts these users. The label columns must be constant for each user.

    Parameters
    ----------
    path : path or file object
        The file.
    {options}

    Returns
    -------
    Preferences
        The preferences with ``labels``; ``source`` describes the roles of the columns.

    Examples
    --------
    >>> from io import StringIO
    >>> text = '''judge,model_a,model_b,winner
    ... ann,gpt,llama,model_a
    ... ann,llama,mistral,model_b
    ... bob,gpt,mistral,tie
    ... '''
    >>> read_pairs(StringIO(text))
    Preferences: 2 users, 3 items
      ann: gpt > llama, mistral > llama
      bob: no order
      read as pairs: user in judge, a in model_a, b in model_b, winner in winner
    """
    source = SourceFile.of(path, read_pairs, keywords)
    roles, table = read_roles(source)
    battles = read_battles(table, roles, roles.columns(), FileSource())
    n_users, n_items = battles.n_judges or len(battles), battles.n_items
    source.check_size(n_users * n_items**2, f"all pairs of {n_items:,} items by {n_users:,} users")
    with source.named_in_errors():
        data, user = battles._of_users(roles, None, None, table.row_name)
    first = first_rows(user, len(data))
    labels = {}
    for name in source.options.label_columns:
        texts = table.labels(name)
        labels[name] = texts[first]
        different = np.flatnonzero(labels[name][user] != texts)
        if len(different):
            row = int(different[0])
            both = f"{quoted(texts[row])} and {quoted(labels[name][user[row]])}"
            problem = f"user {quoted(data.users[user[row]])} has {both} in column {quoted(name)}"
            raise table.error(row, f"{problem}; a label must be the same in all rows of a user")
    about = FileSource(f"pairs: {roles}", ignored=roles.ignored)
    return Preferences._trusted(data.packed, data.items, data.counts, data.users, data.contracted, labels, about)


@accepts("layout", "header", "items", "count", "ignore", "columns", "delimiter", "encoding", "max_bytes")
def read_comparisons(path: Any, **keywords: Any) -> Comparisons:
    r"""Read comparisons from a table, in any format of :func:`read_csv`: one row per comparison.

    Columns are recognised as in :func:`read_pairs`. Other columns become labels, and a column of times or dates the
    time of each comparison; see :meth:`Comparisons.from_frame`.

    Parameters
    ----------
    path : path or file object
        The file.
    {options}

    Returns
    -------
    Comparisons

    Examples
    --------
    >>> from io import StringIO
    >>> read_comparisons(StringIO("model_a,model_b,winner,language\ngpt,llama,model_a,en\nllama,gpt,tie,en\n"))
    Comparisons: 2 comparisons of 2 items (1 tie)
      gpt > llama
      llama = gpt
      read as comparisons: a in model_a, b in model_b, winner in winner
    """
    source = SourceFile.of(path, read_comparisons, keywords)
    roles, table = read_roles(source)
    about = FileSource(f"comparisons: {roles}", ignored=tuple(source.options.ignore))
    return read_battles(table, roles, [name for name in table.columns if name not in source.options.ignore], about)


def read_battles(table: Table, roles: Roles, names: list[str], about: FileSource) -> Comparisons:
    """Return the comparisons of a table, with labels from some of its columns."""
    columns = {name: table.columns[name] for name in names}
    with table.source.named_in_errors():
        return Comparisons._from_columns(columns, roles, table.source.options.items, table.row_name, about)


def read_roles(source: SourceFile) -> tuple[Roles, Table]:
    """Return the roles of the columns of a table, and the table."""
    options = source.options
    if options.layout not in ("auto", "pairs"):
        raise ArgumentValueError("layout", options.layout, "'pairs' or 'auto' for comparisons")
    table = read_table(source)
    table.check_columns()
    given = dict(options.columns or {}) | ({} if options.count is None else {"count": options.count})
    others = [*options.ignore, *(name for name in options.label_columns if name not in given.values())]
    with source.named_in_errors(table.header_line):
        roles = find_columns(list(table.columns), given, others)
    if not len(table):
        raise source.error(None, "the table has no rows; each row compares two items")
    return roles, table
