"""``convergence service``: the processes of an installation."""

from __future__ import annotations

import click

from convergence.cli.connection.client import Api
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter

COLUMNS = ('binary', 'host', 'status', 'version', 'updated_at', 'id', 'pid')


@click.group(epilog=EPILOG)
def service() -> None:
    """List the processes of the installation."""


@service.command('list', epilog=EPILOG)
@printing
@connected
def list_(api: Api, output: ResultPrinter) -> None:
    """List the processes of the installation with their status.

    Logs and "stack explain" name a process by its "id". "pid" is its process number on its host; it is known after the
    first heartbeat.
    """
    output.listing(COLUMNS, api.get('services')['services'])
