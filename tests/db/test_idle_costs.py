"""What duties cost while there is nothing to do: as many statements with hundreds of finished stacks as with ten."""

from __future__ import annotations

from pathlib import Path

from convergence.db.connections.counting import count
from convergence.engine.sweeper.tasks import SweepOptions
from tests.bench.copies import copy_stack
from tests.harness import Harness, database, things
from tests.observing import Observing


def idle_statements(path: Path, stacks: int) -> dict[str, int]:
    """How many statements each duty sends when all has been done that was left to do."""
    engine = database(f'sqlite:///{path}')
    harness = Harness(engine)
    stack_id = harness.created(things(list('abc')))
    copy_stack(engine, stack_id, stacks - 1)
    observing = Observing(harness)
    # Engines need several sweeps where they attend to some stacks at a time.
    for _ in range(2 + stacks // 50):
        harness.sweep()
        observing.look()
    sweeper, sent = harness.sweeper(SweepOptions()), 0

    def note(kind: str) -> None:
        nonlocal sent
        sent += kind == 'statements'

    duties = {'sweep': sweeper.sweep, 'reconcile': harness.workers[0].reconcile, 'look': observing.observer.turn}
    duties |= {'rest': observing.observer.round, 'schedule': observing.schedule}
    costs = {}
    stop = count(engine, note)
    for name, duty in duties.items():
        duty()
        before = sent
        duty()
        costs[name] = sent - before
    stop()
    engine.dispose()
    return costs


def test_what_an_idle_installation_asks_does_not_grow_with_what_is_over(tmp_path: Path) -> None:
    few, many = (idle_statements(tmp_path / f'{stacks}.sqlite', stacks) for stacks in (10, 400))
    assert few == many
    # A sweep asks once for all of its tasks, and renews the duty with every second turn (tests/engine/test_sweeper_duty.py).
    # So does a worker, which also looks up its newest result.
    assert few == {'sweep': 1, 'reconcile': 2, 'look': 1, 'rest': 1, 'schedule': 1}
