"""What is shown of objects that changed outside of their stack, and to whom."""

import pytest

from convergence import errors
from convergence.cli.graph_text import graph_lines
from convergence.engine.preview.preview import Previews
from convergence.engine.reads.drift import DriftReads
from convergence.engine.reads.explain import ExplainReads
from convergence.engine.reads.history import HistoryReads
from convergence.engine.reads.resources import ResourceReads
from convergence.engine.reads.stacks import StackReads
from tests.harness import Context, hot
from tests.observing import Observing

HIDDEN = {'parameters': {'word': {'type': 'string', 'hidden': True, 'default': 'canary-1'}}}


class Shown:
    """A stack, an observer beside it, and all who show what that has seen."""

    def __init__(self, harness, resources, **sections):
        self.harness, self.observing = harness, Observing(harness)
        identity = harness.stacks.create_stack(harness.context, 's', hot(resources, **sections))
        self.stack_id = identity['stack_id']
        harness.run()
        self.identity = {'stack_id': self.stack_id}
        parts, objects = (harness.reader, harness.compiler), harness.ports.observations
        self.reads = DriftReads(*parts, objects, harness.roster, self.observing.enrol_stack)
        self.stacks, self.explains = StackReads(*parts, objects=objects), ExplainReads(*parts, objects)
        self.resources = ResourceReads(*parts, objects=objects)
        self.previews = Previews(harness.reader, harness.registry, harness.stacks, objects)

    def object_of(self, name, stack_id=None):
        """The object behind a resource."""
        rows = self.harness.reader.resources(stack_id or self.stack_id)
        return next(row.physical_id for row in rows if row.name == name)

    def change(self, name, **values):
        self.harness.reality.objects[self.object_of(name)].update(values)

    def drift(self, **more):
        return self.reads.stack_drift(self.harness.context, self.identity, **more)

    def drifted(self):
        """The condition of the stack, if it has it."""
        (stack,) = self.stacks.show_stack(self.harness.context, self.identity)
        return {each['type']: each for each in stack['conditions']}.get('Drifted')


def test_what_differs_is_shown_with_what_is_wanted_what_was_applied_and_what_is_there(harness):
    shown = Shown(harness, {'a': 'x', 'b': 'y', 'c': 'z'})
    assert shown.drifted() is None
    shown.observing.look(shown.stack_id)
    assert (shown.drifted()['status'], shown.drifted()['reason']) == ('False', 'AsMade')
    shown.change('a', value='else')
    del harness.reality.objects[shown.object_of('b')]
    shown.observing.look(shown.stack_id)
    found = shown.drift()
    assert {key: found[key] for key in ('observed', 'seen', 'drifted', 'waiting', 'observers')} == {
        'observed': 3,
        'seen': 3,
        'drifted': 2,
        'waiting': 0,
        'observers': 1,
    }
    first, second = found['resources']
    assert first['properties'] == [{'name': 'value', 'wanted': 'x', 'applied': 'x', 'live': 'else'}]
    assert (first['path'], first['state'], first['source']) == ('a', 'DIFFERS', 'REQUEST')
    assert first['since'] and first['looked_at'] and found['looked_at']
    assert (second['path'], second['state'], second['properties']) == ('b', 'GONE', [])
    assert [each['path'] for each in shown.drift(with_healthy=True)['resources']] == ['a', 'b', 'c']
    assert (shown.drifted()['status'], shown.drifted()['reason']) == ('True', 'ChangedOutside')


def test_a_resource_and_an_explanation_say_so(harness):
    shown = Shown(harness, {'a': 'x', 'b': 'y'})
    shown.change('a', value='else')
    shown.observing.look(shown.stack_id)
    described = {
        name: shown.resources.describe_stack_resource(harness.context, shown.identity, name) for name in ('a', 'b')
    }
    told = {
        name: [(c['type'], c['status'], c['reason']) for c in each['conditions']] for name, each in described.items()
    }
    up = [('Ready', 'True', 'CreateComplete'), ('Progressing', 'False', 'CreateComplete')]
    assert told == {'a': [*up, ('Drifted', 'True', 'Differs')], 'b': [*up, ('Drifted', 'False', 'Healthy')]}
    explained = shown.explains.stack_explain(harness.context, shown.identity)['drift']
    assert (explained['observed'], explained['drifted']) == (2, 1)
    assert [(each['resource_name'], each['state']) for each in explained['resources']] == [('a', 'DIFFERS')]


def test_the_graph_says_what_changed_outside(harness):
    shown = Shown(harness, {'a': 'x', 'b': 'y'})
    shown.change('a', value='else')
    shown.observing.look(shown.stack_id)
    graph = HistoryReads(harness.reader, harness.compiler, harness.ports.observations)
    nodes = graph.stack_graph(harness.context, shown.identity)['nodes']
    told = {node['name']: node['changed_outside'] for node in nodes}
    assert (told['b'], 'value of a' in told['a']) == (None, True)
    (line,) = (line for line in graph_lines({'nodes': nodes, 'edges': []}) if 'changed outside' in line)
    assert line.startswith('a ')


