"""Copying the entries of equal rows and columns inside a matrix."""

from rankernel._loops.compiled import compiled


@compiled
def along_rows(matrix, rows, source):
    """``matrix[i, j] = matrix[i, source[j]]`` for some rows; a column that is its own source keeps its values."""
    for i in rows:
        for j in range(len(source)):
            if source[j] != j:
                matrix[i, j] = matrix[i, source[j]]


@compiled
def whole_rows(matrix, rows, source):
    """``matrix[i] = matrix[s]`` for some rows i, each with the row s that it equals."""
    for k in range(len(rows)):
        for j in range(matrix.shape[1]):
            matrix[rows[k], j] = matrix[source[k], j]
