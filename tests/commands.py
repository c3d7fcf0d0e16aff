"""Commands in this process.

What the command line takes is put together from its functions once for all commands, not for each: that takes longer
than most of them.
"""

from functools import cache

from typer import testing

from rankernel.cli.app import app

testing._get_command = cache(testing._get_command)


def run(*arguments):
    """Run a command in this process."""
    return testing.CliRunner().invoke(app, [str(argument) for argument in arguments])
