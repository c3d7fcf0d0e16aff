"""``python -m rankernel`` is ``rankernel``."""

from rankernel.cli import main

main()
