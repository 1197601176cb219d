"""``convergence service``: the processes of an installation."""

from __future__ import annotations

import click

from convergence.cli.connection.client import Api
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter

COLUMNS = ('binary', 'host', 'status', 'version', 'updated_at', 'id', 'pid')


@click.group(epilog=EPILOG)
def service() -> None:
    """Look at the processes of the installation."""


@service.command('list', epilog=EPILOG)
@printing
@connected
def list_(api: Api, output: ResultPrinter) -> None:
    """List the processes of the installation, and whether they are alive.

    "id" is what logs and "stack explain" call a process; "pid" is its number on its host, known from its first sign of
    life.
    """
    output.listing(COLUMNS, api.get('services')['services'])
