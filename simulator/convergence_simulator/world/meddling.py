"""Changes of objects by an outsider without the engines' knowledge, and the repairs that have to follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from convergence.core.model import Action, DriftPolicy, Status
from convergence.core.rows import Resource, Stack
from convergence_simulator.cloud.reality import NOBODY, Harm, PhysicalObject
from convergence_simulator.cloud.sorts import UNSEEN, EnforcedAddressed
from convergence_simulator.scenarios.verification import Violation

if TYPE_CHECKING:
    from convergence_simulator.world.place import WatchedPlace
    from convergence_simulator.world.world import World

KEEPS = 6
"""One outsider's change in so many, chosen by chance, is repeated after each repair."""
REPAIR_ATTEMPTS = 3
"""Number of attempts of the engines to repair an object that keeps changing."""
GIVEN_UP = 'Repair given up'
"""Beginning of the event that says that engines have stopped repairing an object."""
NOT_UP = (Action.INIT, Action.SUSPEND, Action.DELETE)


@dataclass(frozen=True, slots=True)
class Awaited:
    """An object that engines have to repair and have not repaired yet."""

    row: Resource
    harm: Harm


def meddle(world: World) -> bool:
    """Change an object, chosen by chance. Return False if there is no object that may be changed."""
    things = [each for each in world.reality.objects.values() if _may_be_harmed(world, each)]
    if not things:
        return False
    pick = world.choices.pick
    thing, harm = things[pick(len(things))], tuple(Harm)[pick(len(Harm))]
    keeps = harm is Harm.CHANGED and not pick(KEEPS)
    world.watch.story('outsider', f'harms {thing.id}: {harm}{" again and again" if keeps else ""}', '')
    world.reality.harm(thing, harm)
    if keeps:
        world.reality.harmed_again[thing.name, thing.kind] = harm
    return True


def harm_all(world: World, name: str, harm: Harm, again: bool) -> None:
    """Change the objects of a resource, and with `again` change them again after each repair."""
    for thing in world.reality.resources_by_logical_name(name).values():
        world.watch.story('outsider', f'harms {thing.id}: {harm}', '')
        world.reality.harm(thing, harm)
        if again:
            world.reality.harmed_again[thing.name, thing.kind] = harm


def _may_be_harmed(world: World, thing: PhysicalObject) -> bool:
    if thing.stack_id == NOBODY or thing.kind in UNSEEN or thing.id in world.reality.late:
        return False
    # If no row has the id of an object, only a second creation finds the object. For a removed object of this type the
    # second creation needs the address, which another object has by now, and waits for it until it times out.
    return thing.kind != EnforcedAddressed.type_name or _is_known(world, thing)


def _is_known(world: World, thing: PhysicalObject) -> bool:
    return any(row.physical_id == thing.id for row in world.store.tables.resource.values())


def policy_of(world: World, row: Resource) -> DriftPolicy:
    """Return the policy for drift of the object of a row, as the user set it (observers may know an older value)."""
    stack = world.store.tables.stack[row.stack_id]
    root = world.store.tables.stack.get(stack.tree_id, stack)
    said = world.checker.templates[stack.template_id].drift.get(row.name) if stack.root_id is None else None
    return DriftPolicy(said or root.drift_policy)


def harmed_rows(world: WatchedPlace) -> Iterator[tuple[Resource, str]]:
    """Yield the rows whose objects an outsider changed, with the physical ids of these objects."""
    for row in world.store.tables.resource.values():
        if row.physical_id in world.reality.harmed:
            yield row, row.physical_id


def awaited(world: World) -> list[Awaited]:
    """Return the objects that engines have to repair and have not repaired yet."""
    if not world.observers or world.losses:
        return []
    return [
        Awaited(row, world.reality.harmed[key].harm)
        for row, key in harmed_rows(world)
        if policy_of(world, row) is DriftPolicy.REPAIR and _may_be_repaired(world, row)
    ]


def require_repaired(world: World) -> None:
    """Require that engines repaired all drift of objects with the policy ``repair``.

    Called when no outsider acts any more.

    :raises Violation: an object is not repaired.
    """
    for each in awaited(world):
        raise Violation('D1', f'{each.row.name} ({each.row.id}) is {each.harm}, and no engine repairs it')


def _may_be_repaired(world: World, row: Resource) -> bool:
    tables = world.store.tables
    stack = tables.stack[row.stack_id]
    root = tables.stack.get(stack.tree_id, stack)
    borrowed = row.definition is not None and row.definition.external_id is not None
    at_rest = all(each.status is Status.COMPLETE and each.action not in NOT_UP for each in (stack, root))
    works = row.status is Status.COMPLETE and row.action not in NOT_UP and row.replaced_by is None
    return at_rest and works and not borrowed and _goal_was_up(world, root) and not is_given_up(world, row)


def _goal_was_up(world: World, root: Stack) -> bool:
    return root.deleted_at is None and root.template_id == world.checker.good.get(root.id)


def is_given_up(world: World, row: Resource) -> bool:
    """Return True if engines have stopped repairing the object of a row and have reported that in an event."""
    known = world.observations.of_row(row)
    if known is None or not known.given_up:
        return False
    told = (row.stack_id, row.name)
    events = world.store.tables.event
    return any((each.stack_id, each.resource_name) == told and each.reason.startswith(GIVEN_UP) for each in events)
