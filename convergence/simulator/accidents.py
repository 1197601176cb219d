"""The accidents that a scenario orders, and a line about what was going on."""

from __future__ import annotations

from dataclasses import replace

from convergence.simulator.language import Call
from convergence.simulator.world import LOST, World


def befall(world: World, call: Call) -> None:
    """Let a message get lost or be doubled, or a process die or stand still, as a call of a scenario says."""
    if call.verb == 'drop':
        world.lost = True
        world.dropped += len(world.bag[: call.arguments[0]])
        for message in world.bag[: call.arguments[0]]:
            world.watch.story('broker', message, LOST)
        del world.bag[: call.arguments[0]]
        return
    if call.verb == 'double':
        world.bag += [replace(message) for message in world.bag[: call.arguments[0]]]
        return
    processes = world.engines if call.verb == 'crash_engine' else world.workers
    busy = {fiber.process for fiber in world.kernel.fibers}
    victims = [each.process for each in processes if each.process in busy] or [processes[0].process]
    victim = victims[world.choices.pick(len(victims))]
    if call.verb == 'freeze_worker':
        world.lost = world.frozen = True
        world.watch.story(victim.name, 'freezes', '')
        victim.frozen_until = world.kernel.now + call.arguments[0]
    else:
        world.crash(victim)
        world.kernel.bury()


def describe(world: World) -> str:
    """What is going on, in a line, for the text of an error."""
    tables = world.store.tables
    stacks = ', '.join(f'{each.name} {each.action}_{each.status}' for each in tables.stack.values())
    fibers = ', '.join(f'{each.process.name} {each.name} at {each.point}' for each in world.kernel.fibers)
    return f'{stacks or "no stack"}; {fibers or "no fiber"}; {len(world.bag)} messages'
