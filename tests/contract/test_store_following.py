"""Who finishes one node claims the next one in the same transaction: both or neither, and nobody is waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, text

from convergence.core.effects import Decision, FinishNode, InsertEvents, UpdateResource
from convergence.core.model import NodeStatus
from convergence.core.views import FinishView, NodeView
from convergence.db.repositories.wiring import ports_of
from convergence.db.scopes import HeldResource, OneNode
from convergence.db.statements.store import Store
from convergence.db.transaction import Committed, Following
from tests.contract.rows import EVENT, FREE, NODES, OUTPUT, RESOURCE, STACK, TRAVERSAL, Backend, node
from tests.harness import emptied

NEXT = ('V', 5)
SEEN = (TRAVERSAL, STACK)
HELD = replace(RESOURCE, replaced_by=None)
BEHIND = replace(FREE, id='B', name='b')
FIRST = replace(NODES[0], next_in_backlog=5)
"""Its row is held, and behind the window stands a node whose row is free."""


def fill(backend: Backend, held: Any = HELD) -> None:
    backend.fill(
        nodes=(FIRST, *NODES[1:], node(5, name='b', resource_id='B', required_by=(3,))), resources=(held, BEHIND)
    )


def finish(view: FinishView) -> Decision[str]:
    """Its holder lets go of the row."""
    if view.resource is None or view.resource.fence != HELD.fence:
        return Decision('fenced')
    done = FinishNode('V', 0, (2, 3), None, 64, 5, checked=view.assumed)
    told = InsertEvents((replace(EVENT, id='E0'),))
    return Decision('done', (UpdateResource('R', 'W', HELD.fence, {'owner': None}), told, done), (NEXT,))


def begin(view: NodeView) -> Decision[str] | None:
    """The holder takes the next row."""
    assert view.resource is not None
    taken = UpdateResource('B', None, view.resource.fence, {'owner': 'W', 'fence': view.resource.fence + 1})
    return Decision('begun', (taken, InsertEvents((EVENT,))))


def both(backend: Backend, decide: Any = begin) -> Committed[str]:
    """The transaction."""
    seen = FinishView(9.0, HELD, FIRST, TRAVERSAL, STACK, assumed=True)
    scope = HeldResource('R', 'V', 0, HELD.fence, assumed=seen)
    committed: Committed[str] = backend.store.transact(scope, finish, Following('V', 5, decide, SEEN))
    return committed


def owners(backend: Backend) -> dict[str, str | None]:
    return {key: row.owner for key in 'RB' if (row := backend.resource(key)) is not None}


def test_both_come_true_at_once_and_nobody_is_told_of_the_next_one(backend):
    fill(backend)
    committed = both(backend)
    assert committed.verdict == 'done' and NEXT not in committed.cast
    assert committed.following is not None and committed.following.verdict == 'begun'
    assert owners(backend) == {'R': None, 'B': 'W'}
    assert (backend.node(0).status, backend.node(2).waiting) == (NodeStatus.DONE, 1)
    assert {event.id for event in backend.reader.events('S')} == {'E', 'E0'}


def test_where_nothing_is_decided_about_the_next_one_others_are_told_of_it(backend):
    fill(backend)
    committed = both(backend, lambda view: None)
    assert committed.following is None and NEXT in committed.cast
    assert owners(backend) == {'R': None, 'B': None}
    assert backend.node(0).status is NodeStatus.DONE


def test_where_the_next_one_is_gone_the_first_is_finished(backend):
    fill(backend)
    missing = Following('V', 77, begin, SEEN)
    seen = FinishView(9.0, HELD, FIRST, TRAVERSAL, STACK, assumed=True)
    committed = backend.store.transact(HeldResource('R', 'V', 0, HELD.fence, assumed=seen), finish, missing)
    assert committed.following is None and committed.verdict == 'done'
    assert backend.node(0).status is NodeStatus.DONE


def test_where_the_first_is_refused_the_next_one_is_not_taken(backend):
    """Somebody else holds its row by now; the fence says so only when it is written."""
    fill(backend, held=replace(HELD, fence=HELD.fence + 1, owner='other'))
    committed = both(backend)
    assert committed.verdict == 'fenced' and committed.following is None
    assert owners(backend) == {'R': 'other', 'B': None}
    assert backend.node(0).status is NodeStatus.READY
    assert backend.reader.events('S') == []


def test_where_the_next_one_cannot_be_written_the_first_is_finished(backend):
    """What is decided about it is as good as nothing; the answer to the first must not get lost for that."""
    fill(backend)
    committed = both(backend, refused)
    assert committed.verdict == 'done' and committed.following is None and NEXT in committed.cast
    assert owners(backend) == {'R': None, 'B': None}
    assert backend.node(0).status is NodeStatus.DONE


def test_a_row_that_somebody_else_has_locked_is_not_waited_for(server_engine):
    backend = Backend.of('sql', ports_of(Store(server_engine, interval_s=0.0)))
    fill(backend)
    with server_engine.connect() as other:
        other.execute(text("SELECT id FROM resource WHERE id = 'B' FOR UPDATE"))
        committed = both(backend)
        other.rollback()
    assert committed.verdict == 'done' and committed.following is None and NEXT in committed.cast
    assert owners(backend) == {'R': None, 'B': None}


def test_rows_are_locked_in_an_order_in_which_nobody_waits_in_a_circle(server_engine):
    """Whoever plans locks all rows of a stack, in their order: so nothing is waited for while the next row is held.

    And the nodes at which many arrive are locked last, so that others wait for them as briefly as ever.
    """
    backend = Backend.of('sql', ports_of(Store(server_engine, interval_s=0.0)))
    fill(backend)
    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        sent.append(' '.join(statement.split()))

    event.listen(server_engine, 'before_cursor_execute', note)
    both(backend)
    event.remove(server_engine, 'before_cursor_execute', note)
    statements = '; '.join(sent).split('; ')
    places = [
        next(place for place, each in enumerate(statements) if part in each)
        for part in ('UPDATE resource', 'SKIP LOCKED', 'UPDATE sync_point')
    ]
    assert places == sorted(places), sent
    assert not any('FOR UPDATE' in each and 'SKIP LOCKED' not in each for each in statements[: places[2]])


# --- what becomes ready by it -----------------------------------------------------------------------------------

SECOND = ('V', 2)
LEADING = replace(NODES[0], required_by=(2, 3, 5))
DONE = replace(NODES[1], status=NodeStatus.DONE, output=replace(OUTPUT, resource_id='Q'))
JOINING = node(2, 1, (3,), name='b', resource_id='B', requires=(0, 1))
"""Waits for the node that is finished, and for one that is done already."""


def fill_waiting(backend: Backend, *nodes: Any, held: Any = HELD) -> None:
    backend.fill(nodes=(LEADING, DONE, JOINING, *NODES[3:], *nodes), resources=(held, BEHIND))


def finish_and_arrive(view: FinishView) -> Decision[str]:
    if view.resource is None or view.resource.fence != HELD.fence:
        return Decision('fenced')
    done = FinishNode('V', 0, LEADING.required_by, OUTPUT, 64, None, checked=view.assumed)
    told = InsertEvents((replace(EVENT, id='E0'),))
    return Decision('done', (UpdateResource('R', 'W', HELD.fence, {'owner': None}), told, done))


MORE = replace(OUTPUT, attributes={'several': (1, {'k': 2.5})})


def finish_with_more(view: FinishView) -> Decision[str]:
    decision = finish_and_arrive(view)
    return replace(
        decision,
        effects=tuple(
            replace(effect, output=MORE) if isinstance(effect, FinishNode) else effect for effect in decision.effects
        ),
    )


def with_ready(backend: Backend, decide: Any = begin) -> Committed[str]:
    seen = FinishView(9.0, HELD, LEADING, TRAVERSAL, STACK, assumed=True)
    scope = HeldResource('R', 'V', 0, HELD.fence, assumed=seen)
    committed: Committed[str] = backend.store.transact(
        scope, finish_and_arrive, Following('V', None, decide, SEEN, name='r')
    )
    return committed


def test_what_becomes_ready_is_decided_about_as_it_is_then(backend):
    """It sees that it waits for nothing any more, and what the node that has just been finished hands on."""
    fill_waiting(backend)
    views: list[NodeView] = []
    committed = with_ready(backend, lambda view: (views.append(view), begin(view))[1])
    assert committed.following is not None and committed.following.verdict == 'begun'
    assert (committed.verdict, committed.cast) == ('done', ())
    assert (views[-1].node.number, views[-1].node.status, views[-1].node.waiting) == (2, NodeStatus.READY, 0)
    assert views[-1].inputs == {'r': OUTPUT, 'q': DONE.output}
    assert owners(backend) == {'R': None, 'B': 'W'}
    assert {event.id for event in backend.reader.events('S')} == {'E', 'E0'}


@pytest.mark.parametrize('most', [None, 0, 1 << 20], ids=['no limit', 'too much', 'enough'])
@pytest.mark.parametrize('name', [None, 'r'], ids=['not known', 'known'])
def test_what_requires_the_finished_one_alone_sees_what_it_hands_on_as_it_is_stored(backend, name, most):
    backend.fill(nodes=(LEADING, NODES[1], replace(JOINING, requires=(0,)), *NODES[3:]), resources=(HELD, BEHIND))
    views: list[NodeView] = []
    following = Following('V', None, lambda view: (views.append(view), begin(view))[1], SEEN, most, name)
    seen = FinishView(9.0, HELD, LEADING, TRAVERSAL, STACK, assumed=True)
    committed = backend.store.transact(HeldResource('R', 'V', 0, HELD.fence, assumed=seen), finish_with_more, following)
    assert committed.following is not None
    read = backend.store.transact(OneNode('V', 2, most), lambda view: Decision(view)).verdict
    assert (views[-1].inputs, views[-1].input_bytes == 0) == (read.inputs, read.input_bytes == 0)
    assert list(views[-1].inputs) == ([] if most == 0 else ['r'])


def test_others_are_told_of_all_but_the_first_that_becomes_ready(backend):
    fill_waiting(backend, node(5, 1, (3,), name='c', resource_id='C', requires=(0,)))
    committed = with_ready(backend)
    assert committed.following is not None and committed.cast == (NEXT,)


def test_what_still_waits_is_not_decided_about(backend):
    backend.fill(nodes=(LEADING, NODES[1], replace(JOINING, waiting=2), *NODES[3:]), resources=(HELD, BEHIND))
    committed = with_ready(backend)
    assert (committed.following, committed.cast, backend.node(2).waiting) == (None, (), 1)
    assert backend.node(0).status is NodeStatus.DONE


def test_what_needs_no_worker_is_not_decided_about(backend):
    """Node 3 says that everything wanted is up, and becomes ready before any other."""
    backend.fill(nodes=(LEADING, *NODES[1:]), resources=(HELD, BEHIND))
    committed = with_ready(backend)
    assert (committed.following, committed.last) == (None, (('V', 3),))


def nothing(view: NodeView) -> None:
    """It is looked at by itself."""


def refused(view: NodeView) -> Decision[str]:
    """Somebody else has the row."""
    return Decision('begun', (UpdateResource('B', 'nobody', 1, {'owner': 'W'}),))


@pytest.mark.parametrize('decide', [nothing, refused])
def test_where_what_becomes_ready_cannot_be_taken_others_are_told_of_it(backend, decide):
    fill_waiting(backend)
    committed = with_ready(backend, decide)
    assert (committed.verdict, committed.following, committed.cast) == ('done', None, (SECOND,))
    assert owners(backend) == {'R': None, 'B': None}
    assert backend.node(0).status is NodeStatus.DONE


def test_where_the_first_is_refused_nothing_becomes_ready(backend):
    fill_waiting(backend, held=replace(HELD, fence=HELD.fence + 1, owner='other'))
    committed = with_ready(backend)
    assert (committed.verdict, committed.following, backend.node(2).waiting) == ('fenced', None, 1)
    assert backend.reader.events('S') == []


def test_what_becomes_ready_and_somebody_else_has_locked_is_not_waited_for(server_engine):
    backend = Backend.of('sql', ports_of(Store(server_engine, interval_s=0.0)))
    fill_waiting(backend)
    with server_engine.connect() as other:
        other.execute(text("SELECT id FROM resource WHERE id = 'B' FOR UPDATE"))
        committed = with_ready(backend)
        other.rollback()
    assert (committed.verdict, committed.following, committed.cast) == ('done', None, (SECOND,))
    assert owners(backend) == {'R': None, 'B': None}


@pytest.mark.parametrize(('filled', 'step'), [(fill_waiting, with_ready), (fill, both)])
def test_nothing_is_locked_that_others_write_meanwhile(server_engine, filled, step):
    """Whoever plans holds the stack, and waits for rows; what is done already may be locked by anybody."""
    backend = Backend.of('sql', ports_of(Store(server_engine, interval_s=0.0)))
    filled(backend)
    with server_engine.connect() as other:
        for locked in (
            "stack WHERE id = 'S'",
            "traversal WHERE id = 'V'",
            "sync_point WHERE traversal_id = 'V' AND number = 1",
        ):
            other.execute(text(f'SELECT 1 FROM {locked} FOR UPDATE'))
        committed = step(backend)
        other.rollback()
    assert committed.following is not None and committed.following.verdict == 'begun'


PLANNED = "UPDATE stack SET traversal_id = 'X' WHERE id = 'S'"
FAILED = "UPDATE traversal SET status = 'FAILED' WHERE id = 'V'"
REPLACED = "UPDATE sync_point SET resource_id = 'C' WHERE traversal_id = 'V' AND number = 5"
TAKEN = "UPDATE sync_point SET status = 'DONE' WHERE traversal_id = 'V' AND number = 5"


@pytest.mark.parametrize(
    ('server_engine', 'filled', 'step', 'change'),
    [
        *(
            (server, filled, step, change)
            for server in ('postgresql', 'mariadb')
            for filled, step in ((fill_waiting, with_ready), (fill, both))
            for change in (PLANNED, FAILED)
        ),
        ('postgresql', fill, both, REPLACED),
        ('postgresql', fill, both, TAKEN),
    ],
    indirect=['server_engine'],
)
def test_what_is_locked_too_late_to_be_seen_as_it_is_is_not_taken(server_engine, filled, step, change):
    """PostgreSQL reads row and node in one statement, and the lock of the row may come after what it has read.

    MariaDB locks both, and does not read traversal and stack again.
    """
    backend = Backend.of('sql', ports_of(Store(server_engine, interval_s=0.0)))
    filled(backend)
    looked: list[str] = []

    def decide(view: NodeView) -> Decision[str] | None:
        with server_engine.connect() as other:
            other.execute(text(change))
            other.commit()
        looked.append(change)
        return begin(view)

    committed = step(backend, decide)
    assert looked == [change]
    assert committed.following is None
    assert owners(backend) == {'R': None, 'B': None}


@pytest.mark.parametrize('ways', ['behind the window', 'becomes ready'])
@pytest.mark.parametrize('is_begun', [True, False], ids=['begun', 'not begun'])
def test_events_of_both_are_stored_in_their_order_in_one_statement(engines, ways, is_begun):
    """MariaDB answers each statement, which costs the reader more than another row costs the server."""
    engine = emptied(engines('mariadb'))
    backend = Backend.of('sql', ports_of(Store(engine, interval_s=0.0)))
    stored: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        stored.extend(each for each in statement.split('; ') if each.startswith('INSERT INTO event'))

    act, filled = (both, fill) if ways == 'behind the window' else (with_ready, fill_waiting)
    filled(backend)
    event.listen(engine, 'before_cursor_execute', note)
    try:
        committed = act(backend, begin if is_begun else lambda view: None)
    finally:
        event.remove(engine, 'before_cursor_execute', note)
    assert (committed.following is not None) is is_begun
    found = sorted(backend.reader.events('S'), key=lambda each: each.sequence)
    assert [each.id for each in found] == ['E0', 'E'][: 1 + is_begun]
    assert len(stored) == 1
