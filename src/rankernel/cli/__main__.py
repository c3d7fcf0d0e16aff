"""``python -m rankernel.cli`` is ``rankernel``."""

from rankernel.cli import main

main()
