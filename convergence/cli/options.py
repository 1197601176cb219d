"""Options that many commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from convergence.cli.arguments import CommandT
from convergence.cli.connection import targets
from convergence.cli.connection.client import Api
from convergence.cli.exits import UsageMistake, epilog
from convergence.cli.output import Format, ResultPrinter

_CONNECTION = (
    click.option('--endpoint', metavar='URL', default='', help='URL of the server.  [default: see docs/cli.rst]'),
    click.option(
        '--project',
        metavar='NAME',
        default='',
        help='Name of the project.  [default: CONVERGENCE_PROJECT, else default]',
    ),
    click.option(
        '--token',
        metavar='TOKEN',
        default='',
        help='Token for a server with Keystone. The variable CONVERGENCE_TOKEN hides it from other users.',
    ),
    click.option(
        '--server',
        metavar='NAME',
        default='',
        help='Server of ~/.config/convergence/cli.yaml to use instead of --endpoint.',
    ),
    click.option(
        '--os-cloud',
        'cloud',
        metavar='NAME',
        default='',
        help='Cloud of clouds.yaml to use, with its Keystone credentials.',
    ),
)

_OUTPUT = (
    click.option(
        '-f',
        '--format',
        'form',
        type=click.Choice([form.value for form in Format]),
        default='table',
        show_default=True,
        help='Output format.',
    ),
    click.option('-c', '--column', 'columns', multiple=True, metavar='NAME', help='Column to show. May be repeated.'),
)

EPILOG = epilog()


def connected(command: CommandT) -> CommandT:
    """Give a command the options that select the server. The command gets an `Api` as its first argument."""

    @functools.wraps(command)
    def with_api(*, endpoint: str, project: str, token: str, server: str, cloud: str, **rest: Any) -> object:
        named = [name for name, given in (('endpoint', endpoint), ('server', server), ('os-cloud', cloud)) if given]
        if len(named) > 1:
            raise UsageMistake(f'--{" and --".join(named)} name {len(named)} servers. Use only one of them.')
        wish = targets.ServerArguments(endpoint, project, token, server, cloud)
        return command(Api(targets.from_process(wish)), **rest)

    return _with(with_api, _CONNECTION)  # type: ignore[return-value]


def printing(command: CommandT) -> CommandT:
    """Give a command ``--format`` and ``--column``. The command gets a `ResultPrinter` as ``output``."""

    @functools.wraps(command)
    def with_output(*arguments: Any, form: str, columns: tuple[str, ...], **rest: Any) -> object:
        return command(*arguments, output=ResultPrinter(Format(form), columns), **rest)

    return _with(with_output, _OUTPUT)  # type: ignore[return-value]


def _with(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command
