"""``convergence stack signal`` and ``signal-url``: send signals to resources, with a token or by a secret URL."""

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
    help='Lifetime of the URL in seconds.  [default: the lifetime of the resource]',
)
@click.option('--revoke', is_flag=True, help='Revoke all earlier signal URLs of the resource.')
@printing
@connected
def signal_url(api: Api, output: ResultPrinter, name: str, resource: str, expires_in: int | None, revoke: bool) -> None:
    """Create a URL that accepts signals for RESOURCE without a token.

    The URL permits nothing else. Give it to the program that sends the signal, for example on a new server. It is
    shown once and not stored. --revoke also revokes the URLs in the attributes of the resource.
    """
    body: dict[str, Any] = {'expires_in_s': expires_in} if expires_in is not None else {}
    if revoke:
        body['revoke'] = True
    made = dict(api.send('POST', api.stack(name).at('resources', resource, 'signal_url'), body))
    if made.get('signal_url') is None:
        click.echo(
            'convergence: the signal URLs are revoked. A new one needs the public address of the API; '
            'set [api] public_url for all engines and workers.',
            err=True,
        )
    output.record(made)


@click.command(epilog=EPILOG)
@STACK
@RESOURCE
@click.option('--data', metavar='JSON', help='Content of the signal, a JSON map.')
@click.option(
    '--data-file',
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar='FILE',
    help='File with the content of the signal, a JSON map.',
)
@connected
def signal(api: Api, name: str, resource: str, data: str | None, data_file: Path | None) -> None:
    """Send a signal to RESOURCE. The resource type defines the content; many types need none."""
    if data is not None and data_file is not None:
        raise UsageMistake('--data and --data-file exclude each other.')
    stack = api.stack(name)
    api.send('POST', stack.at('resources', resource, 'signal'), _details(data, data_file))
    click.echo(f'Resource {resource} of stack {stack.name} received the signal.', err=True)


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
