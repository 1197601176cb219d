"""``convergence-manage credentials``: what stacks act with for their users, where something is wrong with it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from convergence import errors
from convergence.cmd.process.program import ProgramExit

if TYPE_CHECKING:
    from convergence.db.connections.database import Database
    from convergence.db.repositories.credentials import CredentialRows

HEAD = ('ID', 'STATUS', 'METHOD', 'USER', 'PROJECT', 'STACK', 'ATTEMPTS', 'REASON')


def troubled(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Show those that Keystone has refused, and those that could not be removed yet."""
    rows = [
        (
            each.id,
            each.status.value,
            each.method.value,
            each.user_id,
            each.project_id,
            each.stack_id or '',
            str(each.attempts),
            each.reason,
        )
        for each in _rows(database).troubled()
    ]
    widths = [max(len(row[column]) for row in (HEAD, *rows)) for column in range(len(HEAD))]
    for row in (HEAD, *rows):
        print('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return ProgramExit.OK


def forget(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Forget credentials that are being removed.

    :raises Invalid: there are none such.
    """
    if not _rows(database).forget(arguments.id):
        raise errors.Invalid(
            f'No credentials {arguments.id} are being removed. Those that a stack has are removed with the stack.'
        )
    print(f'The credentials {arguments.id} are forgotten.')
    return ProgramExit.OK


def _rows(database: Database) -> CredentialRows:
    from convergence.db.repositories.credentials import CredentialRows
    from convergence.db.schema.migration import require_newest
    from convergence.db.statements.store import Store

    require_newest(database)
    return CredentialRows(Store(database))
