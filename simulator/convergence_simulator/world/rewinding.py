"""The database goes back: a standby is promoted that lacks the last commits, or a backup is restored.

All that was committed since is as if it had never been, and what was done by it is still there. What may be asked of an
engine then: whatever the workers that live on still know is in the rows again; what a worker has made that has died as
well, a person finds (`convergence-manage orphans`, a check of the stack); and the next operation makes all of it right.
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
"""How many commits are lost."""


def go_back(world: World, commits: int) -> None:
    """Let the last commits be lost. Each process is told of it with its next heartbeat."""
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
    """Whether everybody who can has told what he knows of what was lost."""
    return not any(worker.loss or worker.service.journal.is_mending for worker in world.workers)


def _take_stock(world: World) -> None:
    """Things are no longer what the rows say, through nobody's fault."""
    reality, tables = world.reality, world.store.tables
    reality.vanished = True
    reality.mishaps += 1
    for thing in list(reality.objects.values()):
        if thing.stack_id == NOBODY:
            _belongs_again(world, thing)
        elif thing.stack_id not in tables.stack:
            thing.stack_id = NOBODY  # with its stack nobody is left but a person who asks for orphans
            reality.late[thing.id] = Action.CREATE
        elif not any(row.physical_id == thing.id or may_find(row, thing) for row in tables.resource.values()):
            reality.late[thing.id] = Action.CREATE


def _belongs_again(world: World, thing: PhysicalObject) -> None:
    """What a stack has let go of belongs to it again if that is forgotten."""
    for row in world.store.tables.resource.values():
        borrowed = row.definition is not None and row.definition.external_id is not None
        if is_of(row, thing) and not borrowed and not is_offered(row):
            thing.stack_id = row.stack_id
