"""Many stacks at once: a crowd of them, a small one behind a giant, and those that were finished long ago."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_context.context import RequestContext

from convergence.concurrency import sleep
from convergence.errors import ConvergenceError
from tests.bench.copies import copy_stack, take_statistics
from tests.bench.installations import LOOK_INTERVAL_S, BenchmarkInstallation, Took
from tests.bench.shapes import template

SMALL = 10
"""Resources of a small stack."""
GIANTS = ('flat', 'tree')
FEW = 50
"""Copies that engines see to in one sweep."""
ENROLLED_WITHIN_S = 60.0
"""Longer than a sweep takes to come round."""
ENOUGH = 0.02
"""Which part of a giant is done before the small stack is asked for: by then its backlog is as long as it gets."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Stacks that are made at the same time, beside one that is as large as all of them."""

    stacks: int
    each: int
    seconds: float
    one_s: float

    @property
    def ratio(self) -> float:
        """How many times as long the crowd takes."""
        return self.seconds / self.one_s


def crowd(installation: BenchmarkInstallation, stacks: int) -> Crowd:
    """Make so many stacks with as many resources each at once, and one with all of them.

    :raises ConvergenceError: one of them failed.
    """
    client, context, source = installation.client, installation.context, template('flat', stacks)
    begun = time.perf_counter()
    made = [client.create_stack(context, f'crowd-{number}', source) for number in range(stacks)]
    for identity in made:
        _complete(installation, identity)
    seconds = time.perf_counter() - begun
    for identity in made:
        client.delete_stack(context, identity)
    for identity in made:
        _complete(installation, identity)
    one: dict[str, Any] = {}
    large = template('flat', stacks * stacks)
    took = installation.operate('create', one, lambda: one.update(client.create_stack(context, 'alone', large)))
    return Crowd(stacks, stacks, seconds, took.seconds)


@dataclass(frozen=True, slots=True)
class Behind:
    """A small stack that was asked for while a giant of another project was made.

    :param alone_s: until the small one was complete where nobody else was at work.
    :param started_s: until its first resource was begun, behind the giant.
    :param seconds: until it was complete, behind the giant.
    :param left: how much of the giant was not done yet then.
    """

    shape: str
    giant: int
    alone_s: float
    started_s: float
    seconds: float
    left: int


def behind(installation: BenchmarkInstallation, resources: int) -> Iterator[Behind]:
    """Make a small stack while one of so many resources is made, which belongs to another project.

    :raises ConvergenceError: one of them failed.
    """
    client, context = installation.client, installation.context
    other = RequestContext(project_id='bench-giant', overwrite=False)
    small = template('flat', SMALL)
    for shape in GIANTS:
        alone: dict[str, Any] = {}
        took = installation.operate(
            'create',
            alone,
            lambda alone=alone, shape=shape: alone.update(client.create_stack(context, f'alone-{shape}', small)),
        )
        giant = client.create_stack(other, f'giant-{shape}', template(shape, resources))
        while _done(installation, giant) < ENOUGH * resources:
            sleep(LOOK_INTERVAL_S)
        begun = time.perf_counter()
        behind_it = client.create_stack(context, f'behind-{shape}', small)
        while not _begun(installation, behind_it):
            sleep(LOOK_INTERVAL_S)
        started_s = time.perf_counter() - begun
        _complete(installation, behind_it)
        seconds, left = time.perf_counter() - begun, resources - _done(installation, giant)
        _complete(installation, giant)
        for owner, identity in ((other, giant), (context, alone), (context, behind_it)):
            client.delete_stack(owner, identity)
            _complete(installation, identity)
        yield Behind(shape, resources, took.seconds, started_s, seconds, left)


@dataclass(frozen=True, slots=True)
class Stored:
    """The same operation before and after many finished stacks were there.

    :param before: the operation, with no other stack.
    :param after: with all of them.
    """

    operation: str
    stacks: int
    resources: int
    before: Took
    after: Took


def stored(installation: BenchmarkInstallation, stacks: int, resources: int) -> list[Stored]:
    """Create and delete a stack before and after so many finished ones are in the database.

    :raises ConvergenceError: an operation failed.
    """
    before = _create_and_delete(installation, 'early', resources)
    fill(installation, stacks, SMALL)
    after = _create_and_delete(installation, 'late', resources)
    operations = ('create', 'delete')
    return [
        Stored(operation, stacks, resources, *pair)
        for operation, pair in zip(operations, zip(before, after, strict=True), strict=True)
    ]


def fill(installation: BenchmarkInstallation, stacks: int, each: int) -> None:
    """Have so many finished stacks of `each` resources: one is made, the others are copies of its rows.

    :raises ConvergenceError: the first one failed.
    """
    client, seed = installation.client, {}
    source = template('flat', each)
    installation.operate('create', seed, lambda: seed.update(client.create_stack(installation.context, 'seed', source)))
    if stacks > FEW:
        _until_enrolled(installation, seed)  # else engines would have to do that for every copy
    copy_stack(installation.database, seed['stack_id'], stacks - 1)
    take_statistics(installation.database)


def _until_enrolled(installation: BenchmarkInstallation, identity: Mapping[str, Any]) -> None:
    """Wait until an engine has seen to what follows an operation: that its objects are looked at."""
    ends = time.monotonic() + ENROLLED_WITHIN_S
    while time.monotonic() < ends:
        with installation.database.connect() as connection:
            found = connection.exec_driver_sql(
                f"SELECT count(*) FROM traversal WHERE stack_id = '{identity['stack_id']}' AND enrolled"
            )
            if found.scalar_one():
                return
        sleep(LOOK_INTERVAL_S * 10)


def _create_and_delete(installation: BenchmarkInstallation, name: str, resources: int) -> tuple[Took, Took]:
    client, context, identity = installation.client, installation.context, {}
    source = template('flat', resources)
    made = installation.operate('create', identity, lambda: identity.update(client.create_stack(context, name, source)))
    return made, installation.operate('delete', identity, lambda: client.delete_stack(context, identity))


def _complete(installation: BenchmarkInstallation, identity: dict[str, Any]) -> None:
    stack = installation.wait(identity)
    if stack.status.value != 'COMPLETE':
        raise ConvergenceError(f'{stack.action} of {stack.name} has failed: {stack.status_reason}')


def _done(installation: BenchmarkInstallation, identity: dict[str, Any]) -> int:
    """How many resources of a stack that is made are complete."""
    return _count(installation, identity, "action <> 'INIT' AND status = 'COMPLETE'")


def _begun(installation: BenchmarkInstallation, identity: dict[str, Any]) -> int:
    return _count(installation, identity, "action <> 'INIT'")


def _count(installation: BenchmarkInstallation, identity: dict[str, Any], condition: str) -> int:
    with installation.database.connect() as connection:
        found = connection.exec_driver_sql(
            f"SELECT count(*) FROM resource WHERE stack_id = '{identity['stack_id']}' AND {condition}"
        )
        return int(found.scalar_one())
