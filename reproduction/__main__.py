"""``python -m reproduction``: see :mod:`reproduction.command`."""

import typer

from reproduction.command import reproduce

typer.run(reproduce)
