"""Whether there was something to do was known before anybody looked for it: every look of a test is such a test."""

from __future__ import annotations

from typing import Any

from convergence.db.ports import Ports
from convergence.db.records import SweepCriteria, SweepTask, WorkerTask

LIMIT = 10


class ForetoldRows:
    """The rows of a port; each look for something to do is held against what was said of it right before.

    :param is_exact: whether nothing is said of a task that has nothing to do.
    """

    def __init__(self, inner: Any, ports: Ports, *, is_exact: bool) -> None:
        self._inner = inner
        self._pending = ports.pending
        self._is_exact = is_exact

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        task = TASKS.get(name)
        return found if task is None else lambda *given, **named: self._found(found, task, *given, **named)

    def _found(self, find: Any, task: SweepTask | WorkerTask, *given: Any, **named: Any) -> Any:
        name = find.__name__
        foretold = task in self._foretold(name, *given, **named)
        found = find(*given, **named)
        assert foretold or not found, f'{name} finds something of which {task} was not told'
        if self._is_exact and name not in WITH_OTHERS:
            assert found or not foretold, f'{name} finds nothing, of which {task} was told'
        return found

    def _foretold(self, name: str, *given: Any, **named: Any) -> frozenset[Any]:
        ages: dict[str, Any] = {'older_than_s': 0.0, 'slack_s': 0.0, 'rested_s': 0.0, 'repair_pauses': (), **named}
        if name == 'undispatched':
            ages['older_than_s'] = given[0]
        elif name == 'overdue_actions':
            ages['slack_s'] = given[1]
        elif name == 'interrupted':
            ages['rested_s'] = given[1] if len(given) > 1 else 0.0
        elif name == 'failed_repairs':
            ages['repair_pauses'] = tuple(given[0])
        if isinstance(TASKS[name], SweepTask):
            of_sweep = self._pending.of_sweep(SweepCriteria(**{'limit': LIMIT, **ages}))
            if name == 'undispatched':
                of_worker = self._pending.of_worker('', ages['older_than_s'], ages.get('window', LIMIT))
                assert (SweepTask.WAKE in of_sweep) is (WorkerTask.HELP_OUT in of_worker)
            return of_sweep
        return self._pending.of_worker(given[0] if name == 'held_by' else '', 0.0)


TASKS: dict[str, SweepTask | WorkerTask] = {
    'expired_claims': SweepTask.TAKE_OVER,
    'overdue_actions': SweepTask.EXPIRE,
    'interrupted': SweepTask.GIVE_UP,
    'overdue': SweepTask.TIME_OUT,
    'unsettled': SweepTask.SETTLE,
    'unneeded_nested': SweepTask.STOP_NESTED,
    'nested_to_cancel': SweepTask.CANCEL_NESTED,
    'undispatched': SweepTask.WAKE,
    'purge_nodes': SweepTask.PURGE,
    'purge_stacks': SweepTask.PURGE,
    'remove_dead': SweepTask.FORGET,
    'unscheduled': SweepTask.ENROL,
    'to_repair': SweepTask.REPAIR,
    'failed_repairs': SweepTask.REPAIR,
    'held_by': WorkerTask.GIVE_BACK,
    'parked_at_rest': WorkerTask.INTERRUPT,
    'take_unwanted': WorkerTask.REMOVE_SNAPSHOTS,
    'remove_empty': WorkerTask.REMOVE_SNAPSHOTS,
}
"""Which task a look belongs to, by the name of its method."""

WITH_OTHERS = ('purge_nodes', 'purge_stacks', 'to_repair', 'failed_repairs', 'take_unwanted', 'remove_empty')
"""Looks whose task has another one as well."""
