"""What the cloud of `tests/functional/plugin/kinds_type.py` has in its own books, and what may be said about it.

Nothing here asks the engine what it has made: objects, doubles and orphans are counted in the cloud.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.installation import AWAY, Installation

UNTOLD = frozenset({'Kind::Neither', 'Kind::AsyncNeither'})
"""Types of which nobody can tell what a lost creation has made: that has to be said, and the object stays."""

Wanted = Mapping[str, Mapping[str, Any]]
"""`type`, `value`, `place`, `takes` and `after` of each resource of a stack."""


@dataclass(frozen=True)
class Object:
    """One object of the cloud."""

    id: str
    stack: str
    name: str
    token: str
    value: str
    place: str


@dataclass(frozen=True)
class Line:
    """One line of the journal.

    :param what: ``create``, ``update``, ``delete`` begin a call; ``created``, ``updated``, ``deleted`` end one;
        ``made`` an object; ``die``, ``lose``, ``hold``: what was planned came true.
    """

    what: str
    at: float
    pid: int
    stack: str
    name: str
    token: str
    id: str | None


class Ledger:
    """The books of the cloud."""

    def __init__(self, reality: Path) -> None:
        self._root = reality / 'kinds'
        for name in ('objects', 'faults', 'gates'):
            (self._root / name).mkdir(parents=True, exist_ok=True)

    def objects(self, stack: str) -> list[Object]:
        """What exists for a stack."""
        found = []
        for path in (self._root / 'objects').glob('*.json'):
            with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                found.append(Object(**json.loads(path.read_text())))
        return [each for each in found if each.stack == stack]

    def journal(self, stack: str | None = None) -> list[Line]:
        """What was done, of one stack or all."""
        return [each for each in self._lines() if stack in (None, each.stack)]

    def doubles(self, stack: str) -> list[str]:
        """Resources for one token of which more than one object was ever made."""
        made = Counter((each.name, each.token) for each in self.journal(stack) if each.what == 'made')
        return sorted(name for (name, _), count in made.items() if count > 1)

    def plan(self, stack: str, name: str, fault: str) -> None:
        """What is to become of the next creation of a resource, once its object is there."""
        (self._root / 'faults' / f'{stack}.{name}').write_text(fault)

    def struck(self, stack: str) -> bool:
        """Whether what was planned has come true."""
        return any(each.what in ('die', 'lose', 'hold') for each in self.journal(stack))

    def open(self, gate: str) -> None:
        """Let those through who are held up."""
        (self._root / 'gates' / gate).touch()

    def _lines(self) -> Iterator[Line]:
        path = self._root / 'journal'
        if path.exists():
            yield from (Line(**json.loads(each)) for each in path.read_text().splitlines())


def template(wanted: Wanted, tag: str = '') -> str:
    """A template, as JSON, which is YAML."""
    resources = {
        name: {
            'type': each['type'],
            'properties': {key: each[key] for key in ('value', 'place', 'takes') if key in each},
            'depends_on': list(each.get('after', [])),
        }
        for name, each in wanted.items()
    }
    return json.dumps({'heat_template_version': '2018-08-31', 'description': tag, 'resources': resources})


def amiss(
    installation: Installation, ledger: Ledger, stack_id: str, wanted: Wanted, kinds: Mapping[str, str]
) -> list[str]:
    """What of the cloud is not as it should be; nothing where all is.

    :param wanted: what the stack is to be; nothing once it is deleted.
    :param kinds: the type of each resource that the stack ever had.
    """
    name = installation.row(stack_id).name
    objects, rows = ledger.objects(name), installation.rows(stack_id)
    known = {row.physical_id for row in rows}
    unknown = [each for each in objects if each.id not in known]
    wrong = [f'{each} was made twice under one token' for each in ledger.doubles(name)]
    wrong += [f'{row.name} is held by {row.owner}' for row in rows if row.owner is not None]
    for each in unknown:
        if kinds[each.name] not in UNTOLD:
            wrong.append(f'{each.name} ({kinds[each.name]}, {each.id}) is forgotten')
        else:
            wrong += [f'{each.name} ({kinds[each.name]}): {gap}' for gap in _untold(installation, stack_id, each)]
    real = sorted((each.name, each.value, each.place) for each in objects if each.id in known)
    expected = sorted((key, str(each.get('value', '')), str(each.get('place', ''))) for key, each in wanted.items())
    wrong += [f'{each} is not wanted' for each in _without(real, expected)]
    wrong += [f'{each} is missing' for each in _without(expected, real)]
    return sorted(wrong)


def orphans(installation: Installation, ledger: Ledger, stack_id: str) -> list[Object]:
    """Objects of a stack that none of its rows knows."""
    known = {row.physical_id for row in installation.rows(stack_id)}
    return [each for each in ledger.objects(installation.row(stack_id).name) if each.id not in known]


def _untold(installation: Installation, stack_id: str, orphan: Object) -> list[str]:
    """Where nobody was told of an object that stays."""
    while True:
        try:
            reasons = [each.reason for each in installation.reader.events(stack_id)]
            break
        except AWAY:
            continue
    missing = []
    if not any(orphan.token in (reason or '') for reason in reasons):
        missing.append(f'no event tells of {orphan.id}')
    warned = (line for line in installation.cluster.logs().splitlines() if 'WARNING' in line)
    if not any(orphan.token in line for line in warned):
        missing.append(f'no warning tells of {orphan.id}')
    return missing


def _without(
    some: Sequence[tuple[str, str, str]], others: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str, str]]:
    return sorted((Counter(some) - Counter(others)).elements())
