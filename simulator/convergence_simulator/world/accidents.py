"""The accidents that a scenario can order, and a one-line description of the state of a world."""

from __future__ import annotations

from collections.abc import Sequence

from convergence.values import replace
from convergence_simulator.scenarios.language import QueuedCall
from convergence_simulator.world.kernel import SimulatedProcess
from convergence_simulator.world.network import LOST
from convergence_simulator.world.observing import SimulatedObserver
from convergence_simulator.world.rewinding import go_back
from convergence_simulator.world.world import SimulatedEngine, SimulatedWorker, World

ACCIDENTS = frozenset(
    {
        'drop',
        'double',
        'crash_worker',
        'crash_engine',
        'crash_observer',
        'freeze_worker',
        'freeze_engine',
        'broker_away',
        'database_away',
        'clock_jumps',
        'database_goes_back',
    }
)
"""Verbs of a scenario; each orders one accident."""


def befall(world: World, call: QueuedCall) -> None:
    """Cause the accident that a call of a scenario orders."""
    if call.verb == 'drop':
        world.trouble.happened()
        world.dropped += len(world.bag[: call.arguments[0]])
        for message in world.bag[: call.arguments[0]]:
            world.watch.story('broker', message, LOST)
        del world.bag[: call.arguments[0]]
        return
    if call.verb == 'double':
        world.bag += [replace(message) for message in world.bag[: call.arguments[0]]]
        return
    match call.verb:
        case 'broker_away':
            world.trouble.lose_broker(call.arguments[0])
        case 'database_away':
            world.trouble.lose_database(call.arguments[0])
        case 'database_goes_back':
            go_back(world, call.arguments[0])
        case 'clock_jumps':
            world.watch.story('rows', f'set their clock by {call.arguments[0]:+g} s', '')
            world.skew_s += call.arguments[0]
            world.trouble.excuses = True
            world.trouble.happened()
        case 'freeze_worker' | 'freeze_engine':
            world.freeze(_victim(world, call.verb), call.arguments[0])
        case 'crash_worker' | 'crash_engine' | 'crash_observer':
            world.crash(_victim(world, call.verb))
            world.kernel.bury()


def _victim(world: World, verb: str) -> SimulatedProcess:
    """Return an engine, a worker or an observer as the victim; prefer one that has a running fiber."""
    kinds: dict[str, Sequence[SimulatedEngine | SimulatedWorker | SimulatedObserver]] = {
        'engine': world.engines,
        'worker': world.workers,
        'observer': world.observers,
    }
    processes = [each.process for each in kinds[verb.rpartition('_')[2]]]
    busy = {fiber.process for fiber in world.kernel.fibers}
    victims = [process for process in processes if process in busy] or processes[:1]
    return victims[world.choices.pick(len(victims))]


def describe(world: World) -> str:
    """Describe the state of a world in one line, for the text of an error."""
    tables = world.store.tables
    stacks = ', '.join(f'{each.name} {each.action}_{each.status}' for each in tables.stack.values())
    fibers = ', '.join(f'{each.process.name} {each.name} at {each.point}' for each in world.kernel.fibers)
    return f'{stacks or "no stack"}; {fibers or "no fiber"}; {len(world.bag)} messages'
