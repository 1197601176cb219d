"""The command ``convergence``. Each group of commands is a module, imported when it is used.

The exit codes are those of `convergence.cli.exits`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from typing_extensions import override

from convergence import __version__, errors
from convergence.cli.exits import ExitCode, epilog

NAME = 'convergence'

GROUPS = {
    'apply': 'convergence.cli.stack.changes:apply',
    'completion': 'convergence.cli.completion:completion',
    'serve': 'convergence.cmd.serve:serve',
    'service': 'convergence.cli.service:service',
    'software': 'convergence.cli.software:software',
    'stack': 'convergence.cli.stack.commands:stack',
    'template': 'convergence.cli.template.commands:template',
    'webhook': 'convergence.cli.webhook:webhook',
}
"""The ``module:attribute`` of each `click.Command` by name."""


class Commands(click.Group):
    """The commands of `GROUPS`. Only the used one is imported, which keeps the start fast."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, sorted."""
        return sorted(GROUPS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called `cmd_name`; None if it does not exist."""
        target = GROUPS.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(':')
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.command(NAME, cls=Commands, epilog=epilog(), context_settings={'help_option_names': ['-h', '--help']})
@click.version_option(__version__, prog_name=NAME)
def program() -> None:
    """Create, update and delete stacks of resources from templates."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code."""
    try:
        code: Any = program.main(args=None if argv is None else list(argv), prog_name=NAME, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo('Interrupted.', err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except errors.ConvergenceError as error:
        click.echo(f'{NAME}: {error}', err=True)
        return 1
    except BrokenPipeError:
        # The reader has closed the pipe. The interpreter would report an error when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code if isinstance(code, int) else 0


if __name__ == '__main__':
    sys.exit(main())
