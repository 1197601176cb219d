"""Nested stacks whose nodes wait for one thread are claimed in one transaction and begun by one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from convergence import errors
from convergence.core.model import Status
from convergence.db.scopes import SeveralStacks
from convergence.engine.nesting import starts
from convergence.resources.contract import Answer, Call
from convergence.resources.nested import NestedType
from convergence.resources.nesting import NestedStep
from convergence.worker.service import WorkerService
from tests.engine.test_failures_unknown import lose_the_answer
from tests.engine.test_nested import CHILD, child_of, create, nested, update
from tests.harness import Harness, hot, things
from tests.worker.test_inline_chain import PATIENCE_S, in_threads, quiet

COUNT = 7
"""Nested stacks of a stack: five are begun together, then two."""


def children(count: int = COUNT, value: str = 'a') -> dict[str, Any]:
    return {f'child{number}': {'type': CHILD, 'value': value} for number in range(count)}


class Asked:
    """What the engines of a harness were asked for, and how."""

    def __init__(self, harness: Harness) -> None:
        self.together: list[int] = []
        self.alone = 0
        self.answers: Callable[[list[Any]], list[Any]] = lambda answers: answers
        together, alone = harness.act_on_nested_stacks, harness.act_on_nested_stack

        def act_on_nested_stacks(context: Any, asked: Any) -> Any:
            self.together.append(len(asked))
            return self.answers(together(context, asked))

        def act_on_nested_stack(*arguments: Any, **named: Any) -> Any:
            self.alone += 1
            return alone(*arguments, **named)

        harness.act_on_nested_stacks = act_on_nested_stacks  # type: ignore[method-assign]
        harness.act_on_nested_stack = act_on_nested_stack  # type: ignore[method-assign]


@pytest.fixture
def asked(harness):
    return Asked(harness)


@contextmanager
def waiting(harness: Harness) -> Iterator[WorkerService]:
    """A worker whose only thread is busy, until the end of the block: all that it is told of meanwhile waits."""
    worker = in_threads(harness, max_inline_nodes=16)
    before = len(harness.messages.checks)
    harness.create({'gate': 'x'}, name='gate')
    begun, go_on = threading.Event(), threading.Event()

    def gate(call: Call[Any]) -> Answer | None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return None

    harness.reality.once['create', 'gate'] = [gate]
    worker.check_resource(None, *harness.messages.checks.pop(before))
    assert begun.wait(PATIENCE_S)
    yield worker
    go_on.set()
    quiet(worker)


def told(harness: Harness, worker: WorkerService) -> None:
    """The worker gets the messages that are under way."""
    checks, harness.messages.checks[:] = list(harness.messages.checks), []
    for check in checks:
        worker.check_resource(None, *check)


def complete(harness: Harness, stack_id: str, action: str) -> None:
    """Whatever is left is done by others, and nothing is left over."""
    harness.run()
    assert harness.state(stack_id) == f'{action}_COMPLETE', harness.stack(stack_id).status_reason
    assert [row.name for row in harness.reader.resources(stack_id) if row.owner is not None] == []


def begin(harness: Harness, resources: dict[str, Any], files: dict[str, str] | None = None) -> str:
    """Create a stack of which all nodes wait for the same thread, and let that thread go."""
    with waiting(harness) as worker:
        stack_id = create(harness, resources, files or {CHILD: nested()})
        told(harness, worker)
    return stack_id


def test_what_waits_for_a_thread_is_begun_by_one_call(harness, asked):
    stack_id = begin(harness, children())
    assert (asked.together, asked.alone) == ([5, 2], 0)
    complete(harness, stack_id, 'CREATE')
    assert harness.reality.order('create') == ['gate', *['thing0'] * COUNT]


@pytest.mark.parametrize('action', ['UPDATE', 'DELETE'])
def test_an_update_and_a_deletion_are_begun_so_too(harness, asked, action):
    stack_id = create(harness, children(), {CHILD: nested()})
    complete(harness, stack_id, 'CREATE')
    with waiting(harness) as worker:
        if action == 'UPDATE':
            update(harness, stack_id, children(value='b'), {CHILD: nested()})
        else:
            harness.delete(stack_id)
        told(harness, worker)
    assert asked.together == [5, 2]
    assert asked.alone == COUNT, 'when they were made'
    complete(harness, stack_id, action)
    left = ['b'] * COUNT if action == 'UPDATE' else []
    assert [each['value'] for each in harness.reality.objects.values() if each['name'] == 'thing0'] == left


def test_rows_are_claimed_and_parked_in_few_transactions(harness, asked):
    """Each time one row is claimed, and four others in one transaction; one more plans all and lets go of them."""
    with waiting(harness) as worker:
        stack_id = create(harness, children(10), {CHILD: nested()})
        told(harness, worker)
        before = harness.store.commits
    of_the_gate = 2
    assert asked.together == [5, 5]
    assert harness.store.commits - before == of_the_gate + 2 * (1 + 1) + 2
    complete(harness, stack_id, 'CREATE')


def test_one_that_cannot_be_had_fails_alone(harness, asked):
    """F122."""
    stack_id = create(harness, {}, {})
    refused = 'child3'
    prepared = harness.nesting._prepared

    def refuse(one: Any, rows: Any) -> Any:
        if rows[one.resource_id].row.name == refused:
            raise errors.Invalid('there can be no such stack')
        return prepared(one, rows)

    harness.nesting._prepared = refuse  # type: ignore[method-assign]
    with waiting(harness) as worker:
        update(harness, stack_id, children(), {CHILD: nested()})
        told(harness, worker)
    harness.run()
    stack = harness.stack(stack_id)
    assert (stack.status, stack.status_reason.count('there can be no such stack')) == (Status.FAILED, 1)
    assert asked.alone == 1, 'by itself: so it is told why'
    rows = {row.name: row for row in harness.reader.resources(stack_id)}
    assert [name for name, row in rows.items() if row.status is Status.FAILED] == [refused]
    assert all(row.owner is None for row in rows.values())


def lost(answers: list[Any]) -> list[Any]:
    raise errors.NoAnswer('no answer in time')


def unknown(answers: list[Any]) -> list[Any]:
    """An engine of the version before."""
    raise errors.Invalid('There is no operation act_on_nested_stacks')


@pytest.mark.parametrize(
    ('answers', 'alone'),
    [
        (lost, COUNT),
        (unknown, COUNT),
        (lambda answers: [None for _ in answers], COUNT),
        (lambda answers: answers[:1], COUNT - 1),
    ],
    ids=['lost', 'unknown', 'none', 'too few'],
)
def test_where_there_is_no_answer_each_is_asked_for_by_itself_and_nothing_is_begun_twice(
    harness, asked, answers, alone
):
    """F122."""
    asked.answers = answers
    stack_id = begin(harness, children())
    assert (asked.together, asked.alone) == ([5], alone)
    complete(harness, stack_id, 'CREATE')
    assert len(harness.reality.order('create')) == 1 + COUNT
    for name in children():
        assert len(harness.reader.traversals(child_of(harness, stack_id, name).id)) == 1


def test_what_an_engine_does_not_begin_soon_is_left_to_whoever_has_a_thread(harness, asked):
    """Plans that take their time would come one after the other, while other threads and engines have nothing to do."""
    asked.answers = lambda answers: answers
    harness.nesting._clock = iter(range(100)).__next__
    with waiting(harness) as worker:
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)
    of_stack = harness.stack(stack_id).traversal_id
    assert (asked.together, asked.alone) == ([5], 0)
    assert len([each for each in harness.messages.checks if each[0] == of_stack]) == 4
    assert all(row.owner is None for row in harness.reader.resources(stack_id))
    complete(harness, stack_id, 'CREATE')
    assert asked.alone == 4
    assert len(harness.reality.order('create')) == 1 + 5


def test_while_engines_do_not_answer_one_row_is_held_and_not_five(harness, asked):
    """A worker that lives keeps what it holds: nobody else could have tried another engine."""
    held: list[int] = []

    def nobody(*arguments: Any, **named: Any) -> Any:
        held.append(sum(row.owner is not None for row in harness.reader.resources(stack_ids[0])))
        raise errors.NoAnswer('no answer in time')

    stack_ids: list[str] = []
    harness.act_on_nested_stacks = harness.act_on_nested_stack = nobody  # type: ignore[method-assign]
    with waiting(harness) as worker:
        stack_ids.append(create(harness, children(5), {CHILD: nested()}))
        told(harness, worker)
    assert held[0] == 5 and len(held) > 1
    assert set(held[1:]) == {1}


def test_a_node_that_is_told_of_twice_is_claimed_once(harness, asked):
    with waiting(harness) as worker:
        stack_id = create(harness, children(4), {CHILD: nested()})
        harness.messages.checks *= 2
        told(harness, worker)
    assert (asked.together, asked.alone) == ([4], 0)
    complete(harness, stack_id, 'CREATE')
    assert len(harness.reality.order('create')) == 1 + 4


def test_a_mistake_while_others_are_claimed_keeps_the_first_from_nothing(harness, asked, caplog):
    with waiting(harness) as worker:
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)

        def fails(*arguments: Any) -> Any:
            raise RuntimeError('a mistake')

        worker._parts.checks._nested_batch._claim_free = fails  # type: ignore[method-assign]
    assert 'Starting the nested stack of child0 alone' in caplog.text
    complete(harness, stack_id, 'CREATE')


def test_nodes_of_another_kind_are_left_to_others(harness, asked):
    mixed = {**children(2), **things(['a', 'b', 'c', 'd'], 'x'), 'child9': {'type': CHILD, 'value': 'a'}}
    stack_id = begin(harness, mixed)
    complete(harness, stack_id, 'CREATE')
    assert sum(asked.together) + asked.alone == 3
    assert sorted(harness.reality.order('create')) == ['a', 'b', 'c', 'd', 'gate', *['thing0'] * 3]


def test_a_worker_that_is_told_to_stop_meanwhile_tells_others_of_what_has_begun(harness, asked, caplog):
    """Nothing is asked for again, and no result dropped."""
    workers = []

    def told_to_stop(answers: list[Any]) -> list[Any]:
        workers[0].begin_nothing()
        return answers

    asked.answers = told_to_stop
    with waiting(harness) as worker:
        workers.append(worker)
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)
    assert (asked.together, asked.alone) == ([5], 0)
    assert [each.message for each in caplog.records if each.levelname == 'WARNING'] == []
    worker.begin_to_stop(0.0)
    complete(harness, stack_id, 'CREATE')
    assert len(harness.reality.order('create')) == 1 + 5


def test_who_is_told_to_stop_before_it_asks_gives_all_rows_back(harness, asked):
    with waiting(harness) as worker:
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)
        siblings = worker._parts.checks._nested_batch
        claimed_with = siblings.claimed_with

        def claimed(*arguments: Any) -> Any:
            claims = claimed_with(*arguments)
            worker.begin_nothing()
            return claims

        siblings.claimed_with = claimed  # type: ignore[method-assign]
    assert (asked.together, asked.alone) == ([], 0)
    assert all(row.owner is None for row in harness.reader.resources(stack_id))
    worker.begin_to_stop(0.0)
    complete(harness, stack_id, 'CREATE')


def test_what_is_cancelled_meanwhile_leaves_no_row_held_and_no_stack_at_work(harness, asked):
    act = harness.act_on_nested_stacks
    with waiting(harness) as worker:
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)

        def cancelled(context: Any, asked_for: Any) -> Any:
            harness.stacks.stack_cancel_update(
                harness.context, {'stack_id': stack_id}, cancel_with_rollback=False, now=True
            )
            worker.cancel(None, *harness.messages.cancels.pop())
            return act(context, asked_for)

        harness.act_on_nested_stacks = cancelled  # type: ignore[method-assign]
    harness.run()
    for _ in range(3):
        harness.sweep()
        harness.run()
    assert harness.stack(stack_id).status is Status.FAILED
    rows = harness.reader.resources(stack_id)
    assert all(row.owner is None for row in rows)
    nested_stacks = [harness.reader.stack(row.token or '') for row in rows]
    assert [each.status for each in nested_stacks if each is not None and each.status is Status.IN_PROGRESS] == []


def test_a_call_that_never_returns_keeps_only_what_it_may_have_begun(harness, asked):
    """The rows of all are let go of when the thread is given up, and others go on with each of them."""
    begun, go_on = threading.Event(), threading.Event()

    def stuck(answers: list[Any]) -> list[Any]:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return answers

    asked.answers = stuck
    with waiting(harness) as worker:
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)
        threading.Timer(0.0, lambda: (begun.wait(PATIENCE_S), _give_up(worker), go_on.set())).start()
    complete(harness, stack_id, 'CREATE')
    assert len(harness.reality.order('create')) == 1 + 5


def _give_up(worker: WorkerService) -> None:
    for task in list(worker._parts.checks.claims._held):
        worker._parts.checks.leave_behind(task, ())


def test_one_call_for_all_leaves_the_slow_ones_to_the_next_engine(harness):
    """So that of some large nested stacks each may be planned by another engine. The first is begun in any case."""
    seconds = iter([0.0, 0.45, 0.55])
    harness.nesting._clock = lambda: next(seconds)
    harness.nesting._prepared = lambda one, rows: NestedStep(one.resource_id)  # type: ignore[method-assign]
    answers = harness.nesting.act_on_nested_stacks(
        harness.context, [{'resource_id': name, 'fence': 1} for name in 'abc']
    )
    assert [each and each['traversal_id'] for each in answers] == ['a', 'b', None]


def test_of_stacks_that_are_large_together_each_is_planned_in_a_transaction_of_its_own(harness, asked, monkeypatch):
    monkeypatch.setattr(starts, 'TOGETHER', 2)  # of resources, and each stack has one
    with waiting(harness) as worker:
        stack_id = create(harness, children(5), {CHILD: nested()})
        told(harness, worker)
        before = harness.store.commits
    of_the_gate, two_together, alone = 2, 1, 3
    assert harness.store.commits - before == of_the_gate + (1 + 1) + two_together + alone
    assert (asked.together, asked.alone) == ([5], 0)
    complete(harness, stack_id, 'CREATE')


def test_what_the_transaction_of_all_does_not_begin_is_asked_for_by_itself(harness, asked):
    """F122. It may be that one has no room, or that there is such a stack by now: all of them say why by themselves."""
    begun = []

    def lost(starts: Any) -> Any:
        begun.append(len(starts))
        return [None] * len(starts)

    harness.nesting._starts._traversals.begin_together = lost  # type: ignore[method-assign]
    stack_id = begin(harness, children(5))
    complete(harness, stack_id, 'CREATE')
    assert (begun, asked.together, asked.alone) == ([5], [5], 5)


def test_an_engine_answers_for_each_whether_it_has_begun(harness):
    """A row that the caller does not hold any more keeps nothing else from its answer."""
    stack_id = create(harness, children(2), {CHILD: nested()})
    held = []
    act = harness.nesting.act_on_nested_stack

    def note(context: Any, *arguments: Any) -> Any:
        held.append(arguments)
        return act(context, *arguments)

    harness.nesting.act_on_nested_stack = note  # type: ignore[method-assign]
    harness.run()
    names = ('resource_id', 'fence', 'step', 'node', 'ends')
    first, other = (dict(zip(names, each, strict=True)) for each in held[:2])
    answers = harness.nesting.act_on_nested_stacks(harness.context, [first, {**other, 'fence': 77}])
    assert answers[1] is None
    assert harness.state(stack_id) == 'CREATE_COMPLETE'


def test_stacks_without_anything_in_them_are_begun_so_too(harness, asked):
    stack_id = begin(harness, children(), {CHILD: hot({}, parameters={'value': {'type': 'string'}})})
    assert (asked.together, asked.alone) == ([5, 2], 0)
    complete(harness, stack_id, 'CREATE')


def test_what_begins_with_something_else_is_not_claimed_in_vain_again_and_again(harness, asked, monkeypatch):
    """Four rows were claimed and let go of for each that began."""
    monkeypatch.setattr('convergence.worker.checks.nested_batch._begins_at_once', lambda attempt: False)
    with waiting(harness) as worker:
        stack_id = create(harness, children(), {CHILD: nested()})
        told(harness, worker)
        before = harness.store.commits
    of_the_gate, batch, each_alone = 2, 1 + 1 + 4 + 1, 2 * 2
    assert (asked.together, asked.alone) == ([], 3)
    assert harness.store.commits - before == of_the_gate + batch + each_alone
    complete(harness, stack_id, 'CREATE')


def test_a_type_that_does_something_of_its_own_first_is_called_before_its_stack_acts(harness, asked, monkeypatch):
    order: list[str] = []
    kind = type(harness.registry.get(CHILD))

    def create(self: Any, call: Call[Any]) -> Answer:
        order.append(call.name)
        return NestedType.create(self, call)

    monkeypatch.setattr(kind, 'create', create)
    stack_id = begin(harness, children())
    assert asked.together == []
    complete(harness, stack_id, 'CREATE')
    assert sorted(order) == sorted(children())


def test_one_that_has_begun_meanwhile_does_not_begin_again_and_keeps_no_other_from_it(harness, asked):
    """The same call may be under way twice: what it plans is held against what the rows say in the transaction."""
    waiting_for: list[Any] = []
    together = harness.nesting.act_on_nested_stacks

    def act(context: Any, every: Any) -> Any:
        waiting_for.extend(every[1:3])
        return together(context, every)

    def others() -> None:
        for each in waiting_for:
            assert harness.nesting.act_on_nested_stack(harness.context, **each)['traversal_id']

    harness.nesting.act_on_nested_stacks = act  # type: ignore[method-assign]
    harness.store.before(SeveralStacks, others)
    stack_id = begin(harness, children(5))
    complete(harness, stack_id, 'CREATE')
    nested_ids = [child_of(harness, stack_id, f'child{number}').id for number in range(5)]
    assert [len(harness.reader.traversals(each)) for each in nested_ids] == [1] * 5
    assert harness.reality.order('create') == ['gate', *['thing0'] * 5]


def test_none_begins_for_an_operation_that_is_superseded_meanwhile_as_if_nothing_had_happened(harness, asked):
    """What has begun is stopped by the next operation, or found in order by it; nothing is left at work."""
    stack_id = create(harness, {}, {})
    harness.store.before(SeveralStacks, lambda: update(harness, stack_id, children(5, 'b'), {CHILD: nested()}))
    with waiting(harness) as worker:
        update(harness, stack_id, children(5), {CHILD: nested()})
        told(harness, worker)
    complete(harness, stack_id, 'UPDATE')
    values = [each['value'] for each in harness.reality.objects.values() if each['name'] == 'thing0']
    assert values == ['b'] * 5


@pytest.mark.parametrize('files', [{CHILD: nested()}, {CHILD: hot({}, parameters={'value': {'type': 'string'}})}])
def test_those_whose_commit_has_no_answer_have_begun_and_go_on(harness, asked, files):
    """Nobody would come to the end of a stack without anything in it, if the engine did not."""
    lose_the_answer(harness, SeveralStacks)
    stack_id = begin(harness, children(5), files)
    complete(harness, stack_id, 'CREATE')
    assert (asked.together, asked.alone) == ([5], 0)
    nested_ids = [child_of(harness, stack_id, f'child{number}').id for number in range(5)]
    assert [len(harness.reader.traversals(each)) for each in nested_ids] == [1] * 5
