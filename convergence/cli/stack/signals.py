"""``convergence stack signal`` and ``signal-url``: tell a resource something, or let somebody without a token do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from convergence.cli.arguments import RESOURCE, STACK
from convergence.cli.connection.client import Api
from convergence.cli.exits import UsageMistake
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter


@click.command('signal-url', epilog=EPILOG)
@STACK
@RESOURCE
@click.option(
    '--expires-in',
    type=click.IntRange(min=1),
    metavar='SECONDS',
    help='For how long it is good; else as long as the resource lives.',
)
@click.option('--revoke', is_flag=True, help='Make all addresses of the resource void that were made before.')
@printing
@connected
def signal_url(api: Api, output: ResultPrinter, name: str, resource: str, expires_in: int | None, revoke: bool) -> None:
    """Make an address at which RESOURCE can be signalled without a token.

    Whoever knows it can do that and nothing else: give it to what is to say "done", such as a new server. It is shown
    once and stored nowhere. With --revoke the addresses that the resource itself hands out in its attributes are void.
    """
    body: dict[str, Any] = {'expires_in_s': expires_in} if expires_in is not None else {}
    if revoke:
        body['revoke'] = True
    made = dict(api.send('POST', api.stack(name).at('resources', resource, 'signal_url'), body))
    if made.get('signal_url') is None:
        click.echo(
            'convergence: the addresses are revoked. A new one cannot be made: nobody knows where it should lead to; '
            'set [api] public_url for all engines and workers.',
            err=True,
        )
    output.record(made)


@click.command(epilog=EPILOG)
@STACK
@RESOURCE
@click.option('--data', metavar='JSON', help='What to say, a map.')
@click.option(
    '--data-file',
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar='FILE',
    help='What to say, from a file.',
)
@connected
def signal(api: Api, name: str, resource: str, data: str | None, data_file: Path | None) -> None:
    """Hand a signal to RESOURCE. What it may say depends on the resource's type; nothing is fine for many."""
    if data is not None and data_file is not None:
        raise UsageMistake('--data and --data-file: leave one of them out.')
    stack = api.stack(name)
    api.send('POST', stack.at('resources', resource, 'signal'), _details(data, data_file))
    click.echo(f'Resource {resource} of stack {stack.name} was signalled.', err=True)


def _details(data: str | None, data_file: Path | None) -> dict[str, Any] | None:
    if data is None and data_file is None:
        return None
    option = '--data' if data is not None else f'--data-file: {data_file}'
    try:
        found = json.loads(data if data is not None else data_file.read_bytes() if data_file is not None else b'')
    except (OSError, ValueError) as error:
        raise UsageMistake(f'{option} is not JSON: {error}') from None
    if not isinstance(found, dict):
        raise UsageMistake(f'{option} must be a map, such as {{"status": "SUCCESS"}}.')
    return found


COMMANDS = (signal, signal_url)
