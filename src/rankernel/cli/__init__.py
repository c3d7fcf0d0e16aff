"""The command line: parse, call, print. Each command is one module, which imports what it computes with when called."""

import sys

from rankernel.cli.endings import INTERRUPTED, NOTHING_KEPT, is_interruption
from rankernel.errors import missing_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        run()
    except (KeyboardInterrupt, Exception) as error:  # before there is a command that hears it
        if not is_interruption(error):
            raise
        sys.stderr.write(f"rankernel: interrupted; {NOTHING_KEPT}\n")
        raise SystemExit(INTERRUPTED) from None


def run() -> None:
    """Import the commands and run the one that is asked for."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        raise SystemExit(str(missing_extra(str(error.name), "cli"))) from None
    from rankernel.cli.app import app

    app(prog_name="rankernel")
