"""``convergence-manage purge_deleted``: remove the rows of stacks that were deleted long ago.

The sweeper does the same after ``[limits] deleted_stacks_days``.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from convergence import errors
from convergence.cmd.process.program import ProgramExit

if TYPE_CHECKING:
    from convergence.db.connections.database import Database
    from convergence.db.repositories.purges import DeletedStack

UNITS = {'days': 86400.0, 'hours': 3600.0, 'minutes': 60.0, 'seconds': 1.0}
"""Seconds in each unit of an age; a letter stands for it as well."""
BATCH = 100

_AGE = re.compile(r'(?P<number>\d{1,9})(?P<unit>[dhms]?)')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command line may be."""
    parser.add_argument(
        'age', metavar='AGE', help='remove stacks that were deleted longer ago, for example 90, 90d, 12h, 30m or 45s'
    )
    parser.add_argument(
        '-g',
        '--granularity',
        choices=tuple(UNITS),
        default='days',
        help='unit of a bare AGE; default: days',
    )
    parser.add_argument('-p', '--project-id', metavar='ID', help='only the stacks of this project')
    parser.add_argument(
        '-b', '--batch-size', type=int, default=BATCH, metavar='N', help=f'stacks read per query; default: {BATCH}'
    )
    parser.add_argument('--dry-run', action='store_true', help='list the stacks and remove nothing')


def purge(arguments: argparse.Namespace, database: Database) -> ProgramExit:
    """Remove, or list, the stacks of that age. Those that have left objects stay: their rows say what those are.

    :raises Invalid: the age or the batch is none.
    :raises DatabaseUnavailable: the schema is another one.
    """
    from convergence.db.repositories.purges import long_deleted, remove_stack, with_objects
    from convergence.db.schema.migration import require_newest
    from convergence.db.statements.store import Store

    age_s = _seconds(arguments.age, arguments.granularity)
    if arguments.batch_size < 1:
        raise errors.Invalid(f'--batch-size must be 1 or more, not {arguments.batch_size}.')
    require_newest(database)
    store = Store(database)
    after, removed, kept, rows = None, 0, 0, 0
    while found := long_deleted(store, age_s, arguments.batch_size, after, arguments.project_id):
        after = found[-1]
        holding = with_objects(store, [stack.id for stack in found])
        for stack in found:
            if stack.id in holding:
                kept += 1
                print(f'{_told(stack)} stays: it has left objects, and its rows say which.')
            elif arguments.dry_run:
                removed += 1
                print(f'{_told(stack)} would be removed.')
            else:
                rows += remove_stack(store, stack.id)
                removed += 1
    stacks = f'{removed} {"stack" if removed == 1 else "stacks"}'
    rest = f'; {kept} stay' if kept else ''
    print(f'{stacks} would be removed{rest}.' if arguments.dry_run else f'{stacks} removed, {rows} rows{rest}.')
    return ProgramExit.OK


def _seconds(age: str, granularity: str) -> float:
    found = _AGE.fullmatch(age)
    if found is None:
        raise errors.Invalid(f'{age!r} is no age such as 90, 90d, 12h, 30m or 45s.')
    unit = next((name for name in UNITS if name[0] == found['unit']), granularity)
    return int(found['number']) * UNITS[unit]


def _told(stack: DeletedStack) -> str:
    moment = datetime.fromtimestamp(stack.deleted_at, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
    return f'{stack.name} ({stack.id}) of project {stack.project_id}, deleted {moment},'
