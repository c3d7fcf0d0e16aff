"""Tables of pairwise comparisons: one row states which of two items a user prefers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel.comparisons import Comparisons
from rankernel.errors import ArgumentValueError, RankingError
from rankernel.io.cells import Table, read_table
from rankernel.io.source import FileSource, SourceFile, accepts, quoted
from rankernel.pair_tables import PairTable, Roles, find_columns, from_columns
from rankernel.preferences import Preferences
from rankernel.rankings import Labels


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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '''judge,model_a,model_b,winner
    ... ann,gpt,llama,model_a
    ... ann,llama,mistral,model_b
    ... bob,gpt,mistral,tie
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "battles.csv")
    ...     _ = file.write_text(text)
    ...     read_pairs(file)
    Preferences: 2 users, 3 items
      ann: gpt > llama, mistral > llama
      bob: no order
      read as pairs: user in judge, a in model_a, b in model_b, winner in winner
    """
    found, roles, table = read_pair_table(SourceFile.of(path, read_pairs, keywords))
    source, n_users, n_items = table.source, len(found.users), len(found.items)
    source.check_size(n_users * n_items**2, f"all pairs of {n_items:,} items by {n_users:,} users")
    data = Preferences._from_pair_table(found, found.counts)
    labels: Labels = {}
    for name in source.options.label_columns:
        texts = table.column(name, "label_columns")
        labels[name] = of_user = texts[found.row_of_user]
        different = np.flatnonzero(of_user[found.user] != texts)
        if len(different):
            row = int(different[0])
            user, both = quoted(found.users[found.user[row]]), (quoted(texts[row]), quoted(of_user[found.user[row]]))
            problem = f"user {user} has {' and '.join(both)} in column {quoted(name)}"
            raise table.error(row, f"{problem}; a label must be the same in all rows of a user")
    about = FileSource(f"pairs: {roles}", ignored=roles.ignored)
    fields = data.packed, data.items, data.counts, data.users, data.contracted
    return Preferences._trusted(*fields, labels, about)


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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "battles.csv")
    ...     _ = file.write_text("model_a,model_b,winner,language\ngpt,llama,model_a,en\nllama,gpt,tie,en\n")
    ...     read_comparisons(file)
    Comparisons: 2 comparisons of 2 items (1 tie)
      gpt > llama
      llama = gpt
      read as comparisons: a in model_a, b in model_b, winner in winner
    """
    source = SourceFile.of(path, read_comparisons, keywords)
    roles, table = read_roles(source)
    names = [name for name in table.columns if name not in source.options.ignore]
    columns = {name: table.coded(table.positions[name]) for name in names}
    about = FileSource(f"comparisons: {roles}", ignored=tuple(source.options.ignore))
    try:
        return Comparisons._from_columns(
            columns, roles, source.options.items, lambda row: f"line {table.lines[row]}", about
        )
    except RankingError as error:
        raise source.restate(error) from None


def read_pair_table(source: SourceFile) -> tuple[PairTable, Roles, Table]:
    """Return the pairs in a table, the roles of its columns, and the table."""
    roles, table = read_roles(source)
    columns = {name: table.coded(table.positions[name]) for name in roles.columns()}
    try:
        found = from_columns(columns, None, source.options.items, roles, lambda row: f"line {table.lines[row]}")
    except RankingError as error:
        raise source.restate(error) from None
    return found, roles, table


def read_roles(source: SourceFile) -> tuple[Roles, Table]:
    """Return the roles of the columns of a table, and the table."""
    options = source.options
    if options.layout not in ("auto", "pairs"):
        raise ArgumentValueError("layout", options.layout, "'pairs' or 'auto' for comparisons")
    table = read_table(source)
    table.check_columns()
    given = dict(options.columns or {}) | ({} if options.count is None else {"count": options.count})
    others = [*options.ignore, *(name for name in options.label_columns if name not in given.values())]
    try:
        roles = find_columns(table.columns, given, others)
    except RankingError as error:
        raise source.restate(error, table.header_line) from None
    if not len(table):
        raise source.error(None, "the table has no rows; each row compares two items")
    return roles, table
