"""What a stack may cost in memory and time: counted in bytes and steps, refused before it is spent."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from convergence import errors, template
from convergence.core.model import Output
from convergence.template.limits import STANDARD, Budget, Limits
from tests.harness import Harness, database, hot
from tests.template.build import IDENTITY

VALUE = 'OS::Heat::Value'
MOST_BYTES = STANDARD.max_stored_bytes


def value(content: Any) -> dict[str, Any]:
    return {'type': VALUE, 'properties': {'value': content}}


def doubling(levels: int) -> dict[str, Any]:
    """Each resource has twice as many items as the one before."""
    resources = {'v0': value(['abcd'] * 64)}
    for level in range(1, levels):
        before = {'get_attr': [f'v{level - 1}', 'value']}
        resources[f'v{level}'] = value({'list_concat': [before, before]})
    return {'heat_template_version': 'wallaby', 'resources': resources}


def test_resources_that_double_what_they_read_are_stopped_before_they_take_the_memory_of_a_worker(harness):
    identity = harness.stacks.create_stack(harness.context, 's', doubling(24), args={'disable_rollback': True})
    tracemalloc.start()
    try:
        harness.run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    stack = identity['stack_id']
    assert harness.state(stack) == 'CREATE_FAILED'
    assert f'the limit [limits] max_stored_bytes is {MOST_BYTES}' in harness.stack(stack).status_reason
    assert max(len(json.dumps(dict(row.properties))) for row in harness.rows(stack)) > MOST_BYTES // 4
    assert all(len(json.dumps(dict(row.properties))) <= MOST_BYTES for row in harness.rows(stack))
    assert peak < 40 * MOST_BYTES
    harness.delete(stack)
    harness.run()
    assert harness.stack(stack).deleted_at is not None


def test_what_no_worker_could_store_is_refused_with_the_request(harness):
    with pytest.raises(errors.StackValidationFailed, match='max_stored_bytes') as caught:
        text = hot({'a': 'x', 'b': {'value': {'get_file': 'f'}}})
        harness.stacks.create_stack(harness.context, 's', text, files={'f': 'x' * (MOST_BYTES + 1)})
    assert 'resources.b' in str(caught.value)


class WatchService:
    """Evaluates expressions and notes whether a row was locked meanwhile."""

    def __init__(self, harness: Any) -> None:
        self.harness = harness
        self.seen: list[bool] = []

    def evaluate(self, expression: str, data: Any, budget: Budget) -> Any:
        self.seen.append(self.harness.store.deciding)
        return f'{expression} of {data}'


def test_nothing_that_costs_much_is_evaluated_while_a_row_is_locked(harness, monkeypatch):
    watching, transact = WatchService(harness), harness.store.transact
    harness.store.deciding = False

    def watched(scope: Any, decide: Any, following: Any = None) -> Any:
        harness.store.deciding = True
        try:
            return transact(scope, decide, following)
        finally:
            harness.store.deciding = False

    harness.store.transact = watched
    monkeypatch.setattr('convergence.worker.checks.assess.evaluator', lambda: watching)
    harness.restart()
    asked = {'yaql': {'expression': 'e', 'data': {'get_attr': ['a', 'value']}}}
    stack = harness.created({'a': 'x', 'b': {'value': asked}})
    assert harness.row(stack, 'b').properties['value'] == 'e of x'
    assert watching.seen == [False]


class Uncounted(dict[str, str]):
    """Many names of which only the number may be asked."""

    def __len__(self) -> int:
        return 400_000

    def __iter__(self) -> Iterator[str]:
        raise AssertionError('somebody looks at each of them')

    def items(self) -> Any:
        raise AssertionError('somebody looks at each of them')

    keys = values = items


@pytest.mark.parametrize('what', ['files', 'parameters'])
def test_too_many_names_are_refused_before_anybody_looks_at_them(what):
    with pytest.raises(errors.RequestLimitExceeded, match='max_names'):
        template.compile(hot({'a': 'x'}), identity=IDENTITY, **{what: Uncounted()})


def test_too_many_names_are_refused_before_environments_are_merged(harness):
    for more in ({'files': Uncounted()}, {'params': {'parameters': Uncounted()}}):
        with pytest.raises(errors.RequestLimitExceeded, match='max_names'):
            harness.stacks.create_stack(harness.context, 's', hot({'a': 'x'}), **more)


def nested(depth: int, items: int) -> Any:
    """Repeats inside of each other."""
    body: Any = '-'.join(f'%{level}' for level in range(depth))
    for level in range(depth):
        body = {'repeat': {'template': body, 'for_each': {f'%{level}': [str(item) for item in range(items)]}}}
    return body


def compiled(content: Any, **limits: int) -> template.Compiled:
    source = {'heat_template_version': 'wallaby', 'resources': {'a': value(content)}}
    return template.compile(source, identity=IDENTITY, installation=template.Installation(Limits(**limits)))


def test_text_that_is_replaced_costs_steps_however_short_it_is():
    assert compiled(nested(1, 1000)).problems.found() == []
    with pytest.raises(errors.RequestLimitExceeded, match='max_steps'):
        compiled(nested(3, 100), max_nodes=10_000_000, max_expanded_bytes=10**12)


@pytest.mark.parametrize('name', ['list_concat', 'list_concat_unique'])
def test_items_are_counted_and_not_their_characters_alone(name):
    inputs = {'a': Output('id', attributes={'value': [''] * 1000})}
    asked = {'$fn': [name, [{'$fn': ['get_attr', ['a', 'value']]}] * 10]}
    with pytest.raises(errors.RequestLimitExceeded, match='max_expanded_bytes'):
        template.resolve(asked, inputs, budget=Budget(Limits(max_expanded_bytes=1_000_000)))
    assert template.resolve(asked, inputs)


def handing_on(count: int, size: int) -> dict[str, Any]:
    """Resources that each hand on much, and one that takes from all of them."""
    resources = {f'v{number}': value('x' * size) for number in range(count)}
    taken = [{'get_attr': [name, 'value']} for name in resources]
    return {'heat_template_version': 'wallaby', 'resources': {**resources, 'sum': value({'list_join': ['', taken]})}}


def takes_no_more_than_it_may(harness: Harness) -> None:
    identity = harness.stacks.create_stack(harness.context, 's', handing_on(9, 12_000))
    harness.run()
    stack = identity['stack_id']
    assert harness.state(stack) == 'CREATE_FAILED'
    told = r'resources\.sum: what it takes from other resources has 1\d{5} bytes; the limit \[limits\] max_input_bytes is 100000'
    assert re.search(told, harness.stack(stack).status_reason), harness.stack(stack).status_reason
    harness.stacks.update_stack(harness.context, {'stack_id': stack}, handing_on(7, 12_000))
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE', harness.stack(stack).status_reason


def test_what_one_resource_takes_from_many_is_bounded_before_it_leaves_the_database(database_url):
    """Each of them stores no more than it may; all together would be more than a worker can hold."""
    engine = database(database_url)
    try:
        takes_no_more_than_it_may(Harness(engine, max_input_bytes=100_000))
    finally:
        engine.dispose()


def test_what_one_resource_takes_from_many_is_bounded_in_memory_too():
    takes_no_more_than_it_may(Harness(None, max_input_bytes=100_000))
