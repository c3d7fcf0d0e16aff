"""How a command ends: its exit codes, and what is said where it was interrupted and has kept nothing."""

DATA_ERROR, INTERRUPTED, TERMINATED = 1, 130, 143  # 2, for the command line itself, is typer's
NOTHING_KEPT = "nothing was written; the same command starts again"
