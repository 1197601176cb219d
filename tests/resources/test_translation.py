"""Old names of properties go on to work, and the code of a type knows only the new ones."""

# ruff: noqa: RUF009 - prop() makes a dataclass field, like field()
from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest

from convergence.core.model import Change
from convergence.errors import StackValidationFailed
from convergence.resources.comparison import compare
from convergence.resources.contract import ResourceType
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.translation import Append, Drop, Rename, Rewrite, translated
from convergence.template import UNKNOWN


@dataclass(frozen=True)
class Port:
    network: str = prop()


@dataclass(frozen=True)
class ServerProperties:
    TRANSLATIONS = (
        Rename(('flavour',), 'flavor'),
        Rename(('ports', 'net_id'), 'network'),
        Append(('group',), 'groups'),
        Drop(('legacy_flag',)),
        Rewrite(('state',), lambda value: value.lower() if isinstance(value, str) else value),
    )

    flavor: str = prop()
    ports: list[Port] = prop([])
    groups: list[str] = prop([], update_allowed=True)
    state: str = prop('on')


class Server(ResourceType[ServerProperties]):
    Properties = ServerProperties


SCHEMA = PropertySchema.of(ServerProperties)
OLD = {
    'flavour': 'small',
    'ports': [{'net_id': 'a'}, {'network': 'b'}],
    'group': 'web',
    'legacy_flag': 1,
    'state': 'ON',
}
NEW = {'flavor': 'small', 'ports': [{'network': 'a'}, {'network': 'b'}], 'groups': ['web'], 'state': 'on'}


def test_old_and_new_names_mean_the_same():
    before = copy.deepcopy(OLD)
    assert SCHEMA.parse(OLD) == SCHEMA.parse(NEW)
    assert before == OLD
    assert SCHEMA.check(OLD, lambda *path: None) == []


def test_going_over_to_the_new_names_changes_nothing():
    assert SCHEMA.changed(OLD, NEW) == frozenset()
    assert compare(Server(), OLD, NEW, lambda: None) is Change.NONE
    assert SCHEMA.changed(OLD, {**NEW, 'groups': ['db']}) == {'groups'}


def test_what_is_not_known_yet_stays_so():
    assert SCHEMA.check({'flavour': UNKNOWN, 'ports': UNKNOWN, 'group': UNKNOWN, 'state': UNKNOWN}, None) == []
    assert translated(ServerProperties.TRANSLATIONS, {'flavour': UNKNOWN})[0] == {'flavor': UNKNOWN}


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'flavour': 'a', 'flavor': 'b'}, 'Property flavour: flavour is the old name of flavor; give only one'),
        (
            {'flavor': 'a', 'ports': [{'net_id': 'a', 'network': 'b'}]},
            'Property ports.0.net_id: net_id is the old name of network',
        ),
        ({'flavor': 'a', 'group': 'x', 'groups': 'y'}, 'Property group: group is added to groups, which is no list'),
    ],
)
def test_both_names_at_once_are_a_problem(given, message):
    with pytest.raises(StackValidationFailed) as caught:
        SCHEMA.parse(given)
    assert caught.value.problems[0].message.startswith(message)


@pytest.mark.parametrize('given', [{'flavour': None, 'flavor': 'a'}, {'flavor': 'a', 'group': None}])
def test_an_old_name_without_a_value_says_nothing(given):
    assert SCHEMA.parse(given).flavor == 'a'
    assert SCHEMA.parse(given).groups == []


def test_an_old_name_is_added_to_what_is_there():
    assert SCHEMA.parse({'flavor': 'a', 'groups': ['x'], 'group': 'y'}).groups == ['x', 'y']


def test_a_wrong_shape_on_the_way_is_left_to_the_schema():
    with pytest.raises(StackValidationFailed, match='Property ports: the value must be a list'):
        SCHEMA.parse({'flavor': 'a', 'ports': 'x'})