def test_what_the_template_leaves_to_the_type_is_shown_as_the_type_takes_it(harness):
    shown = Shown(harness, {'a': {'value': 'x'}})
    shown.change('a', key='else')
    shown.observing.look(shown.stack_id)
    (found,) = shown.drift()['resources']
    assert found['properties'] == [{'name': 'key', 'wanted': '', 'applied': '', 'live': 'else'}]


def test_a_preview_says_what_changed_outside(harness):
    resources = {'a': 'x', 'b': 'y'}
    shown = Shown(harness, resources)
    shown.change('a', value='else')
    shown.observing.look(shown.stack_id)
    lists = shown.previews.preview_update_stack(harness.context, shown.identity, hot({**resources, 'b': 'new'}))
    (unchanged,), (updated,) = lists['unchanged'], lists['updated']
    assert unchanged['changed_outside']['properties'] == ['value']
    assert unchanged['changed_outside']['state'] == 'DIFFERS'
    assert 'changed_outside' not in updated


def test_an_update_ends_what_was_known_of_its_resources(harness):
    shown = Shown(harness, {'a': 'x'})
    shown.change('a', value='else')
    shown.observing.look(shown.stack_id)
    harness.update(shown.stack_id, {'a': 'new'})
    harness.run()
    found = shown.drift()
    assert (found['drifted'], found['seen'], shown.drifted()) == (0, 0, None)
    assert [(each['state'], each['properties']) for each in found['resources']] == [('UNKNOWN', [])]


def test_whoever_asks_for_a_look_gets_one_also_before_anything_was_enrolled(harness):
    shown = Shown(harness, {'a': 'x', 'b': 'y'})
    assert shown.reads.observe_stack(harness.context, shown.identity) == {'waiting': 2, 'observers': 1}
    assert shown.observing.observer.turn() == 2
    found = shown.drift(with_healthy=True)
    assert (found['waiting'], found['seen'], {each['source'] for each in found['resources']}) == (0, 2, {'REQUEST'})
    harness.roster.leave('observer')
    assert shown.reads.observe_stack(harness.context, shown.identity) == {'waiting': 2, 'observers': 0}


def test_whoever_asks_for_a_look_in_the_middle_of_an_operation_keeps_nothing_of_it_from_being_observed(harness):
    """What was made after that was never looked at, until the next operation on the stack."""
    shown = Shown(harness, {'a': 'x'})
    harness.update(shown.stack_id, {'a': 'x', 'b': 'y'})
    assert shown.reads.observe_stack(harness.context, shown.identity) == {'waiting': 0, 'observers': 1}
    harness.run()
    shown.change('b', value='else')
    shown.observing.look(shown.stack_id)
    assert [(each['path'], each['state']) for each in shown.drift()['resources']] == [('b', 'DIFFERS')]


@pytest.mark.parametrize('live', ['else', ['a', 'list'], None])
def test_nothing_hidden_is_shown_of_what_is_wanted_was_applied_or_is_there(harness, live):
    shown = Shown(harness, {'a': {'value': {'get_param': 'word'}}, 'b': {'link': {'get_param': 'word'}}}, **HIDDEN)
    shown.change('a', value='canary-1 and more')
    shown.change('b', link=live)
    shown.observing.look(shown.stack_id)
    found = shown.drift()
    assert 'canary' not in str(found)
    first, second = ({**each['properties'][0]} for each in found['resources'])
    assert (first['wanted'], first['applied'], first['live']) == ('******', '******', '******')
    assert second['live'] == (None if live is None else '******')


def test_another_project_has_no_such_stack(harness):
    shown = Shown(harness, {'a': 'x'})
    for ask in (shown.reads.stack_drift, shown.reads.observe_stack):
        with pytest.raises(errors.EntityNotFound):
            ask(Context(project_id='q'), shown.identity)


def test_what_is_in_nested_stacks_is_shown_with_its_path(harness):
    group = {'type': 'OS::Heat::ResourceGroup', 'count': 2, 'resource_def': {'type': 'Test::Thing'}}
    shown = Shown(harness, {'group': group})
    harness.run()
    nested = harness.reader.resources(shown.stack_id)[0].token
    harness.reality.objects[shown.object_of('1', nested)].update(value='else')
    shown.reads.observe_stack(harness.context, shown.identity, 1)
    shown.observing.look()
    assert [each['path'] for each in shown.drift(nested_depth=1)['resources']] == ['group/1']
    assert shown.drift()['resources'] == []
