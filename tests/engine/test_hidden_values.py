"""What is computed from a hidden value is hidden, whatever an expression makes of it.

The proof is that nothing depends on it: a stack is made twice, with two hidden values, everything that anybody may ask
about it is asked, and the answers are the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from convergence import errors, template
from convergence.engine.preview.preview import Previews
from convergence.engine.reads.explain import ExplainReads
from convergence.engine.reads.history import HistoryReads
from convergence.engine.reads.resources import ResourceReads
from convergence.engine.reads.stacks import StackReads
from convergence.resources.attributes import attr
from convergence.resources.contract import ResourceType
from convergence.resources.registry import Registry
from convergence.resources.schema import prop
from convergence.resources.secrets import DeclaredSecrets
from convergence.secrecy import MASK, masked_at
from tests.template.build import IDENTITY

WORDS = ('Sup3rS3cret,CANARY', 'An0therW0rd,HIDDEN')
"""Equally long and of the same form: an expression works with both or with none, so it tells nothing by failing."""

HIDDEN = {'get_param': 'word'}
VALUE = 'OS::Heat::Value'
SAME = settings(derandomize=True, max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def yaql(expression: str, data: Any) -> dict[str, Any]:
    return {'yaql': {'expression': expression, 'data': data}}


WRAPS = {
    'characters': lambda x: yaql('$.data.toCharArray()', x),
    'length': lambda x: yaql('len($.data)', x),
    'first': lambda x: yaql('str($.data).substring(0, 1)', x),
    'split': lambda x: {'str_split': [',', x]},
    'part': lambda x: {'str_split': [',', x, 0]},
    'digest': lambda x: {'digest': ['sha256', x]},
    'join': lambda x: {'list_join': ['-', ['a', x]]},
    'join list': lambda x: {'list_join': ['-', x]},
    'replace': lambda x: {'str_replace': {'template': 'a%b', 'params': {'%': x}}},
    'strict': lambda x: {'str_replace_strict': {'template': 'a', 'params': {'%': x}}},
    'key': lambda x: {'str_replace': {'template': x, 'params': {'S': '5', 'A': '6'}}},
    'repeat': lambda x: {'repeat': {'template': 'p-%', 'for_each': {'%': [x, 'z']}}},
    'repeat list': lambda x: {'repeat': {'template': {'k-%': '%'}, 'for_each': {'%': x}}},
    'filter': lambda x: {'filter': [['A'], [x, 'A']]},
    'concat': lambda x: {'list_concat': [[x], ['b']]},
    'unique': lambda x: {'list_concat_unique': [[x], [x]]},
    'merge': lambda x: {'map_merge': [{'a': x}, {'b': 1}]},
    'map': lambda x: {'map_replace': [{'a': 'b'}, {'keys': {'a': x}}]},
    'collide': lambda x: {'map_replace': [{'a': 'b', 'c': 'd'}, {'keys': {'a': x, 'c': x}}]},
    'url': lambda x: {'make_url': {'scheme': 'http', 'host': 'h', 'path': x}},
    'contains': lambda x: {'contains': ['3', x]},
    'chosen': lambda x: {'if': [{'contains': ['Sup', x]}, 'yes', 'no']},
    'equals': lambda x: {'if': [{'equals': [x, WORDS[0]]}, 'same', 'other']},
    'left out': lambda x: ['a', {'if': [{'equals': [x, WORDS[0]]}, 'b']}, 'c'],
    'named': lambda x: {'if': ['asked', 'true', x]},
    'file': lambda x: {'get_file': x},
    'resource': lambda x: {'get_resource': x},
    'attribute': lambda x: {'get_attr': ['first', x]},
    'in a list': lambda x: ['public', x],
    'in a map': lambda x: {'public': 'seen', 'k': x},
}

expressions = st.recursive(
    st.just(HIDDEN),
    lambda inner: st.builds(lambda name, x: WRAPS[name](x), st.sampled_from(sorted(WRAPS)), inner),
    max_leaves=4,
)
FAILING = ('strict', 'collide', 'file', 'resource', 'attribute')
CONDITIONS = {'asked': {'equals': [{'get_param': 'word'}, WORDS[0]]}}


def document(expression: Any, onward: Any, *, hidden: bool = True) -> dict[str, Any]:
    """A stack in which a value goes from a parameter through two resources to the outputs."""
    return {
        'heat_template_version': 'wallaby',
        'parameters': {'word': {'type': 'string', 'hidden': hidden}},
        'conditions': CONDITIONS,
        'resources': {
            'first': {'type': VALUE, 'properties': {'value': expression}, 'metadata': {'m': expression}},
            'second': {
                'type': 'OS::Heat::TestResource',
                'properties': {'value': {'list_join': ['', [onward]]}},
                'metadata': {'m': {'get_attr': ['first', 'value']}},
            },
        },
        'outputs': {
            'direct': {'value': expression},
            'first': {'value': {'get_attr': ['first', 'value']}},
            'all': {'value': {'get_attr': ['second']}},
            'asked': {'value': 'public', 'condition': 'asked'},
        },
    }


@dataclass(frozen=True)
class TellerProperties:
    """One of them is given something hidden."""

    secret: str = prop('')
    name: str = prop('')


@dataclass(frozen=True)
class TellerAttributes:
    """Two of them say what they are made of."""

    digest: str = attr(of=('secret',))
    place: str = attr(of=('name',))
    anything: str = attr()


class Teller(ResourceType[TellerProperties]):
    """Has attributes."""

    Properties = TellerProperties
    Attributes = TellerAttributes


class Asker:
    """Makes a stack and asks everything about it."""

    def __init__(self, harness: Any) -> None:
        self.harness = harness
        self.names = 0

    def told(self, source: dict[str, Any], word: str, observed_at: dict[str, Any]) -> list[str]:
        """Everything that is answered, without ids and times.

        :param observed_at: a template for previews.
        """
        harness, context, told = self.harness, self.harness.context, []
        self.names += 1

        def ask(operation: Any, *arguments: Any, **more: Any) -> Any:
            try:
                answer = operation(context, *arguments, **more)
            except errors.ConvergenceError as error:
                answer = f'{type(error).__name__}: {error}'
            told.append(json.dumps(answer, default=str, sort_keys=True))
            return answer

        values = {'parameters': {'word': word}}
        reads = StackReads(harness.reader, harness.compiler)
        resources = ResourceReads(harness.reader, harness.compiler)
        previews = Previews(harness.reader, harness.registry, harness.stacks)
        ask(previews.preview_stack, f's{self.names:04}', source, values)
        identity = ask(harness.stacks.create_stack, f's{self.names:04}', source, values)
        if isinstance(identity, dict):
            harness.run()
            ask(reads.show_stack, identity)
            ask(reads.get_environment, identity)
            for key in ('direct', 'first', 'all', 'asked'):
                ask(reads.show_output, identity, key)
            ask(resources.list_stack_resources, identity, with_detail=True)
            for name in ('first', 'second'):
                ask(resources.describe_stack_resource, identity, name, ['value', 'output'])
            ask(resources.list_events, identity)
            ask(ExplainReads(harness.reader, harness.compiler).stack_explain, identity)
            ask(HistoryReads(harness.reader, harness.compiler, harness.ports.observations).stack_graph, identity)
            ask(harness.abandonment.export_stack, identity)
            ask(previews.preview_update_stack, identity, observed_at, args={'existing': True})
            ask(harness.stacks.update_stack, identity, observed_at, args={'existing': True})
            harness.run()
            ask(reads.show_stack, identity)
            ask(resources.list_stack_resources, identity, with_detail=True)
            ask(harness.stacks.delete_stack, identity)
            harness.run()
            ask(resources.list_events, identity)
        return [
            re.sub(r's\d{4}|\d{8,}|\d{4}-\d\d-\d\dT[\d:.]+Z?|-?\d+\.\d+|-[a-z0-9]{12}\b', '#', text) for text in told
        ]


@SAME
@given(expression=expressions, onward=st.sampled_from(sorted(WRAPS)))
@example(expression=WRAPS['characters'](HIDDEN), onward='digest')
@example(expression=WRAPS['split'](HIDDEN), onward='join list')
@example(expression=WRAPS['left out'](HIDDEN), onward='in a list')
@example(expression=WRAPS['named'](WRAPS['digest'](HIDDEN)), onward='in a map')
@example(expression=WRAPS['collide'](HIDDEN), onward='digest')
@example(expression=WRAPS['file'](HIDDEN), onward='digest')
@example(expression=WRAPS['in a map'](WRAPS['in a list'](WRAPS['part'](HIDDEN))), onward='digest')
def test_no_answer_depends_on_a_hidden_value(harness, expression, onward):
    source = document(expression, WRAPS[onward]({'get_attr': ['first', 'value']}))
    # Somebody else looks at the value with a template that does not call it hidden, and goes on with what is there.
    spying = document(WRAPS['in a map'](WRAPS[onward](expression)), {'get_attr': ['first', 'value']}, hidden=False)
    asker = Asker(harness)
    one, other = (asker.told(source, word, spying) for word in WORDS)
    assert one == other


@pytest.mark.parametrize('word', WORDS)
def test_nothing_of_a_hidden_value_is_previewed_with_a_template_of_somebody_else(harness, word):
    source = document(HIDDEN, 'x')
    identity = harness.stacks.create_stack(harness.context, 's', source, {'parameters': {'word': word}})
    harness.run()
    spying = document(WRAPS['characters'](HIDDEN), 'x', hidden=False)
    previews = Previews(harness.reader, harness.registry, harness.stacks)
    lists = previews.preview_update_stack(harness.context, identity, spying, args={'existing': True})
    (found,) = [entry for entry in lists['updated'] if entry['resource_name'] == 'first']
    assert found['properties'] == {'value': MASK}
    assert found['property_changes'][0] | {'needs_new_object': None} == {
        'property': 'value',
        'before': MASK,
        'after': MASK,
        'needs_new_object': None,
    }


def compiled(source: dict[str, Any], **more: Any) -> template.Compiled:
    installation = template.Installation(secret_policy=DeclaredSecrets(Registry.builtin()), **more)
    return template.compile(source, identity=IDENTITY, parameters={'word': WORDS[0]}, installation=installation)


@pytest.mark.parametrize('name', sorted(set(WRAPS) - {*FAILING, 'join list', 'repeat list'}))
def test_the_outermost_call_around_a_hidden_value_is_hidden_and_nothing_else(name):
    source = document({'hidden': WRAPS[name](HIDDEN), 'open': 'seen'}, 'x')
    definition = compiled(source).goal.definitions['first']
    paths = definition.hidden
    assert all(path[:3] in (('properties', 'value', 'hidden'), ('metadata', 'm', 'hidden')) for path in paths)
    assert {path[0] for path in paths} == {'properties', 'metadata'}
    shown = masked_at({'value': {'hidden': {'public': 'p', 'k': 'v'}, 'open': 'seen'}}, [path[1:] for path in paths])
    assert shown['value']['open'] == 'seen'


def test_the_other_dialect_is_no_way_around():
    found = template.compile(
        {
            'HeatTemplateFormatVersion': '2012-12-12',
            'Parameters': {'word': {'Type': 'String', 'NoEcho': 'true'}},
            'Resources': {
                'a': {
                    'Type': VALUE,
                    'Properties': {
                        'value': [
                            {'Fn::Base64': {'Ref': 'word'}},
                            {'Fn::Join': ['', ['a', {'Ref': 'word'}]]},
                            {'Fn::Select': ['0', {'Fn::Split': [',', {'Ref': 'word'}]}]},
                            'seen',
                        ]
                    },
                }
            },
            'Outputs': {'o': {'Value': {'Fn::GetAtt': ['a', 'value']}}, 'p': {'Value': {'Ref': 'word'}}},
        },
        identity=IDENTITY,
        parameters={'word': WORDS[0]},
    )
    assert found.goal.definitions['a'].hidden == tuple(('properties', 'value', index) for index in range(3))
    assert found.outputs['p'].hidden == ((),)


def test_what_is_hidden_goes_on_through_attributes_that_tell_of_it_only():
    def reads(name, attribute):
        return {'type': VALUE, 'properties': {'value': {'x': {'get_attr': [name, attribute]}, 'y': 'seen'}}}

    source = {
        'heat_template_version': 'wallaby',
        'parameters': {'word': {'type': 'string', 'hidden': True}},
        'resources': {
            'one': {'type': 'Test::Teller', 'properties': {'secret': HIDDEN, 'name': 'n'}},
            'digest': reads('one', 'digest'),
            'again': reads('digest', 'value'),
            'place': reads('one', 'place'),
            'any': reads('one', 'anything'),
            'whole': {'type': VALUE, 'properties': {'value': 'x'}, 'metadata': {'all': {'get_attr': ['one']}}},
            'id': {'type': VALUE, 'properties': {'value': {'get_resource': 'one'}}},
        },
    }
    installation = template.Installation(
        secret_policy=DeclaredSecrets(Registry.builtin(more={'Test::Teller': Teller()}))
    )
    found = template.compile(source, identity=IDENTITY, parameters={'word': WORDS[0]}, installation=installation)
    goal = found.goal.definitions
    assert goal['digest'].hidden == goal['again'].hidden == goal['any'].hidden == (('properties', 'value', 'x'),)
    assert goal['place'].hidden == goal['id'].hidden == ()
    assert goal['whole'].hidden == (('metadata', 'all'),)


def test_a_definition_keeps_its_hidden_places_and_is_the_same_without():
    definition = compiled(document(WRAPS['in a list'](HIDDEN), 'x')).goal.definitions['first']
    again = type(definition).from_document(json.loads(json.dumps(definition.document())))
    assert again.hidden == definition.hidden == (('metadata', 'm', 1), ('properties', 'value', 1))
    assert again == type(definition).from_document({**definition.document(), 'hidden': []})


@pytest.mark.parametrize('name', FAILING)
def test_an_error_about_a_hidden_value_does_not_tell_it(name):
    with pytest.raises(errors.StackValidationFailed) as caught:
        compiled(document(WRAPS[name](HIDDEN), 'x'))
    assert 'hidden' in str(caught.value)
    assert not any(part in str(caught.value) for part in WORDS[0].split(','))


def test_no_object_is_known_by_a_hidden_id():
    source = document('x', 'x')
    source['resources']['first']['external_id'] = WRAPS['part'](HIDDEN)
    with pytest.raises(errors.StackValidationFailed, match='ids of objects are shown'):
        compiled(source)


def test_what_a_type_keeps_secret_is_shown_by_an_output_alone(harness):
    source = {
        'heat_template_version': 'wallaby',
        'resources': {
            'drawn': {'type': 'OS::Heat::RandomString'},
            'reads': {'type': VALUE, 'properties': {'value': WRAPS['digest']({'get_attr': ['drawn', 'value']})}},
            'refers': {'type': VALUE, 'properties': {'value': {'get_resource': 'drawn'}}},
        },
        'outputs': {'word': {'value': {'get_attr': ['drawn', 'value']}}},
    }
    identity = harness.stacks.create_stack(harness.context, 's', source)
    harness.run()
    reads, resources = (kind(harness.reader, harness.compiler) for kind in (StackReads, ResourceReads))
    word = reads.show_output(harness.context, identity, 'word')['output_value']
    assert len(word) == 32
    for name in ('drawn', 'reads', 'refers'):
        shown = resources.describe_stack_resource(harness.context, identity, name, ['value'])
        assert shown['attributes']['value'] == MASK
    previews = Previews(harness.reader, harness.registry, harness.stacks)
    lists = previews.preview_update_stack(harness.context, identity, source)
    assert [entry['properties'] for entry in lists['unchanged'] if entry['resource_name'] != 'drawn'] == [
        {'value': MASK},
        {'value': MASK},
    ]


def test_what_a_row_still_holds_of_a_hidden_value_is_not_shown_by_a_goal_that_hides_nothing(harness):
    identity = harness.stacks.create_stack(
        harness.context, 's', document(WRAPS['digest'](HIDDEN), 'x'), {'parameters': {'word': WORDS[0]}}
    )
    harness.run()
    harness.stacks.update_stack(
        harness.context, identity, document('open', 'x'), {'parameters': {'word': 'another'}}
    )  # accepted, and nobody has begun with it
    reads = StackReads(harness.reader, harness.compiler)
    assert reads.show_output(harness.context, identity, 'first')['output_value'] == MASK
    harness.run()
    assert reads.show_output(harness.context, identity, 'first')['output_value'] == 'open'


def test_a_value_that_is_given_again_is_as_hidden_as_the_template_says(harness):
    source = document(HIDDEN, 'x')
    identity = harness.stacks.create_stack(harness.context, 's', source, {'parameters': {'word': WORDS[0]}})
    harness.run()
    open_source = document(HIDDEN, 'x', hidden=False)
    harness.stacks.update_stack(
        harness.context, identity, open_source, {'parameters': {'word': 'open word'}}, args={'existing': True}
    )
    harness.run()
    reads = StackReads(harness.reader, harness.compiler)
    assert reads.show_output(harness.context, identity, 'direct')['output_value'] == 'open word'
