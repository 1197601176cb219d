"""``convergence-manage orphans``: objects that resource types know to be ours and that no row claims."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from convergence.cmd.process.program import ProgramExit
from convergence.resources.contract import Item
from convergence.resources.registry import Registry

if TYPE_CHECKING:
    from convergence.db.connections.database import Database
    from convergence.db.repositories.reads.inspection import Claims

HEAD = ('TYPE', 'PHYSICAL ID', 'NAME', 'TOKEN')


@dataclass(frozen=True, slots=True)
class Orphan:
    """An object without a row.

    :param token: as the type shows it: the token, or its digest.
    """

    type: str
    physical_id: str
    name: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """The objects that were compared with the rows.

    :param silent: the types that cannot tell what exists.
    :param failed: for each type that could not list its objects, the reason.
    :param unknown: types of rows that are not installed here; their objects were not listed.
    """

    orphans: tuple[Orphan, ...]
    asked: tuple[str, ...]
    silent: tuple[str, ...]
    failed: Mapping[str, str]
    unknown: tuple[str, ...] = ()

    @property
    def is_all_clear(self) -> bool:
        """True if no orphan was found among the types that listed their objects."""
        return bool(self.asked) and not (self.orphans or self.failed or self.unknown)


def unclaimed(items: Iterable[Item], claims: Claims) -> list[Item]:
    """The items that no row names, by physical id or by token."""
    tokens = claims.tokens | {hashlib.sha256(token.encode()).hexdigest() for token in claims.tokens}
    return [
        item
        for item in items
        if item.physical_id not in claims.physical_ids and (item.token is None or item.token not in tokens)
    ]


def find_orphans(database: Database, types: Registry) -> Found:
    """Let every type list its objects, before the rows are read and again afterwards.

    An object made meanwhile has a row by then; an object deleted meanwhile is not listed a second time.
    """
    from convergence.db.repositories.reads.inspection import claims, types_of_rows
    from convergence.db.statements.store import Store

    orphans: list[Orphan] = []
    asked: list[str] = []
    silent: list[str] = []
    failed: dict[str, str] = {}
    for name in types.names():
        try:
            listed = types.get(name).inventory()
            if listed is None:
                silent.append(name)
                continue
            candidates = unclaimed(list(listed), claims(Store(database)))
            still = {item.physical_id for item in types.get(name).inventory() or ()} if candidates else set()
        except Exception as error:  # noqa: BLE001 - code of a plugin: the other types still count
            failed[name] = ' '.join(str(error).split()) or type(error).__name__
            continue
        asked.append(name)
        orphans += [
            Orphan(name, each.physical_id, each.name, each.token) for each in candidates if each.physical_id in still
        ]
    unknown = sorted(types_of_rows(Store(database)) - set(types.names()))
    return Found(tuple(orphans), tuple(asked), tuple(silent), failed, tuple(unknown))


def orphans(arguments: argparse.Namespace, database: Database, types: Registry) -> ProgramExit:
    """Show them. Exit code 1: there are some, or it was not possible to look for all.

    :raises DatabaseUnavailable: the schema is another one.
    """
    from convergence.db.schema.migration import require_newest

    require_newest(database)
    found = find_orphans(database, types)
    if arguments.format == 'json':
        print(json.dumps(asdict(found), indent=2, sort_keys=True))
    else:
        _show(found)
    return ProgramExit.OK if found.is_all_clear else ProgramExit.FAILED


def _show(found: Found) -> None:
    if found.orphans:
        rows = [HEAD, *((each.type, each.physical_id, each.name, each.token or '') for each in found.orphans)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
        for row in rows:
            print('  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    elif found.asked:
        print(f'No object without a row, of {len(found.asked)} types that can tell.')
    else:
        print('No type that is installed here can tell what exists, so nothing is known.', file=sys.stderr)
    for name in found.unknown:
        print(
            f'{name} stands in rows and is not installed here: run this where workers run, with their configuration.',
            file=sys.stderr,
        )
    for name, reason in found.failed.items():
        print(f'{name} could not list its objects: {reason}', file=sys.stderr)
    if found.silent:
        print(f'{len(found.silent)} types cannot tell what exists: {", ".join(found.silent)}', file=sys.stderr)
