"""A template that is right with the classes of Heat is right with these types, and says the same there."""

from __future__ import annotations

import json
from pathlib import Path

import convergence_heat
import convergence_openstack
import pytest
from convergence_openstack.writing import document

DEPARTURES: dict[str, str] = {}
"""Places in which the two differ on purpose, each with the reason. Beginnings of ``type: path``."""

SAID = frozenset({'type', 'required', 'default', 'update_allowed', 'immutable', 'constraints', 'nullable', 'schema'})
"""What of a property is compared; texts are each package's own."""


def entries(package):
    """What a package says of its types."""
    return json.loads(Path(package.__file__).with_name(package.FILE).read_text(encoding='utf-8'))['types']


OURS, THEIRS = entries(convergence_openstack), entries(convergence_heat)


def constraint(told):
    """A constraint without its text."""
    return {key: value for key, value in told.items() if key != 'description'}


def declared(properties):
    """Properties without texts, down to the innermost."""
    said = {}
    for name, entry in properties.items():
        one = {key: value for key, value in entry.items() if key in SAID and value not in (None, False, [], {})}
        one['constraints'] = [constraint(each) for each in entry.get('constraints') or ()]
        # A value of any form is one of which nothing is said.
        inner = entry.get('schema') or {}
        one['schema'] = {} if {each['type'] for each in inner.values()} == {'any'} else declared(inner)
        one['support'] = (entry.get('support_status') or {}).get('status', 'SUPPORTED')
        if 'default' in entry:
            one['default'] = entry['default']
        said[name] = one
    return said


def attributes(entry):
    """Attributes with what is of consequence to whoever reads them."""
    return {
        name: {key: each.get(key) for key in ('type', 'of', 'dear', 'live', 'secret')}
        for name, each in entry['attributes'].items()
    }


def differences(ours, theirs, place):
    """The places in which two values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key), theirs.get(key), f'{place}.{key}')
    elif ours != theirs and not any(place.startswith(each) for each in DEPARTURES):
        yield f'{place}: {ours!r} in place of {theirs!r}'


@pytest.mark.parametrize('name', sorted(OURS))
def test_properties_and_attributes_are_those_of_heat(name):
    ours, theirs = OURS[name], THEIRS[name]
    found = [
        *differences(declared(ours['properties']), declared(theirs['properties']), f'{name}: properties'),
        *differences(attributes(ours), attributes(theirs), f'{name}: attributes'),
        *differences(ours.get('rules', []), theirs.get('rules', []), f'{name}: rules'),
        *differences(ours.get('retry'), theirs.get('retry'), f'{name}: retry'),
        *differences(
            ours.get('delete_before_create', False),
            theirs.get('delete_before_create', False),
            f'{name}: delete_before_create',
        ),
        *differences(ours.get('reference_of'), theirs.get('reference_of'), f'{name}: reference_of'),
    ]
    assert found == []


@pytest.mark.parametrize('name', sorted(OURS))
def test_what_can_be_done_with_a_resource_of_heat_can_be_done_here(name):
    """But for what both packages share, and what the contract does by itself."""
    offered = convergence_openstack.manifest().types()[name]
    theirs = convergence_heat.manifest().types()[name]
    own = {*OURS[name]['methods'], 'implied', 'notified', 'reference_id', 'check'}
    assert set(THEIRS[name]['methods']) - own == set()
    for hook in ('implied', 'plan', 'validate', 'release_for_replacement', 'notified', 'observe'):
        assert offered.implements(hook) >= theirs.implements(hook), hook
    assert offered.implements('find') or offered.token_enforced


def test_no_departure_is_listed_that_is_none():
    everything = [
        line
        for name in OURS
        for line in (
            *_all(declared(OURS[name]['properties']), declared(THEIRS[name]['properties']), f'{name}: properties'),
            *_all(attributes(OURS[name]), attributes(THEIRS[name]), f'{name}: attributes'),
        )
    ]
    assert [place for place in DEPARTURES if not any(line.startswith(place) for line in everything)] == []


def _all(ours, theirs, place):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from _all(ours.get(key), theirs.get(key), f'{place}.{key}')
    elif ours != theirs:
        yield place


def test_texts_are_not_those_of_heat():
    def texts(value):
        if isinstance(value, dict):
            told = value.get('description')
            return {told if isinstance(told, str) else '', *(each for inner in value.values() for each in texts(inner))}
        return set()

    shared = texts(OURS) & texts({name: THEIRS[name] for name in OURS})
    assert {each for each in shared if len(each.split()) > 4} == set()


def test_the_manifest_says_what_the_types_say():
    assert document()['types'] == OURS, 'write it anew: python -m convergence_openstack.writing'
