"""What a sweep costs does not grow with what is over: PostgreSQL answers its questions from indexes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, insert, select, text

from convergence.core.model import Action, NodeStatus, Phase, Status, TraversalStatus
from convergence.db.records import Keep, SweepCriteria
from convergence.db.repositories.pending import PendingTasks
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import stored_values
from convergence.db.statements.store import Store
from tests.bench.copies import take_statistics
from tests.contract import rows
from tests.db.test_statement_plans import counted, prefer_nothing
from tests.harness import database
from tests.services import service

FINISHED = 4000
"""Stacks that are at rest. A handful is in progress."""

TABLES = ('stack', 'traversal', 'sync_point', 'resource')


@pytest.fixture
def engine() -> Iterator[Any]:
    """A database of many stacks, nearly all of them at rest."""
    server = service('postgresql')
    url = server.create()
    engine = database(url)
    fill(engine)
    yield engine
    engine.dispose()
    server.drop(url.partition('?')[0].rpartition('/')[2])


def fill(engine: Any) -> None:
    """`FINISHED` stacks that are complete, some deleted, and five in progress."""
    stacks, traversals, resources, nodes = [], [], [], []
    for number in range(FINISHED + 5):
        over = number < FINISHED
        status = Status.COMPLETE if over else Status.IN_PROGRESS
        stack = replace(
            rows.STACK,
            id=f'S{number}',
            name=f's{number}',
            status=status,
            traversal_id=f'V{number}',
            deleted_at=4e9 if over and number % 2 else None,
        )
        stacks.append({**stored_values(stack), 'live_name': stack.name})
        ended = TraversalStatus.COMPLETE if over else TraversalStatus.RUNNING
        traversal = replace(rows.TRAVERSAL, id=f'V{number}', stack_id=stack.id, status=ended)
        traversals.append({**stored_values(traversal), 'swept': over, 'observations_scheduled': over})
        for index, key in enumerate('abc'):
            resources.append(
                stored_values(
                    replace(
                        rows.FREE,
                        id=f'R{number}{key}',
                        stack_id=stack.id,
                        name=key,
                        action=Action.CREATE,
                        status=status,
                        traversal_id=traversal.id,
                    )
                )
            )
            node = replace(
                rows.NODES[0],
                traversal_id=traversal.id,
                number=index,
                phase=Phase.UPDATE,
                status=NodeStatus.DONE if over else NodeStatus.READY,
                resource_id=f'R{number}{key}',
            )
            nodes.append({**stored_values(node), 'notified_at': 5.0})
    with engine.connect() as connection:
        for table, values in ((STACK, stacks), (TRAVERSAL, traversals), (RESOURCE, resources), (SYNC_POINT, nodes)):
            for start in range(0, len(values), 2000):
                connection.execute(insert(table), values[start : start + 2000])
        connection.commit()
        for name in TABLES:
            connection.execute(text(f'ANALYZE {name}'))
        connection.commit()


def plans(engine: Any, ask: Any) -> list[str]:
    """How PostgreSQL answers every question that `ask` asks."""
    asked: list[tuple[str, Any]] = []

    def listen(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if statement.lstrip().startswith(('SELECT', 'WITH')):
            asked.append((statement, parameters))

    event.listen(engine, 'before_cursor_execute', listen)
    try:
        ask()
    finally:
        event.remove(engine, 'before_cursor_execute', listen)
    explained = []
    with engine.connect() as connection:
        prefer_nothing(connection)
        for statement, parameters in asked:
            lines = connection.exec_driver_sql(f'EXPLAIN {statement}', parameters).scalars()
            explained.append('\n'.join(lines))
    return explained


def test_no_question_of_a_sweep_reads_what_is_over(engine: Any) -> None:
    keep = Keep(1000, 100, 3600.0)
    sweeps, pending = Sweeps(Store(engine), keep), PendingTasks(Store(engine), keep)
    questions = {
        'all of a sweep': lambda: pending.of_sweep(SweepCriteria(5.0, 60.0, 60.0, (10.0, 20.0), 500)),
        'all of a worker': lambda: pending.of_worker('W', 15.0),
        'expired_claims': lambda: sweeps.expired_claims(500),
        'overdue_actions': lambda: sweeps.overdue_actions(500, 60.0),
        'interrupted': lambda: sweeps.interrupted(500, 60.0),
        'to be told': lambda: sweeps.parked_at_rest(500),
        'overdue': lambda: sweeps.overdue(500),
        'unsettled': lambda: sweeps.unsettled(500),
        'undispatched': lambda: sweeps.undispatched(5.0, 500),
        'standing still': lambda: sweeps.stalled(500, 60.0),
        'deleted stacks': lambda: sweeps.purge_stacks(500),
        'nodes to purge': lambda: sweeps.purge_nodes(500),
    }
    answered = {name: plans(engine, ask) for name, ask in questions.items()}
    assert all(answered.values()), 'every one asks something'
    scans = {
        name: plan
        for name, all_plans in answered.items()
        for plan, table in itertools.product(all_plans, TABLES)
        if f'Seq Scan on {table}' in plan
    }
    assert scans == {}, '\n\n'.join(f'{name}:\n{plan}' for name, plan in scans.items())


AT_WORK, NODES = 100, 20
"""Stacks that are being worked on, and the nodes of each that a worker was told of just now."""


def fill_with_work(engine: Any) -> None:
    """`AT_WORK` traversals that run, each with `NODES` nodes that are ready and that a worker was told of just now."""
    traversals = [replace(rows.TRAVERSAL, id=f'V{number}', stack_id=f'S{number}') for number in range(AT_WORK)]
    stacks = [replace(rows.STACK, id=each.stack_id, name=each.stack_id, traversal_id=each.id) for each in traversals]
    nodes = [
        replace(rows.NODES[0], traversal_id=each.id, number=number, phase=Phase.UPDATE, status=NodeStatus.READY)
        for each in traversals
        for number in range(NODES)
    ]
    assert {each.status for each in traversals} == {TraversalStatus.RUNNING}
    with engine.connect() as connection:
        now = connection.execute(select(database_now())).scalar_one()
        connection.execute(insert(STACK), [{**stored_values(each), 'live_name': each.name} for each in stacks])
        connection.execute(insert(TRAVERSAL), [stored_values(each) for each in traversals])
        connection.execute(insert(SYNC_POINT), [{**stored_values(each), 'notified_at': now} for each in nodes])
        connection.commit()
    take_statistics(engine)


def read_of_nodes(engine: Any, ask: Callable[[], object]) -> int:
    """How many rows the server reads to answer what `ask` asks; PostgreSQL tells of nodes alone."""
    if engine.dialect.name == 'postgresql':
        indexes = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'sync_point'"
        tables = "SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'sync_point'"

        def so_far() -> int:
            return sum(int(number or 0) for (number,) in counted(engine, f'{indexes} UNION ALL {tables}'))

        before = so_far()
        ask()
        return so_far() - before
    found: list[int] = []

    def end(connection: Any, *_: Any) -> None:
        with connection.connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            found.append(sum(int(number) for _, number in cursor.fetchall()))

    event.listen(engine, 'after_cursor_execute', end)
    engine.dispose()  # a new connection has read nothing yet
    ask()
    event.remove(engine, 'after_cursor_execute', end)
    return max(found)


@pytest.mark.parametrize('kind', ['postgresql', 'mariadb'])
def test_what_waits_is_looked_for_once_and_not_for_each_traversal_that_runs(kind: str) -> None:
    """PostgreSQL went through all nodes that had been ready since it tidied its index, once for each traversal: in a
    tree of 500 stacks a fifth of its time."""
    server = service(kind)
    url = server.create()
    engine = database(url)
    fill_with_work(engine)
    pending = PendingTasks(Store(engine), Keep(1000, 100, 3600.0))
    asked: dict[str, Callable[[], object]] = {
        'worker': lambda: pending.of_worker('W', 15.0),
        'sweeper': lambda: pending.of_sweep(SweepCriteria(5.0, 60.0, 60.0, (10.0, 20.0), 500)),
    }
    read = {name: read_of_nodes(engine, ask) for name, ask in asked.items()}
    assert max(read.values()) < AT_WORK * NODES, read
    engine.dispose()
    server.drop(url.partition('?')[0].rpartition('/')[2])
