"""The questions of the reading side mean the same to every database."""

import pytest

from convergence.engine.reads.answers import ExplainReads, ResourceReads, StackReads
from convergence.rpc.operations import EventQuery, StackQuery
from tests.harness import Harness, emptied
from tests.on_databases import DATABASES
from tests.reality import meanwhile


@pytest.fixture(params=DATABASES)
def harness(request, engines):
    """A harness on each kind of database."""
    return Harness(emptied(engines(request.param)))


def test_stacks_are_selected_and_paged(harness):
    reads = StackReads(harness.reader, harness.compiler, ['c', 'RED'])
    ids = {name: harness.create({'a': 'x'}, name, tags=['red', name]) for name in ('b', 'a', 'c')}
    harness.delete(ids['c'])

    def names(**query):
        documents = reads.list_stacks(harness.context, StackQuery(sort_keys=['stack_name'], **query))
        return ''.join(document['stack_name'] for document in documents)

    assert names(filters={'status': ['CREATE_IN_PROGRESS', 'DELETE_COMPLETE']}) == 'ab'
    assert names(filters={'action': 'DELETE', 'disable_rollback': True}, show_hidden=True) == 'c'
    assert names(show_deleted=True) == 'ab' == names(not_tags_any=['A', 'B'])
    assert names(tags=['red', 'a'], not_tags=['red', 'b']) == 'a'
    assert names(filters={'owner_id': 'x'}) == '' == names(filters={'status': 'NONSENSE'})
    assert names(marker=ids['a'], filters={'status': 'IN_PROGRESS'}, tags_any=['a', 'c'], show_hidden=True) == 'c'
    assert reads.count_stacks(harness.context, StackQuery(filters={'action': ['CREATE']})) == 2


@pytest.mark.parametrize('sort_key', ['event_time', 'resource_name', 'resource_type', 'resource_status'])
@pytest.mark.parametrize('direction', ['asc', 'desc'])
def test_events_are_paged_in_any_order(harness, sort_key, direction):
    identity = {'stack_id': harness.created({'a': 'x', 'b': {'after': ['a']}})}
    reads = ResourceReads(harness.reader, harness.compiler)

    def events(**query):
        asked = EventQuery(sort_keys=[sort_key], sort_dir=direction, **query)
        return reads.list_events(harness.context, identity, asked)

    seen, marker = [], None
    while page := events(limit=1, marker=marker):
        seen += page
        marker = page[0]['event_identity']['path'].rpartition('/')[2]
    assert seen == events() and len(seen) == 6
    assert len(events(filters={'resource_name': ['s', 'a'], 'resource_status': 'COMPLETE'})) == 2


def test_the_frontier_is_explained(harness):
    seen = []
    explain = ExplainReads(harness.reader, harness.compiler).stack_explain
    harness.reality.once['create', 'a'] = [
        meanwhile(lambda: seen.append(explain(harness.context, {'stack_id': stack_id})))
    ]
    stack_id = harness.create({'a': 'x', 'b': 'y', 'c': {'after': ['a']}})
    harness.run()
    counts = seen[0]['counts']
    assert (counts['claimed'], counts['ready'], counts['parked'], counts['waiting']) == (1, 1, 0, 3)
    claimed, ready = seen[0]['frontier']
    assert (claimed['resource_name'], claimed['owner_is_up'], claimed['wake_in_s']) == ('a', True, None)
    assert (ready['resource_name'], ready['state']) == ('b', 'ready') and ready['age_s'] >= 0.0
