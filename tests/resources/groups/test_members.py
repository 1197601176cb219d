"""What a group makes of its members: a template, and parameters for what must not stand in it."""

from __future__ import annotations

import json

from convergence.resources.builtin.groups.members import (
    GroupMember,
    first_numbers,
    indexed,
    member,
    nested_template,
    output_of,
    present_members,
)
from convergence.resources.nesting import NestingContext
from convergence.template import BARE, StackIdentity, analyse

SECRET = 'opensesame'


def again(wanted):
    """What a group sees of the stack that it has made before."""
    return NestingContext(present=wanted.template, present_parameters=wanted.parameters)


def compiled(wanted):
    return analyse(
        wanted.template,
        identity=StackIdentity('', 'g', ''),
        environment={'parameters': dict(wanted.parameters)},
        installation=BARE,
    )


def test_hidden_values_are_hidden_parameters_and_each_stands_once():
    masked_paths = [('properties', 'password'), ('properties', 'users', 1, 'key'), ('metadata', 'cloud')]
    members = {
        name: member(
            'Some::Type',
            {'name': name, 'password': SECRET, 'users': [{'key': 'plain'}, {'key': SECRET}], 'absent': None},
            {'cloud': {'key': SECRET}},
            masked_paths=masked_paths,
        )
        for name in '01'
    }
    wanted = nested_template(members)
    assert SECRET not in json.dumps(wanted.template)
    assert wanted.hidden == set(wanted.parameters)
    assert len(wanted.parameters) == 2
    definitions = compiled(wanted).goal.definitions
    assert definitions['1'].properties == members['1'].body['properties']
    assert definitions['1'].metadata == {'cloud': {'key': SECRET}}
    assert set(definitions['1'].hidden) == set(masked_paths)
    assert present_members(again(wanted)) == {
        name: GroupMember(each.body, (*masked_paths[:2], ('metadata', 'cloud'))) for name, each in members.items()
    }


def test_what_looks_like_a_function_stays_data():
    properties = {
        'config': {'get_file': '/etc/shadow'},
        'aws': [{'Ref': 'x'}, {'Fn::Join': ['', []]}],
        'param': {'get_param': 'value_0'},
        'fine': {'key': {'get_attr': 'x', 'and': 'more'}},
    }
    wanted = nested_template({'a': member('Some::Type', properties)}, {'removed': ['b']})
    assert compiled(wanted).goal.definitions['a'].properties == properties
    assert present_members(again(wanted))['a'].body['properties'] == properties
    assert output_of(again(wanted), 'removed') == ['b']
    assert not wanted.hidden


def test_a_whole_section_that_is_hidden_is_hidden_value_by_value():
    wanted = nested_template({'a': member('Some::Type', {'one': 1, 'two': SECRET}, masked_paths=[('properties',)])})
    assert compiled(wanted).goal.definitions['a'].properties == {'one': 1, 'two': SECRET}
    assert len(wanted.hidden) == 2


def test_an_index_goes_into_texts_only():
    value = {'name-%i%': ['%i%.%i%', 7, {'x': '%i%', 'y': None}]}
    assert indexed(value, '%i%', '12') == {'name-%i%': ['12.12', 7, {'x': '12', 'y': None}]}
    assert first_numbers(3, {'1', '0'}) == ['2', '3', '4']
