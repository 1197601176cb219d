"""What is over is kept for a while, and does not grow without end."""

from __future__ import annotations

from sqlalchemy import select

from convergence.db.records import Keep
from convergence.db.repositories.purges import remove_stack
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.schema.models import EVENT, METADATA, STACK, TEMPLATE, TRAVERSAL
from tests.harness import Harness

ALL = 1_000_000


def rows(harness: Harness, table: object) -> int:
    """How many rows a table has."""
    with harness.store.reading() as connection:
        return len(connection.execute(select(table)).all())  # type: ignore[call-overload]


def test_only_the_newest_events_of_a_stack_are_kept(harness: Harness) -> None:
    stack = harness.created({'a': 'x'})
    before = harness.reader.events(stack)
    Sweeps(harness.store, Keep(events=2)).purge_nodes(100)
    assert len(before) > 2
    assert harness.reader.events(stack) == before[-2:]


def test_only_the_newest_operations_of_a_stack_are_kept(harness: Harness) -> None:
    stack = harness.created({'a': 'x'})
    for value in 'pqrs':
        harness.update(stack, {'a': value})
        harness.run()
    Sweeps(harness.store, Keep(operations=2)).purge_nodes(100)
    # The last one is swept only now; the one before the oldest that is kept went with it.
    kept = [each.id for each in harness.reader.traversals(stack, newest=ALL)]
    assert len(kept) == 2
    assert kept[0] == harness.stack(stack).traversal_id or kept[-1] == harness.stack(stack).traversal_id


def test_the_newest_operation_is_kept_whatever_is_configured(harness: Harness) -> None:
    """It says why the stack is what it is."""
    stack = harness.created({'a': 'x'})
    harness.update(stack, {'a': 'y'})
    harness.run()
    Sweeps(harness.store, Keep(operations=0)).purge_nodes(100)
    Sweeps(harness.store, Keep(operations=0)).purge_nodes(100)
    assert [each.id for each in harness.reader.traversals(stack, newest=ALL)] == [harness.stack(stack).traversal_id]


def test_what_is_left_of_a_stack_goes_some_time_after_it_was_deleted(harness: Harness) -> None:
    gone, lives = harness.created({'a': 'x'}, 'gone'), harness.created({'b': 'x'}, 'lives')
    harness.delete(gone)
    harness.run()
    Sweeps(harness.store).purge_nodes(100)
    assert Sweeps(harness.store).purge_stacks(10) == 0, 'for ever, where nothing is said'
    assert Sweeps(harness.store, Keep(deleted_s=3600.0)).purge_stacks(10) == 0, 'not before its time'
    assert harness.reader.stack(gone) is not None
    assert Sweeps(harness.store, Keep(deleted_s=-1.0)).purge_stacks(10) > 0
    for table, key in (
        (STACK, STACK.c.id),
        (EVENT, EVENT.c.stack_id),
        (TRAVERSAL, TRAVERSAL.c.stack_id),
        (TEMPLATE, TEMPLATE.c.stack_id),
    ):
        with harness.store.reading() as connection:
            assert set(connection.execute(select(key)).scalars()) == {lives}, table.name


def test_nothing_at_all_is_left(harness: Harness) -> None:
    # A project keeps the row by which its stacks are counted: it is the project's, not the stack's.
    tables = [table for table in METADATA.sorted_tables if table.name != 'project']
    before = {table.name: rows(harness, table) for table in tables}
    stack = harness.created({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
    harness.update(stack, {'a': 'y'})
    harness.delete(stack)
    harness.run()
    remove_stack(harness.store, stack)
    assert {table.name: rows(harness, table) for table in tables} == before
