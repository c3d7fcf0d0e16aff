"""The command line: it parses, calls and prints. Commands import what they compute with when they are called."""

import atexit
import gc
import io
import sys

from rankernel.errors import missing_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    atexit.register(gc.freeze)  # or Python searches all objects for cycles before it exits: 0.3 s after a report
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal lacks is escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            import rich  # noqa: F401
            import typer  # noqa: F401
        except ImportError as error:
            raise SystemExit(str(missing_extra(str(error.name), "cli"))) from None
        from rankernel.cli.app import app

        app(prog_name="rankernel")
    except KeyboardInterrupt:  # during the imports
        sys.stderr.write("rankernel: interrupted; nothing was written; the same command starts again\n")
        raise SystemExit(130) from None
