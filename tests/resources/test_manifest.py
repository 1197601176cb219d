"""Types that are known from a file and imported when they are used."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.metadata import EntryPoint

import pytest
from stevedore import extension

from convergence.core.model import Action, Change
from convergence.errors import EntityNotFound, StackValidationFailed
from convergence.resources.comparison import compare
from convergence.resources.contract import FinalFailure, InProgress
from convergence.resources.manifest import Manifest, entry_of
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.testing import Fixture, conformance
from tests.resources.calls import Row

PLUGIN = 'tests.resources.listed_plugin'


def written() -> str:
    """The manifest of the plugin, as its file has it. The plugin is not imported any more afterwards."""
    plugin = import_module(PLUGIN)
    entries = {name: entry_of(plugin.load(name)) for name in plugin.TYPES}
    document = {'format': 1, 'types': {**entries, 'Example::Old': {'withheld': 'use Example::Wall'}}}
    sys.modules.pop(PLUGIN)
    return json.dumps(document)


FILE = written()


def load(name):
    return import_module(PLUGIN).load(name)


@pytest.fixture(autouse=True)
def manifest():
    """A manifest whose types nobody has imported yet; nothing is left of what other tests have made."""
    sys.modules.pop(PLUGIN, None)
    return Manifest(json.loads(FILE), load)


def is_imported():
    return PLUGIN in sys.modules


def test_what_a_manifest_says_is_what_the_types_say(manifest):
    registry = Registry(manifest.types())
    said = {name: (registry.describe(name), entry_of(registry.get(name))) for name in registry.names()}
    can = {name: registry.get(name).implements('find') for name in registry.names()}
    creations = {name: registry.creation(name, 60) for name in registry.names()}
    assert not is_imported()
    real = Registry({name: load(name) for name in registry.names()})
    assert said == {name: (real.describe(name), entry_of(real.get(name))) for name in real.names()}
    assert can == {'Example::Wall': True, 'Example::Tag': False, 'Example::Refusing': False}
    assert creations == {name: real.creation(name, 60) for name in real.names()}
    assert registry.time_limit('Example::Wall', Action.CREATE) == 600


def test_templates_are_checked_and_compared_without_an_import(manifest):
    schema = PropertySchema.of(manifest.types()['Example::Wall'].Properties)
    wrong = {'rules': [{'port': 0}], 'color': 'blue', 'address': 'here', 'network': 'whichever', 'colr': 'red'}
    with pytest.raises(StackValidationFailed) as caught:
        schema.parse(wrong)
    assert 'whichever' not in str(caught.value)
    for said in ('rules.0.port', 'Paint it grey or red', 'address', 'colr; did you mean color'):
        assert said in str(caught.value)
    assert 'network' not in str(caught.value), 'it needs a service that cannot be asked here: the type checks it'
    assert schema.changed({'colour': 'red', 'rule': {'port': '7'}}, {'color': 'red', 'rules': [{'port': 7}]}) == set()
    assert schema.secrets({'key': 'sesame'}) == {'sesame'}
    kind = manifest.types()['Example::Wall']
    assert compare(kind, {}, {'network': 'b'}, lambda: pytest.fail('nobody is asked')) is Change.REPLACE
    assert not is_imported()


def test_the_type_itself_gets_its_own_properties_and_has_the_last_word(manifest):
    kind = manifest.types()['Example::Wall']
    row = Row(kind, {'rule': {'port': 7, 'from': 'x'}})
    assert not is_imported()
    assert isinstance(kind.create(row.call()), InProgress)
    assert is_imported()
    assert next(iter(sys.modules[PLUGIN].THINGS.values())) == {'color': 'grey', 'ports': [7]}
    previous = {'rules': [{'port': 1}, {'port': 2}]}
    assert compare(kind, previous, {'rules': [{'port': 1}]}, lambda: row.call(previous)) is Change.REPLACE
    with pytest.raises(FinalFailure, match='nobody passes 13'):
        kind.create(Row(kind, {'rules': [{'port': 13}]}).call())
    kind.delete(Row(kind, {'rules': [{'port': 13}]}).call())


WALL = Fixture(
    lambda: Manifest(json.loads(FILE), load).types()['Example::Wall'],
    {'rules': [{'port': 7}]},
    changed={'color': 'red', 'rules': [{'port': 7}]},
    replaced={'limits': {'low': 2}},
    wrong=[{'rules': [{'port': 70000}]}],
    leftovers=lambda: import_module(PLUGIN).THINGS,
    wait=lambda seconds: None,
)
TAG = Fixture(
    lambda: Manifest(json.loads(FILE), load).types()['Example::Tag'],
    {'size': 1},
    changed={'size': None, 'length': 2},
    leftovers=lambda: import_module(PLUGIN).THINGS,
)


@pytest.mark.parametrize('case', [*conformance(WALL), *conformance(TAG)], ids=str)
def test_it_conforms(case):
    case.run()


@pytest.mark.parametrize('error', [ImportError('no module named cloud'), SystemExit(1), KeyError('x')])
def test_a_worker_without_the_package_fails_the_action_and_says_what_to_do(manifest, error):
    def broken(name):
        raise error

    kind = Manifest(json.loads(FILE), broken).types()['Example::Tag']
    with pytest.raises(
        FinalFailure, match=r'Example::Tag is known, and cannot be imported by this worker \(.*\); install'
    ):
        kind.create(Row(kind, {}).call())


def test_a_package_offers_a_manifest_and_other_packages_win_over_it(monkeypatch, caplog):
    entries = {
        'convergence.resource_manifests': [
            EntryPoint('example', 'tests.resources.test_manifest:offered', 'convergence.resource_manifests'),
            EntryPoint('broken', 'tests.resources.test_manifest:newer', 'convergence.resource_manifests'),
            EntryPoint('words', 'tests.resources.test_manifest:words', 'convergence.resource_manifests'),
        ],
        'convergence.resource_types': [
            EntryPoint('Example::Tag', 'convergence.resources.builtin.value:Value', 'convergence.resource_types')
        ],
    }
    monkeypatch.setattr(
        extension.ExtensionManager, 'list_entry_points', lambda manager: entries.get(manager.namespace, [])
    )
    extension.ExtensionManager.ENTRY_POINT_CACHE.clear()
    registry = Registry.installed()
    assert registry.names() == ('Example::Refusing', 'Example::Tag', 'Example::Wall')
    assert set(Registry.installed(for_checks=True).names()) - set(registry.names()) == {'Example::Word'}
    assert 'value' in registry.describe('Example::Tag')['properties']
    with pytest.raises(EntityNotFound, match=r'\(Example::Old\) could not be found: use Example::Wall\.'):
        registry.get('Example::Old')
    assert 'The manifest broken is unusable' in caplog.text
    assert 'has the format 2, and 1 is read' in caplog.text
    assert not is_imported()


def test_the_operator_prefers_one_of_two_packages_that_offer_a_type(monkeypatch, caplog):
    group = 'convergence.resource_manifests'
    entries = [EntryPoint(name, f'tests.resources.test_manifest:{name}', group) for name in ('offered', 'shorter')]
    monkeypatch.setattr(
        extension.ExtensionManager, 'list_entry_points', lambda manager: entries if manager.namespace == group else []
    )
    extension.ExtensionManager.ENTRY_POINT_CACHE.clear()
    assert 'rules' in Registry.installed().describe('Example::Wall')['properties']
    assert 'Several packages offer Example::Wall: offered and shorter. Using those of offered' in caplog.text
    preferring = Registry.installed(prefer=['shorter'])
    assert set(preferring.describe('Example::Wall')['properties']) == set(
        preferring.describe('Example::Tag')['properties']
    )
    assert preferring.names() == Registry.installed().names()


def shorter():
    return Manifest({'format': 1, 'types': {'Example::Wall': json.loads(FILE)['types']['Example::Tag']}}, load)


def offered():
    return Manifest(json.loads(FILE), load)


def words():
    """Types that the package describes, and nobody makes."""
    return Manifest({'format': 1, 'types': {'Example::Word': json.loads(FILE)['types']['Example::Tag']}})


def newer():
    return Manifest({'format': 2}, load)


def test_what_a_manifest_cannot_tell_is_refused_when_it_is_written():
    with pytest.raises(TypeError, match='the objects of StackResource are stacks'):
        entry_of(Registry.builtin().get('OS::Heat::Stack'))
