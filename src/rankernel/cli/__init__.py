"""The command line: parse, call, print. Each command is one module, which imports what it computes with when called."""

from rankernel.errors import missing_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        raise SystemExit(str(missing_extra(str(error.name), "cli"))) from None
    from rankernel.cli.app import app

    app(prog_name="rankernel")
