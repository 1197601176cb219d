"""``convergence stack snapshot``: takes, shows and restores snapshots of stacks."""

from __future__ import annotations

from typing import Any

import click

from convergence.cli.arguments import SNAPSHOT, STACK
from convergence.cli.connection.client import AcceptedRequest, Api, StackClient
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter
from convergence.cli.watch.operations import Follow, start_operation
from convergence.cli.watch.waiting import waitable
from convergence.documents import Document

COLUMNS = ('id', 'name', 'action', 'status', 'status_reason', 'creation_time')


@click.group(epilog=EPILOG)
def snapshot() -> None:
    """Manage snapshots of a stack.

    A snapshot holds template, parameters and files, and the data that resource types save of their objects.
    """


@snapshot.command(epilog=EPILOG)
@STACK
@click.option('--name', 'called', metavar='NAME', help='Name of the snapshot.')
@waitable
@printing
@connected
def create(api: Api, output: ResultPrinter, name: str, called: str | None, **given: Any) -> int:
    """Take a snapshot of STACK."""
    stack = api.stack(name)
    made: Document = {}

    def begin() -> AcceptedRequest:
        accepted = api.begin('POST', stack.at('snapshots'), {'name': called} if called else {})
        made.update(accepted.document)
        return accepted

    shown = lambda: _short(_snapshot(stack, str(made['id'])))  # noqa: E731 - read at the end, not now
    return start_operation(stack, begin, 'SNAPSHOT_COMPLETE', Follow.of(given), output, shown)


@snapshot.command('list', epilog=EPILOG)
@STACK
@printing
@connected
def list_(api: Api, output: ResultPrinter, name: str) -> None:
    """List the snapshots of STACK."""
    output.listing(COLUMNS, api.get(api.stack(name).at('snapshots'))['snapshots'])


@snapshot.command(epilog=EPILOG)
@STACK
@SNAPSHOT
@printing
@connected
def show(api: Api, output: ResultPrinter, name: str, snapshot_id: str) -> None:
    """Show the snapshot of STACK with the id SNAPSHOT."""
    output.record(_snapshot(api.stack(name), snapshot_id))


@snapshot.command(epilog=EPILOG)
@STACK
@SNAPSHOT
@connected
def delete(api: Api, name: str, snapshot_id: str) -> None:
    """Delete the snapshot with the id SNAPSHOT and its data."""
    stack = api.stack(name)
    api.send('DELETE', stack.at('snapshots', snapshot_id))
    click.echo(f'Snapshot {snapshot_id} of stack {stack.name} is being deleted.', err=True)


@snapshot.command(epilog=EPILOG)
@STACK
@SNAPSHOT
@waitable
@printing
@connected
def restore(api: Api, output: ResultPrinter, name: str, snapshot_id: str, **given: Any) -> int:
    """Restore STACK to the snapshot with the id SNAPSHOT. Like an update, this can fail and be rolled back."""
    stack = api.stack(name)
    path = stack.at('snapshots', snapshot_id, 'restore')
    return start_operation(stack, lambda: api.begin('POST', path), 'RESTORE_COMPLETE', Follow.of(given), output)


def _snapshot(stack: StackClient, snapshot_id: str) -> Document:
    return dict(stack.api.get(stack.at('snapshots', snapshot_id))['snapshot'])


def _short(document: Document) -> Document:
    return {name: document.get(name) for name in COLUMNS}
