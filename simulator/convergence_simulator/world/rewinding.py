"""Loss of commits: a standby that lacks the last commits is promoted, or a backup is restored.

The rows of the lost commits are gone, but the objects that were created meanwhile still exist. The engines have to
handle three cases. Workers that still live write the ids that they know to the rows again. A person finds the objects
of workers that died as well (`convergence-manage orphans`, or a check of the stack). The next operation on the stack
repairs the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from convergence.core.model import Action
from convergence.core.object_state import is_offered
from convergence.db.repositories.witness import LostCommits
from convergence_simulator.cloud.reality import NOBODY, PhysicalObject, is_of, may_find

if TYPE_CHECKING:
    from convergence_simulator.world.passing import Passing
    from convergence_simulator.world.world import World

LOSSES = (1, 2, 5, 20, 60)
"""Numbers of lost commits, to choose from."""


def go_back(world: World, commits: int) -> None:
    """Lose the last commits. Each process notices the loss at its next heartbeat."""
    world.watch.story('rows', f'lose the last {commits} commits', '')
    world.store.promote(commits)
    world.losses += 1
    world.trouble.excuses = True
    world.trouble.happened()
    world.checker.went_back()
    _take_stock(world)
    loss = LostCommits(None, world.clock())
    for worker in world.workers:
        worker.loss = loss
    for told in world.watch.losses:
        told()


def is_known(world: Passing) -> bool:
    """Return True if every live process has reported what it knows of the lost commits."""
    return not any(worker.loss or worker.service.journal.is_mending for worker in world.workers)


def _take_stock(world: World) -> None:
    """Record the objects that no longer match the rows because commits were lost; this is no fault of any process."""
    reality, tables = world.reality, world.store.tables
    reality.vanished = True
    reality.mishaps += 1
    for thing in list(reality.objects.values()):
        if thing.stack_id == NOBODY:
            _belongs_again(world, thing)
        elif thing.stack_id not in tables.stack:
            thing.stack_id = NOBODY  # only a search for orphans finds it: its stack is gone, too
            reality.late[thing.id] = Action.CREATE
        elif not any(row.physical_id == thing.id or may_find(row, thing) for row in tables.resource.values()):
            reality.late[thing.id] = Action.CREATE


def _belongs_again(world: World, thing: PhysicalObject) -> None:
    """Assign an object to its stack again if the commit that released it was lost."""
    for row in world.store.tables.resource.values():
        borrowed = row.definition is not None and row.definition.external_id is not None
        if is_of(row, thing) and not borrowed and not is_offered(row):
            thing.stack_id = row.stack_id
