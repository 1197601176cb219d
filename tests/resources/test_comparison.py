from __future__ import annotations

from dataclasses import dataclass

import pytest

from convergence.core.model import Change
from convergence.errors import NotSupported
from convergence.resources.comparison import changed_properties, compare
from convergence.resources.contract import ResourceType
from convergence.resources.schema import prop
from tests.resources.calls import Row


@dataclass(frozen=True)
class Properties:
    size: int = prop(1, update_allowed=True)
    image: str = prop('linux')
    zone: str = prop('a', immutable=True)


class Volume(ResourceType[Properties]):
    """Cannot shrink in place."""

    Properties = Properties

    def needs_replacement(self, call):
        return call.properties.size < call.previous.size


@pytest.mark.parametrize(
    ('previous', 'desired', 'change'),
    [
        ({}, {}, Change.NONE),
        ({}, {'size': '1', 'image': 'linux'}, Change.NONE),
        ({'size': 1}, {'size': 2}, Change.IN_PLACE),
        ({'size': 2}, {'size': 1}, Change.REPLACE),
        ({'size': 1}, {'size': 2, 'image': 'bsd'}, Change.REPLACE),
        ({'image': 'bsd'}, {}, Change.REPLACE),
    ],
)
def test_the_schema_decides_and_then_the_type(previous, desired, change):
    row = Row(Volume(), desired)
    assert compare(row.kind, previous, desired, lambda: row.call(previous)) is change


def test_the_type_is_not_asked_when_the_schema_has_decided():
    def nobody():
        raise AssertionError('asked')

    assert compare(Volume(), {'image': 'a'}, {'image': 'b', 'size': 0}, nobody) is Change.REPLACE
    assert compare(Volume(), {'image': 'a'}, {'image': 'a'}, nobody) is Change.NONE


def test_an_immutable_property_cannot_change():
    with pytest.raises(NotSupported, match='zone'):
        compare(Volume(), {}, {'zone': 'b'}, lambda: None)


def test_previous_properties_of_an_older_schema_are_read_as_well_as_possible():
    row = Row(Volume(), {'size': 3})
    previous = {'size': 'huge', 'gone': True}
    assert row.call(previous).previous == Properties()
    assert compare(row.kind, previous, row.properties, lambda: row.call(previous)) is Change.IN_PLACE


class ByName(Volume):
    """Images have names and ids."""

    def canonical(self, properties, data):
        """As far as they are known."""
        return {**properties, 'image': data.get('ids', {}).get(properties['image'], properties['image'])}


@pytest.mark.parametrize(
    ('before', 'after', 'change'),
    [
        ('cirros', 'id-1', Change.NONE),
        ('id-1', 'cirros', Change.NONE),
        ('cirros', 'id-2', Change.REPLACE),
        ('cirros', 'debian', Change.REPLACE),
    ],
)
def test_a_name_in_place_of_its_id_is_no_change(before, after, change):
    known = {'ids': {'cirros': 'id-1'}}
    found = compare(ByName(), {'image': before}, {'image': after}, lambda: pytest.fail('nobody is asked'), known)
    assert found is change
    assert changed_properties(ByName(), {'image': before}, {'image': after}, known) == (
        frozenset() if change is Change.NONE else {'image'}
    )
