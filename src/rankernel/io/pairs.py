"""Files of comparisons: one row says which of two items somebody prefers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rankernel._utils import checks
from rankernel._utils.checks import printable
from rankernel.encoding import check_items
from rankernel.errors import RankingError
from rankernel.io.file_data import About, FilePreferences, Labels, Reading, file_preferences
from rankernel.io.files import MOST_BYTES, AnyPath, check_grown_size, fail
from rankernel.io.records import Records, read_records
from rankernel.pair_tables import Comparisons, find_columns, from_columns
from rankernel.preferences import Preferences


def read_pairs(
    path: AnyPath,
    *,
    items: Iterable[object] | None = None,
    count: str | None = None,
    labels: Sequence[str] = (),
    ignore: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    delimiter: str = "auto",
    encoding: str = "utf-8",
    max_bytes: int = MOST_BYTES,
) -> FilePreferences:
    """Read pairwise preferences from a table of text, plain or gzipped: one row a comparison.

    Columns are found by their names, in any order: ``winner`` and ``loser``, or ``model_a``, ``model_b`` and
    ``winner``, with a ``judge`` and a ``count`` beside them; see :meth:`Preferences.from_pairs`. A table whose meaning
    is not clear is refused. A user whose pairs run in a circle contradicts itself: the items of the circle are tied,
    and ``n_contradicting`` says how many users did.

    Parameters
    ----------
    path : path
        The file.
    items : iterable of names, optional
        All items there are; if left out, those that occur, in order of first appearance.
    count : str, optional
        The column that says for how many voters a user stands, or a row if there are no users.
    labels : sequence of str
        Columns to keep beside the preferences: all rows of a user say the same there.
    ignore : sequence of str
        Columns to pass over.
    columns : mapping, optional
        Which column is what, where its name does not tell: ``{"user": "expert"}``. There are user, better, worse; a,
        b, winner; count.
    delimiter, encoding, max_bytes
        As in :func:`read_csv`.

    Returns
    -------
    FilePreferences
        The preferences, with ``labels``, and in ``about`` what the columns were taken for.

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
    FilePreferences: 2 users, 3 items
      ann: gpt > llama, mistral > llama
      bob: nothing known
      read as pairs: user in judge, a in model_a, b in model_b, winner in winner
    """
    names = None if items is None else check_items(items)
    kept, passed = checks.check_names("labels", labels), checks.check_names("ignore", ignore)
    stated = dict(
        checks.check_instance("columns", {} if columns is None else columns, Mapping, "a mapping of roles to columns")
    )
    if count is not None:
        stated["count"] = checks.check_text("count", count)
    table = read_records(path, delimiter, encoding, max_bytes)
    for name in (*kept, *passed):
        table.position(name, "labels or ignore")
    used = set(stated.values())
    try:
        roles = find_columns(table.columns, stated, [*passed, *(name for name in kept if name not in used)])
    except RankingError as error:
        raise fail(path, table.head, str(error)) from None
    texts = {name: table.column(name, "columns").tolist() for name in roles.columns()}
    try:
        found = from_columns(texts, None, names, roles, lines=table.lines.tolist())
    except RankingError as error:
        raise fail(path, None, str(error)) from None
    if not found.users:
        raise fail(path, None, "the table has no rows; a row compares two items")
    n_users, n_items = len(found.users), len(found.items)
    check_grown_size(n_users * n_items**2, f"all pairs of {n_items:,} items by {n_users:,} users", path, max_bytes)
    about = About(f"pairs: {roles}", passed_over=(*passed, *roles.passed_over))
    data = Preferences._from_comparisons(found, found.counts)
    return file_preferences(data, Reading(labels_of_users(table, kept, found), about=about))


def labels_of_users(table: Records, labels: Sequence[str], found: Comparisons) -> Labels:
    """Return the labels of each user, which all rows of the user must agree on."""
    kept: Labels = {}
    for name in labels:
        texts = table.column(name, "labels")
        of_user = texts[found.row_of_user]
        wrong = np.flatnonzero(of_user[found.user] != texts)
        if len(wrong):
            row = int(wrong[0])
            user = printable(found.users[found.user[row]])
            raise fail(
                table.path,
                table.line(row),
                f"user {user!r} has {printable(texts[row])!r} in column {printable(name)!r} and "
                f"{printable(of_user[found.user[row]])!r} in another row; a label is one for each user",
            )
        kept[name] = of_user
    return kept
