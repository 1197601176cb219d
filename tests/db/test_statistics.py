"""PostgreSQL is told to look at tables that have grown, and nothing depends on whether it does."""

import logging
from dataclasses import replace
from unittest.mock import patch

import pytest
from sqlalchemy import event

from convergence.core.effects import Decision, InsertStack, InsertTraversal
from convergence.db.scopes import NewStack
from convergence.db.statements import store as store_module
from convergence.db.statements.applying import statistics
from convergence.db.statements.store import Store
from tests.contract.rows import STACK, TRAVERSAL, node
from tests.harness import database
from tests.services import service


@pytest.fixture
def engine():
    server = service('postgresql')
    url = server.create()
    engine = database(url)
    yield engine
    engine.dispose()
    server.drop(url.partition('?')[0].rpartition('/')[2])


def test_a_plan_stays_committed_though_postgresql_does_not_look_at_what_has_grown(engine, caplog):
    """An operator ends the ANALYZE, or a timeout does: that is told once, and nothing is done again."""
    store, nodes = Store(engine), tuple(node(number) for number in range(statistics.MANY))
    decided = []

    def decide(view):
        decided.append(view)
        traversal = replace(TRAVERSAL, id=f'V{len(decided)}')
        stack = replace(STACK, id=f'S{len(decided)}', name=f's{len(decided)}')
        mine = tuple(replace(each, traversal_id=traversal.id) for each in nodes)
        return Decision(None, (InsertStack(stack), InsertTraversal(replace(traversal, stack_id=stack.id), mine)))

    with patch.object(store_module, 'analyze', side_effect=RuntimeError('cancelled')):
        for _ in range(2):
            assert store.transact(NewStack('p'), decide) is not None
    assert len(decided) == 2
    told = [each for each in caplog.records if 'ANALYZE of the grown table sync_point failed' in each.getMessage()]
    assert [each.levelname for each in told if each.levelno >= logging.WARNING] == ['WARNING']


def test_who_does_not_own_the_tables_does_not_ask_for_a_look_at_them(engine):
    """PostgreSQL would do nothing, and write that to its log for each plan."""
    sent = []
    with engine.connect() as connection:
        connection.exec_driver_sql('CREATE TEMPORARY TABLE of_another (x integer)')
        event.listen(engine, 'before_cursor_execute', lambda *given: sent.append(given[2]))
        statistics.analyze(connection, 'pg_catalog.pg_class', 10**9)  # of the superuser, who may
        assert any('ANALYZE' in each for each in sent)
        sent.clear()
        connection.exec_driver_sql('SET ROLE pg_monitor')
        statistics.analyze(connection, 'sync_point', 10**9)
        connection.exec_driver_sql('RESET ROLE')
    assert not any('ANALYZE' in each for each in sent)
