"""What a version has stored is read by all later ones.

The documents here are frozen: they are in databases. A new field gets a default and a document of its own below; none
of those that are here already may be changed.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace

import pytest

from convergence.core.digest import digest
from convergence.core.model import Action, Definition, DeletionPolicy, Hook, Output, Restriction, RetryPolicy
from convergence.core.rows import Acceptance, Pending, with_accepted
from convergence.core.scaling import Scaling

DEFINITION = Definition(
    name='web',
    type='Test::Thing',
    properties={'port': 80, 'peer': {'$fn': ['get_attr', ['db', 'address']]}},
    metadata={'tier': 'front'},
    requires=('db', 'net'),
    deletion_policy=DeletionPolicy.RETAIN,
    uses={'db': ('address',)},
)
OUTPUT = Output('row-1', 'ref-1', {'address': [1, None, 'x'], '': {}}, {'key': 'it is not there'})
PENDING = Pending(DEFINITION, {'port': 80}, ('row-2', 'row-3'), 'template-1', 'f00d', {'tier': 'front'})

_DEFINITION = (
    '{"name": "web", "type": "Test::Thing",'
    ' "properties": {"port": 80, "peer": {"$fn": ["get_attr", ["db", "address"]]}}, "metadata": {"tier": "front"},'
    ' "requires": ["db", "net"], "deletion_policy": "Retain", "uses": {"db": ["address"]}}'
)
_PLAIN = (
    '{"name": "a", "type": "T", "properties": {}, "metadata": {}, "requires": [], "deletion_policy": "Delete",'
    ' "uses": {}}'
)

_OUTPUT = (
    '{"resource_id": "row-1", "reference": "ref-1", "attributes": {"address": [1, null, "x"], "": {}},'
    ' "errors": {"key": "it is not there"}}'
)
_PENDING = (
    f'{{"definition": {_DEFINITION}, "properties": {{"port": 80}}, "requires": ["row-2", "row-3"],'
    ' "template_id": "template-1", "digest": "f00d", "metadata": {"tier": "front"}}'
)
_PLAIN_PENDING = f'{{"definition": {_PLAIN}, "properties": {{}}, "requires": [], "template_id": null, "digest": "", "metadata": {{}}}}'

FROZEN = [
    (DEFINITION, _DEFINITION),
    (Definition('a', 'T'), _PLAIN),
    (Definition('a', 'T', description='why'), f'{_PLAIN[:-1]}, "description": "why"}}'),
    (OUTPUT, _OUTPUT),
    (Output('row-1'), '{"resource_id": "row-1", "reference": null}'),
    (PENDING, _PENDING),
    (Pending(Definition('a', 'T'), {}, (), None, ''), _PLAIN_PENDING),
]
"""Values, and what version 1 has stored for them."""


@pytest.mark.parametrize(('value', 'document'), FROZEN)
def test_what_was_stored_is_read(value, document):
    assert type(value).from_document(json.loads(document)) == value


@pytest.mark.parametrize(('value', 'document'), FROZEN)
def test_what_is_stored_is_what_was_stored(value, document):
    """A field that is added later must be left out at its default."""
    assert value.document() == json.loads(document)


@pytest.mark.parametrize(('value', 'document'), FROZEN)
def test_what_a_newer_version_has_added_is_ignored(value, document):
    assert type(value).from_document({**json.loads(document), 'colour': 'blue'}) == value


@pytest.mark.parametrize(('kind', 'needed'), [(Definition, {'name': 'a', 'type': 'T'}), (Output, {'resource_id': 'r'})])
def test_what_is_missing_has_its_default(kind, needed):
    assert kind.from_document(needed) == kind(**needed)
    assert {each.name for each in fields(kind) if each.default is each.default_factory is MISSING} == set(needed)


def test_of_an_action_in_flight_only_the_definition_is_needed():
    assert Pending.from_document({'definition': {'name': 'a', 'type': 'T'}}) == FROZEN[-1][0]


def test_the_digest_of_what_was_made_stays_the_same():
    """Another digest for the same thing would make every resource of every stack be looked at after an upgrade."""
    inputs = {'db': OUTPUT, 'net': Output('row-9')}
    assert digest(DEFINITION, inputs) == 'cc0a4489818173e6f96ae35f47774ef5f11690bba9a8089ff10f449b2035d043'
    assert digest(replace(DEFINITION, uses={}), inputs) != digest(DEFINITION, inputs)


def test_a_definition_with_everything_comes_back_as_it_was():
    full = replace(
        DEFINITION,
        written_type='web.yaml',
        hooks=(Hook.PRE_CREATE, Hook.POST_DELETE),
        restrictions=(Restriction.REPLACE,),
        time_limits={Action.CREATE: 30.0},
        retry=RetryPolicy(attempts=3, longest_s=9.0),
        update_policy={'rolling_update': {'max_batch_size': 2}},
        external_id='theirs',
        restored_from={'snapshot': 'S1'},
        nested='digest',
        description='in front',
        secrets=('hush',),
        hidden=(('properties', 'password'),),
        private=(('metadata', 0),),
        harmless=('told',),
        implied=('net',),
    )
    back = Definition.from_document(json.loads(json.dumps(full.document())))
    assert {field.name: getattr(back, field.name) for field in fields(Definition)} == {
        field.name: getattr(full, field.name) for field in fields(Definition)
    }
    assert back.masked_paths == (('properties', 'password'), ('metadata', 0))
    assert back.retry == RetryPolicy(3, None, 9.0)
    assert back.retry.over(RetryPolicy(7, 1.0, 2.0)) == RetryPolicy(3, 1.0, 9.0)


@pytest.mark.parametrize(
    'value',
    [Scaling('S', 'group', 2.0, 'change_in_capacity', 3, 5, 'up'), Acceptance({'port': 80, 'tag': None}, {'port': 81})],
)
def test_what_is_stored_comes_back(value):
    assert type(value).from_document(json.loads(json.dumps(value.document()))) == value


def test_what_was_accepted_counts_until_the_template_wants_something_else():
    accepted = Acceptance({'port': 80, 'tag': None}, {'port': 81, 'tag': 'x'})
    assert with_accepted(None, {'port': 80}) == ({'port': 80}, None)
    assert with_accepted(accepted, {'port': 80}) == ({'port': 81, 'tag': 'x'}, accepted)
    assert with_accepted(accepted, {'port': True, 'tag': None}) == (
        {'port': True, 'tag': 'x'},
        Acceptance({'tag': None}, {'tag': 'x'}),
    )
    assert with_accepted(accepted, {'port': 443, 'tag': 'y'}) == ({'port': 443, 'tag': 'y'}, None)
