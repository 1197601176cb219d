"""Rows of several nodes are claimed in one transaction: all that are decided about or none, and nobody is waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, text

from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.views import NodeView
from convergence.db.repositories.wiring import ports_of
from convergence.db.scopes import FreeNodes
from convergence.db.statements.store import Store
from convergence.db.transaction import Committed
from tests.contract.rows import EVENT, FREE, NODES, RESOURCE, STACK, TRAVERSAL, Backend, node
from tests.harness import emptied

NAMES = 'bcd'
NUMBERS = (5, 6, 7)
ROWS = tuple(replace(FREE, id=name.upper(), name=name) for name in NAMES)


def fill(backend: Backend) -> None:
    """Three nodes that are ready, and their rows, which nobody holds."""
    ready = [
        node(number, name=name, resource_id=name.upper(), required_by=(3,))
        for number, name in zip(NUMBERS, NAMES, strict=True)
    ]
    backend.fill(nodes=(*NODES, *ready), resources=(RESOURCE, *ROWS))


def begin(view: NodeView) -> Decision[int] | None:
    """The row of the node is taken."""
    assert view.resource is not None
    row = view.resource
    taken = UpdateResource(row.id, None, row.fence, {'owner': 'W', 'fence': row.fence + 1})
    return Decision(view.node.number, (taken, InsertEvents((replace(EVENT, id=f'E{view.node.number}'),))))


def decided(backend: Backend, numbers: tuple[int, ...] = NUMBERS, decide: Any = begin) -> list[int]:
    """Which nodes were decided about."""
    committed: tuple[Committed[int], ...] = backend.store.decide_free(
        FreeNodes('V', numbers, (TRAVERSAL, STACK)), decide
    )
    assert all(each.cast == each.last == () and each.following is None for each in committed)
    return [each.verdict for each in committed]


def taken(backend: Backend) -> str:
    """The names of the rows that were taken."""
    rows = {name: backend.resource(name.upper()) for name in NAMES}
    assert all(row is not None and row.owner in (None, 'W') for row in rows.values())
    return ''.join(name for name, row in rows.items() if row is not None and row.owner == 'W')


def test_all_come_true_in_the_order_in_which_they_were_asked_for(backend):
    fill(backend)
    assert decided(backend, (7, 5, 6)) == [7, 5, 6]
    assert taken(backend) == 'bcd'
    assert {each.id for each in backend.reader.events('S')} == {'E5', 'E6', 'E7'}


@pytest.mark.parametrize('numbers', [(6,), (5, 7), (5, 6, 7, 77, 78)], ids=str)
def test_only_those_that_were_asked_for_and_are_there_are_decided_about(backend, numbers):
    fill(backend)
    there = [number for number in numbers if number in NUMBERS]
    assert decided(backend, numbers) == there
    assert [NUMBERS[NAMES.index(name)] for name in taken(backend)] == there


def test_each_is_asked_about_once_and_seen_with_its_row(backend):
    fill(backend)
    views: list[NodeView] = []
    assert decided(backend, decide=lambda view: views.append(view)) == []
    assert [(view.node.number, view.resource.name) for view in views if view.resource] == list(
        zip(NUMBERS, NAMES, strict=True)
    )
    assert {(view.traversal.id, view.stack.id) for view in views} == {('V', 'S')}
    assert all(view.now > 1e9 for view in views)
    assert taken(backend) == ''


def test_what_nothing_is_decided_about_is_left_as_it_is(backend):
    fill(backend)
    assert decided(backend, decide=lambda view: begin(view) if view.node.number != 6 else None) == [5, 7]
    assert taken(backend) == 'bd'


def test_where_one_is_not_as_it_was_seen_nothing_of_it_all_comes_true(backend):
    """The others are claimed again one by one; a transaction that is half written would be neither."""
    fill(backend)

    def older(view: NodeView) -> Decision[int] | None:
        decision = begin(view)
        assert decision is not None
        if view.node.number != 6:
            return decision
        (update, told) = decision.effects
        assert isinstance(update, UpdateResource)
        return replace(decision, effects=(replace(update, fence=update.fence - 1), told))

    assert decided(backend, decide=older) == []
    assert taken(backend) == ''
    assert backend.reader.events('S') == []


def test_a_row_that_somebody_has_locked_is_not_waited_for(server_engine):
    backend = Backend.of('sql', ports_of(Store(server_engine, interval_s=0.0)))
    fill(backend)
    with server_engine.connect() as other:
        other.execute(text("SELECT id FROM resource WHERE id = 'C' FOR UPDATE"))
        assert decided(backend) == [5, 7]
        other.rollback()
    assert taken(backend) == 'bd'


def test_what_was_decided_by_an_older_state_of_the_stack_does_not_come_true(engine):
    """Traversal and stack are taken for granted, as they were when the first row was claimed."""
    backend = Backend.of('sql', ports_of(Store(engine, interval_s=0.0)))
    fill(backend)
    with engine.connect() as other:
        other.execute(text("UPDATE stack SET traversal_id = 'W' WHERE id = 'S'"))
        other.commit()
    assert decided(backend) == []
    assert taken(backend) == ''


def test_several_cost_as_few_ways_to_a_server_as_one(server_engine):
    ways = []
    for numbers in ((5,), (5, 6, 7)):
        for _ in range(2):  # the first time the server plans the statements
            backend = Backend.of('sql', ports_of(Store(emptied(server_engine), interval_s=0.0)))
            fill(backend)
            sent: list[str] = []

            def note(connection: Any, cursor: Any, statement: str, *rest: Any, sent: list[str] = sent) -> None:
                sent.append(statement)

            event.listen(server_engine, 'before_cursor_execute', note)
            assert decided(backend, numbers) == list(numbers)
            event.remove(server_engine, 'before_cursor_execute', note)
        ways.append(len(sent))
    assert ways == [2, 2]
