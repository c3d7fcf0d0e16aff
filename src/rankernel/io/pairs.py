"""Tables of pairwise comparisons: one row states which of two items a user prefers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils.checks import printable
from rankernel.errors import ArgumentValueError, RankingError
from rankernel.io.read_options import accepts
from rankernel.io.text_files import AnyPath, FileSource, SourceFile
from rankernel.io.text_table import TextTable, split_table
from rankernel.pair_tables import Comparisons, find_columns, from_columns
from rankernel.preferences import Preferences
from rankernel.rankings import Labels


@accepts("layout", "items", "count", "label_columns", "ignore", "columns", "delimiter", "encoding", "max_bytes")
def read_pairs(path: AnyPath, **keywords: Any) -> Preferences:
    """Read pairwise preferences from a delimited text table, plain or gzipped: one row per comparison.

    Columns are recognised by their names, in any order: ``winner`` and ``loser``, or ``model_a``, ``model_b`` and
    ``winner``, optionally with a ``judge`` and a ``count``; see :meth:`Preferences.from_pairs`. An ambiguous table is
    an error. If the pairs of a user form a cycle, the items of the cycle are tied, and ``n_contradicting`` counts these
    users. The label columns must be constant for each user.

    Parameters
    ----------
    path : path
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
    source = SourceFile.of(path, read_pairs, keywords)
    options = source.options
    if options.layout not in ("auto", "pairs"):
        raise ArgumentValueError("layout", options.layout, "'pairs' or 'auto' for comparisons")
    table = split_table(source.text, source)
    table.check_columns()
    given = dict(options.columns or {}) | ({} if options.count is None else {"count": options.count})
    others = [*options.ignore, *(name for name in options.label_columns if name not in given.values())]
    try:
        roles = find_columns(table.columns, given, others)
    except RankingError as error:
        raise source.restate(error, table.header_line) from None
    texts = {name: table.column(name, "columns").tolist() for name in roles.columns()}
    try:
        found = from_columns(texts, None, options.items, roles, lines=table.lines.tolist())
    except RankingError as error:
        raise source.restate(error) from None
    if not found.users:
        raise source.error(None, "the table has no rows; each row compares two items")
    n_users, n_items = len(found.users), len(found.items)
    source.check_size(n_users * n_items**2, f"all pairs of {n_items:,} items by {n_users:,} users")
    data = Preferences._from_comparisons(found, found.counts)
    about = FileSource(f"pairs: {roles}", ignored=(*options.ignore, *roles.ignored))
    fields = data.packed, data.items, data.counts, data.users, data.contracted
    return Preferences._trusted(*fields, user_labels(table, found), about)


def user_labels(table: TextTable, found: Comparisons) -> Labels:
    """Return the labels of each user, which must be the same in all rows of the user."""
    labels: Labels = {}
    for name in table.source.options.label_columns:
        texts = table.column(name, "label_columns")
        of_user = texts[found.row_of_user]
        different = np.flatnonzero(of_user[found.user] != texts)
        if len(different):
            row = int(different[0])
            user, column = printable(found.users[found.user[row]]), printable(name)
            both = f"{printable(texts[row])!r} and {printable(of_user[found.user[row]])!r}"
            problem = f"user {user!r} has {both} in column {column!r}; a label must be the same in all rows of a user"
            raise table.error(row, problem)
        labels[name] = of_user
    return labels
