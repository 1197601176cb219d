"""Wide stacks on databases where transactions really overlap: rows are locked in one order, so nobody meets in a circle.

A deadlock loses nothing, for the transaction is repeated; but each costs one, and they come in crowds where many nodes
end at once.
"""

from __future__ import annotations

import collections
import itertools
import random
import threading
import uuid
from dataclasses import replace

import pytest
from sqlalchemy import event, text

from convergence.core.effects import (
    Decision,
    InsertResources,
    InsertStack,
    InsertTraversal,
    UpdateResource,
    UpdateStack,
)
from convergence.core.handoff import Handoff
from convergence.db.connections import failures
from convergence.db.scopes import NewStack, SeveralStacks, WholeStack
from tests.contract import rows
from tests.contract.rows import at_once
from tests.db.test_statement_plans import FOUND_BEFORE
from tests.harness import Harness

THREADS = 8
WIDTH = 20
LAYERS = tuple(tuple(f'{layer}{number:02}' for number in range(WIDTH)) for layer in 'abc')
STACK = {
    name: {'value': 'x', 'after': list(before)}
    for before, layer in zip(((), *LAYERS), LAYERS, strict=False)
    for name in layer
}
"""Each resource of a layer requires all of the layer before: 60 resources, 20 into 20 twice."""


class Plans:
    """Has MariaDB explain each statement that locks or changes rows, the first time that it is executed.

    :ivar found: by statement, the index by which it comes to the rows of each table.
    """

    def __init__(self, engine):
        self._engine = engine
        self._lock = threading.Lock()
        self.found = {}
        if engine.dialect.name != 'postgresql':
            event.listen(engine, 'before_cursor_execute', self._look)

    def _look(self, connection, cursor, text, parameters, context, executemany):
        given = iter(parameters[0] if executemany else parameters)
        for statement in text.split('; '):  # each by itself: what comes after the first would be carried out
            self._explain(statement, tuple(itertools.islice(given, statement.count('%s'))))

    def _explain(self, statement, parameters):
        locks = 'FOR UPDATE' in statement or statement.startswith(('UPDATE', 'DELETE'))
        if not locks or len(statement) > 20_000:
            return
        with self._lock:
            if statement in self.found:
                return
            self.found[statement] = []
        raw = self._engine.raw_connection()
        try:
            with raw.cursor() as asking:
                asking.execute('EXPLAIN ' + FOUND_BEFORE.sub('FALSE', statement), parameters)
                rows = [dict(zip([each[0] for each in asking.description], row, strict=True)) for row in asking]
        finally:
            raw.rollback()
            raw.close()
        self.found[statement] = [(row['table'], row['key']) for row in rows if row['table'] is not None]

    def by_other_indexes(self):
        """The statements that come to rows which others lock as well by anything but their primary key."""
        found = {statement: [each for each in plan if each[0] in SHARED] for statement, plan in self.found.items()}
        return {statement: keys for statement, keys in found.items() if {key for _, key in keys} - {'PRIMARY'}}

    def close(self):
        """Explain no more."""
        if self._engine.dialect.name != 'postgresql':
            event.remove(self._engine, 'before_cursor_execute', self._look)


SHARED = ('stack', 'traversal', 'resource', 'sync_point')
"""Tables whose rows several transactions lock."""


@pytest.fixture
def wide(server_engine):
    """A harness with keys in no order, and the statements at which the database found a lock not to be had."""
    harness = Harness(server_engine, new_id=lambda: str(uuid.uuid4()))
    harness.in_the_way = collections.Counter()

    def note(context):
        if failures.is_locked(context.original_exception):
            harness.in_the_way[str(context.statement)[:60]] += 1

    event.listen(server_engine, 'handle_error', note)
    harness.plans = Plans(server_engine)
    yield harness
    harness.plans.close()
    event.remove(server_engine, 'handle_error', note)


def run(harness):
    """Deliver everything, to as many threads as there are, until nothing is left to deliver."""
    lock = threading.Lock()
    busy = [0]

    def take():
        with lock:
            address = harness.messages.checks.pop(0) if harness.messages.checks else None
            busy[0] += address is not None
            return address

    def work(number):
        while True:
            address = take()
            if address is None:
                if not busy[0]:
                    return
                continue
            try:
                harness.check(*address, worker=number % 2)
            finally:
                with lock:
                    busy[0] -= 1

    problems = at_once(*(lambda number=number: work(number) for number in range(THREADS)))
    assert problems == [None] * THREADS


def test_whatever_ends_at_once_in_a_wide_stack_meets_in_no_circle(wide):
    """Create, change, replace in part, and delete, all by eight threads at a time."""
    stack = wide.create(STACK)
    run(wide)
    assert wide.state(stack) == 'CREATE_COMPLETE', wide.stack(stack).status_reason
    changed = {name: {**wanted, 'value': 'y'} for name, wanted in STACK.items()}
    changed |= {name: {**changed[name], 'key': '2'} for name in LAYERS[1]}
    wide.update(stack, changed)
    run(wide)
    wide.assert_converged(stack, dict.fromkeys(STACK, 'y'), 'UPDATE_COMPLETE')
    wide.delete(stack)
    run(wide)
    wide.assert_converged(stack, {}, 'DELETE_COMPLETE')
    assert wide.plans.by_other_indexes() == {}
    assert wide.in_the_way == {}
    assert deadlocks_of(wide.engine) == 0


def test_several_nested_stacks_are_locked_in_the_same_order_by_all_who_want_them(wide):
    """Those of one call come in the order in which a worker has asked for them."""
    parents = [replace(rows.RESOURCE, id=f'R{number}', name=f'r{number}', token=f'N{number}') for number in range(5)]
    nested = [
        replace(rows.STACK, id=f'N{number}', name=f'n{number}', traversal_id=None, parent_resource_id=f'R{number}')
        for number in range(5)
    ]
    inside = [replace(rows.FREE, id=f'{key}{number}', stack_id=f'N{number}') for number in range(5) for key in 'ba']
    nodes = tuple(replace(rows.NODES[0], number=number, resource_id=f'R{number}') for number in range(5))
    stored = (*map(InsertStack, (rows.STACK, *nested)), InsertResources((*parents, *inside)))
    wide.store.transact(NewStack('p'), lambda view: Decision(None, (*stored, InsertTraversal(rows.TRAVERSAL, nodes))))
    scopes = [WholeStack(f'N{number}', f'R{number}', Handoff(f'R{number}', ('V', number)), 2) for number in range(5)]

    def decide(views):
        changes = [UpdateStack(view.stack.id, None, {'status_reason': str(view.now)}) for view in views]
        held = [
            UpdateResource(view.parent.id, view.parent.owner, view.parent.fence, {'deadline': view.now})
            for view in views
        ]
        return Decision([view.stack.id for view in views], (*changes, *held))

    def work(number):
        orders = list(itertools.permutations(scopes))
        for order in random.Random(number).sample(orders, 10):
            committed = wide.store.transact(SeveralStacks(order), decide)
            assert committed.verdict == [each.stack_id for each in order]

    assert at_once(*(lambda number=number: work(number) for number in range(THREADS))) == [None] * THREADS
    assert wide.plans.by_other_indexes() == {}
    assert wide.in_the_way == {}
    assert deadlocks_of(wide.engine) == 0


def deadlocks_of(engine):
    """What the server itself has counted for the database. MariaDB counts for all of its databases together only."""
    if engine.dialect.name != 'postgresql':
        return 0
    with engine.connect() as connection:
        own = text('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
        return connection.execute(own).scalar_one()
