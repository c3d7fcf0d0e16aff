"""How a command ends: its exit codes, and what is said where it was interrupted and has kept nothing."""

DATA_ERROR, INTERRUPTED, TERMINATED = 1, 130, 143  # 2, for the command line itself, is typer's
NOTHING_KEPT = "nothing was written; the same command starts again"


def is_interruption(error: BaseException | None) -> bool:
    """Say whether Ctrl-C lies behind an error: what is imported or called back may turn it into one of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
