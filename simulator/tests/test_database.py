"""What simulations ask of a real database."""

import pytest
from convergence_simulator.stores.database import all_rows
from sqlalchemy import event, update

from convergence.core.effects import Decision, InsertStack
from convergence.db.schema.models import STACK
from convergence.db.scopes import NewStack
from convergence.db.statements.store import Store
from tests.db.test_outages import STACK as STORED
from tests.harness import database


@pytest.mark.parametrize('database_url', ['postgresql', 'mariadb'], indirect=True)
def test_all_rows_are_seen_as_they_were_at_one_moment(database_url):
    """Else rules that hold at each moment would seem broken: an operation runs, and is not that of its stack."""
    engine = database(database_url)
    store = Store(engine)
    store.transact(NewStack('p'), lambda view: Decision(None, (InsertStack(STORED),)))
    changes = iter(['meanwhile'])

    def change(*_):
        for reason in changes:
            with engine.begin() as other:
                other.execute(update(STACK).values(status_reason=reason))

    before = all_rows(store)
    event.listen(engine, 'after_cursor_execute', change)
    assert all_rows(store).stack == before.stack
    assert next(changes, None) is None
    assert all_rows(store).stack['S'].status_reason == 'meanwhile'
    engine.dispose()
