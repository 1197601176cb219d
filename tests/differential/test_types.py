"""Our own resource types declare what those of the reference engine declare, but for what is known and told on a page."""

import pytest

from convergence.errors import EntityNotFound
from convergence.resources.registry import Registry
from tests.differential.compare import declared_here, declared_there, differing, places
from tests.differential.known import KNOWN, PAGE, require_reference

NAMESPACES = ('OS::Heat::', 'AWS::CloudFormation::', 'AWS::AutoScaling::')
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


def test_every_difference_of_a_type_stands_on_the_page():
    assert {each['title'] for each in KNOWN['types'] if f'{each["title"]}\n' not in PAGE} == set()


def test_what_is_said_of_our_types_is_so():
    told = {name: places(declared) for name, declared in declared_here().items()}
    assert {(name, at): told[name].get(at) for name, at in TOLD} == {place: here for place, (here, _) in TOLD.items()}
