"""The paper's experiments, end to end: every table and figure beside what is measured here."""

from __future__ import annotations

from typing import Any

__all__ = ["register"]


def register(app: Any) -> None:
    """Add the command ``reproduce`` to the command line."""
    from rankernel.experiments.command import reproduce

    app.command(
        "reproduce",
        epilog="**Examples:** `rankernel reproduce all --quick` · `rankernel reproduce table2 -o results --seed 1`",
    )(reproduce)
