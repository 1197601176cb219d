"""``convergence stack signal-url``: addresses at which a resource can be signalled without a token."""

from __future__ import annotations

from typing import Any

import click

from convergence.cli.client import Api
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter


@click.command('signal-url', epilog=EPILOG)
@click.argument('name', metavar='STACK')
@click.argument('resource')
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
