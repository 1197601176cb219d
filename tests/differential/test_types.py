"""Our own resource types declare what those of the reference engine declare, but for what is known and told on a page."""

import json

import pytest

from convergence.errors import EntityNotFound
from convergence.resources.registry import Registry
from tests.differential.compare import declared_here, declared_there, differing, places, read_here, read_there
from tests.differential.known import KNOWN, PAGE, require_reference

NAMESPACES = ('OS::Heat::', 'AWS::CloudFormation::', 'AWS::AutoScaling::')
VALUES = [
    *(None, '', ' ', 'a', 'a,b', '0', '1', '-1', ' 1 ', '1.0', '1.5', '1e3', '0x10', '1_000', 'nan', 'inf'),
    *('true', 'True', 'TRUE', 'False', 'yes', 'on', 'off', 't', 'n', '[1, 2]', '["a"]', '{"a": 1}', '{}', '[]', 'null'),
    *(0, 1, -1, 2, 1.0, 1.5, True, False, [], [1], ['a'], [None], {}, {'a': 1}, {'a': None}),
]
TOLD = {(name, each['at']): (each['ours'], each['theirs']) for each in KNOWN['types'] for name in each['types']}


@pytest.fixture(scope='module')
def theirs():
    require_reference()
    return declared_there(*NAMESPACES)


def test_our_types_declare_what_those_of_the_reference_do(theirs):
    found = {
        (name, at): sides
        for name, here in declared_here().items()
        for at, sides in differing(here, theirs[name]).items()
    }
    assert {place: sides for place, sides in found.items() if TOLD.get(place) != sides} == {}
    assert TOLD.keys() - found.keys() == set(), 'these do not differ any more'


def test_there_are_no_other_types_in_these_namespaces_but_refused_ones(theirs):
    ours = declared_here()
    assert theirs.keys() - ours.keys() == KNOWN['refused_types'].keys()
    assert ours.keys() <= theirs.keys()


@pytest.mark.parametrize(('name', 'reason'), KNOWN['refused_types'].items())
def test_who_uses_a_type_that_is_not_here_is_told_why(name, reason):
    with pytest.raises(EntityNotFound, match=reason):
        Registry.builtin().get(name)


def test_properties_read_values_as_those_of_the_reference_do():
    require_reference()
    us, them = read_here(VALUES), read_there(VALUES)
    found = [
        {'kind': kind, 'value': value, 'ours': ours, 'theirs': theirs}
        for kind in them
        for value, ours, theirs in zip(VALUES, us[kind], them[kind], strict=True)
        if json.dumps(ours) != json.dumps(theirs)
    ]
    assert found == [{key: each[key] for key in ('kind', 'value', 'ours', 'theirs')} for each in KNOWN['values']]


def test_what_is_said_of_our_properties_is_so():
    told = [json.dumps([each['ours']]) for each in KNOWN['values']]
    assert [json.dumps(read_here([each['value']])[each['kind']]) for each in KNOWN['values']] == told


def test_every_difference_of_a_type_stands_on_the_page():
    assert {each['title'] for each in (*KNOWN['types'], *KNOWN['values']) if f'{each["title"]}\n' not in PAGE} == set()


def test_what_is_said_of_our_types_is_so():
    told = {name: places(declared) for name, declared in declared_here().items()}
    assert {(name, at): told[name].get(at) for name, at in TOLD} == {place: here for place, (here, _) in TOLD.items()}
