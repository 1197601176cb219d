"""A plugin in the field's established style, carried unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import pytest

from convergence.core.model import Action, Change
from convergence.errors import StackValidationFailed
from convergence.resources.adapter import adapt
from convergence.resources.attributes import attribute_names
from convergence.resources.comparison import compare
from convergence.resources.contract import Done, FinalFailure, InProgress, ObjectNotFound, OutcomeUnknown
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.resources.translation import Rename
from convergence.testing import Fixture, Recovery, conformance
from tests.resources.calls import Row


class VolumeNotFound(Exception):
    """What the client of a service raises."""


class Service:
    """The outside world."""

    def __init__(self):
        self.volumes = {}
        self.events = []

    def create(self, size):
        volume_id = f'volume-{len(self.volumes) + len(self.events)}'
        self.volumes[volume_id] = {'size': size, 'rounds': 0}
        self.events.append('create')
        return volume_id

    def get(self, volume_id):
        if volume_id not in self.volumes:
            raise VolumeNotFound(f'no volume {volume_id}')
        return self.volumes[volume_id]


SERVICE = Service()


class Volume:
    """A volume that takes three rounds to become available."""

    properties_schema = {  # noqa: RUF012 - the established style
        'size': {'type': 'Integer', 'required': True, 'update_allowed': True, 'constraints': [{'range': {'min': 1}}]},
        'type': {'type': 'String', 'default': 'disk', 'description': 'Kind of volume.'},
        'metadata': {'type': 'Map', 'update_allowed': True},
        'hosts': {'type': 'List', 'schema': {'type': 'Map', 'schema': {'from': {'type': 'String'}}}},
    }
    attributes_schema = {'size': {'description': 'Present size.', 'type': 'Integer'}}  # noqa: RUF012

    def handle_create(self):
        self.resource_id_set(SERVICE.create(self.properties['size']))
        self.data_set('origin', self.physical_resource_name())
        return {'rounds': 0}

    def check_create_complete(self, progress):
        progress['rounds'] += 1
        return progress['rounds'] == 3

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        SERVICE.events.append(('update', prop_diff, dict(json_snippet.properties(self.properties_schema))))
        if 'size' in prop_diff:
            SERVICE.get(self.resource_id)['size'] = prop_diff['size']

    def handle_delete(self):
        if self.resource_id is not None:
            SERVICE.get(self.resource_id)
            del SERVICE.volumes[self.resource_id]

    def handle_create_cancel(self, progress):
        SERVICE.events.append(('cancel', progress))

    def _resolve_attribute(self, name):
        return SERVICE.get(self.resource_id)[name]

    def needs_replace_failed(self):
        return self.resource_id not in SERVICE.volumes


@pytest.fixture(autouse=True)
def service():
    SERVICE.__init__()
    return SERVICE


def test_progress_travels_as_json_between_workers(service):
    row, answers = Row(adapt(Volume), {'size': '5'}), []
    answer = row.store(row.kind.create(row.call()))
    while isinstance(answer, InProgress):
        answers.append(json.loads(json.dumps(answer.progress)))
        row.kind = adapt(Volume)
        answer = row.store(row.kind.poll(row.call(), Action.CREATE, answers[-1]))
    assert [progress['cookie'] for progress in answers] == [{'rounds': 1}, {'rounds': 2}]
    assert isinstance(answer, Done)
    assert service.volumes == {row.subject.physical_id: {'size': 5, 'rounds': 0}}
    assert str(row.subject.data['origin']).startswith('stack-thing-')
    assert row.attribute('size') == 5
    assert row.kind.reference_id(row.call()) == row.subject.physical_id


FIXTURE = Fixture(
    lambda: adapt(Volume),
    {'size': 1},
    changed={'size': 2, 'metadata': {'a': 1}},
    replaced={'size': 1, 'type': 'tape'},
    wrong=[{'size': 0}, {'size': 1, 'hosts': [{'to': 'x'}]}],
    recovery=Recovery.NONE,
    leftovers=lambda: SERVICE.volumes,
    wait=lambda seconds: None,
)


@pytest.mark.parametrize('case', conformance(FIXTURE), ids=str)
def test_it_conforms(case):
    case.run()


def test_an_update_is_told_what_has_changed(service):
    row = Row(adapt(Volume), {'size': 2, 'hosts': [{'from': 'a'}]})
    row.subject = replace(row.subject, physical_id=service.create(1))
    row.kind.update(row.call({'size': 1, 'hosts': [{'from': 'a'}]}))
    name, changes, wanted = service.events[-1]
    assert (name, changes) == ('update', {'size': 2})
    assert wanted['type'] == 'disk'


def test_the_schema_is_enforced_and_described():
    with pytest.raises(StackValidationFailed, match='size'):
        Row(adapt(Volume), {'size': 'big'}).call()
    described = Registry({'Example::Volume': adapt(Volume)}).describe('Example::Volume')
    assert described['properties']['size']['constraints'] == [{'range': {'min': 1}}]
    assert described['attributes'] == {'size': {'type': 'integer', 'description': 'Present size.'}}
    assert described['description'].startswith('A volume that takes three rounds')
    assert attribute_names(adapt(Volume)) == ('size',)


def test_not_found_in_a_delete_means_it_is_gone(service):
    row = Row(adapt(Volume), {'size': 1})
    row.subject = replace(row.subject, physical_id='volume-lost')
    with pytest.raises(ObjectNotFound):
        row.kind.delete(row.call())
    assert row.kind.observe(row.call()).healthy is False


def test_an_id_that_was_set_before_the_failure_is_not_lost(service):
    class Failing(Volume):
        def handle_create(self):
            self.resource_id_set('volume-7')
            raise RuntimeError('quota exceeded')

    row = Row(adapt(Failing), {'size': 1})
    with pytest.raises(OutcomeUnknown, match='RuntimeError: quota exceeded') as caught:
        row.kind.create(row.call())
    assert caught.value.physical_id == 'volume-7'


def test_what_cannot_travel_is_refused_with_advice(service):
    class Stateful(Volume):
        def handle_create(self):
            self.resource_id_set('volume-8')
            return object()

        def check_create_complete(self, progress):
            return False

    row = Row(adapt(Stateful), {'size': 1})
    with pytest.raises(FinalFailure, match='handle_create returned cannot be carried') as caught:
        row.kind.create(row.call())
    assert caught.value.physical_id == 'volume-8'


def test_a_cancel_reaches_the_plugin_with_its_progress(service):
    row = Row(adapt(Volume), {'size': 1})
    answer = row.store(row.kind.create(row.call()))
    row.kind.cancel(row.call(), Action.CREATE, answer.progress)
    row.kind.cancel(row.call(), Action.UPDATE, answer.progress)
    assert service.events[-1] == ('cancel', {'rounds': 1})


def test_what_a_plugin_does_not_write_has_a_default():
    class Empty:
        """Nothing at all."""

    row = Row(adapt(Empty), {})
    for begin in (row.kind.create, row.kind.delete):
        assert begin(row.call()) == Done()
    assert row.kind.update(row.call({})) == Done()
    assert row.kind.observe(row.call()) is None
    assert row.kind.needs_replacement(row.call({})) is False


def test_replacement_asked_by_property_difference():
    class Shrinking(Volume):
        def needs_replace_with_prop_diff(self, changed, after, before):
            return 'size' in changed and after['size'] < before['size']

    for previous, desired, change in ((2, 1, Change.REPLACE), (1, 2, Change.IN_PLACE)):
        row = Row(adapt(Shrinking), {'size': desired})
        before = {'size': previous}
        assert compare(row.kind, before, row.properties, lambda row=row, before=before: row.call(before)) is change


class Server:
    """Has maps in lists in maps, with names that Python does not allow, and can be stopped only while it is made."""

    properties_schema = {  # noqa: RUF012
        'disks': {
            'type': 'List',
            'update_allowed': True,
            'schema': {
                'type': 'Map',
                'schema': {
                    'kind': {'type': 'String', 'default': 'ssd'},
                    'size-gb': {'type': 'Integer', 'required': True},
                    'from': {'type': 'Map', 'schema': {'image': {'type': 'String'}}},
                },
            },
        },
        'networks': {'type': 'Map', 'schema': {'*': {'type': 'Map', 'schema': {'class': {'type': 'String'}}}}},
    }

    def handle_create(self):
        self.resource_id_set(json.dumps(self.properties))
        first = self.properties['disks'][0]
        assert first['kind'] == first.get('kind') == 'ssd' and 'from' in first
        first['kind'] = 'changed by the plugin, for itself'

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        self.data_set('told', [prop_diff, json_snippet.properties()])

    def handle_create_cancel(self, progress):
        """Stops it."""


SERVER = {'disks': [{'size-gb': '5', 'from': {'image': 'i'}}], 'networks': {'lan': {'class': 'a'}}}
SERVER_AS_PLAIN = {
    'disks': [{'kind': 'ssd', 'size-gb': 5, 'from': {'image': 'i'}}],
    'networks': {'lan': {'class': 'a'}},
}


def test_nested_properties_are_plain_maps_and_lists_by_the_names_of_the_schema():
    row = Row(adapt(Server), SERVER)
    call = row.call()
    for _ in range(2):  # what a plugin does to its properties is not seen by the next call
        assert json.loads(row.kind.create(call).physical_id) == SERVER_AS_PLAIN
    larger = {**SERVER, 'disks': [{'size-gb': 6}]}
    row.properties = larger
    told = row.kind.update(row.call(SERVER)).data['told']
    disks = [{'kind': 'ssd', 'size-gb': 6, 'from': None}]
    assert told == [{'disks': disks}, {**SERVER_AS_PLAIN, 'disks': disks}]


def test_whether_an_action_can_be_stopped_depends_on_its_handler():
    kind = adapt(Server)
    assert kind.can_cancel(Action.CREATE)
    assert not kind.can_cancel(Action.UPDATE)
    assert not kind.can_cancel(Action.DELETE)


class Renamed:
    """A plugin with a past."""

    support_status: ClassVar = {'status': 'DEPRECATED', 'version': '2', 'previous_status': {'status': 'SUPPORTED'}}
    TRANSLATIONS = (Rename(('flavour',), 'flavor'),)
    properties_schema: ClassVar = {
        'flavor': {'type': 'string', 'required': True, 'constraints': [{'custom_constraint': 'dns_name'}]},
        'step': {'type': 'integer', 'default': 5, 'constraints': [{'modulo': {'step': 5, 'offset': 0}}]},
        'secret': {'type': 'string', 'support_status': {'status': 'HIDDEN'}},
    }


def test_support_and_old_names_are_those_of_the_plugin():
    kind = adapt(Renamed)
    described = Registry({'Example::Renamed': kind}).describe('Example::Renamed')
    assert described['support_status']['status'] == 'DEPRECATED'
    assert described['support_status']['previous_status']['status'] == 'SUPPORTED'
    assert list(described['properties']) == ['flavor', 'step']
    schema = PropertySchema.of(kind.Properties)
    assert schema.changed({'flavour': 'small'}, {'flavor': 'small'}) == frozenset()
    with pytest.raises(StackValidationFailed) as caught:
        schema.parse({'flavor': 'a_b', 'step': 7})
    assert len(caught.value.problems) == 2


def test_a_support_status_that_does_not_exist_leaves_the_type_out(caplog):
    odd = type('Odd', (Renamed,), {'support_status': {'status': 'GOOD'}})
    assert Registry({'Example::Odd': lambda: adapt(odd)}).names() == ()
    assert 'Example::Odd is unusable' in caplog.text
