"""What is said of Heat's types is so, and is enough to check templates."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import convergence_heat
import pytest
from convergence_heat.finders import BY_KEY, SETS
from convergence_heat.labels import OF_TYPES

from convergence.errors import StackValidationFailed
from convergence.resources.attributes import has_attribute
from convergence.resources.builtin import builtin_types
from convergence.resources.custom import installed_checks
from convergence.resources.manifest import entry_of
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema

PYTHON = 'CONVERGENCE_REFERENCE_PYTHON'
FILE = Path(convergence_heat.__file__).with_name(convergence_heat.FILE)
ENTRIES = json.loads(FILE.read_text(encoding='utf-8'))['types']
TYPES = convergence_heat.manifest().types()


PLACES = os.pathsep.join([*map(str, (FILE.parents[1], FILE.parents[3])), *filter(None, [os.environ.get('PYTHONPATH')])])
"""Where a program finds both packages, installed or not."""


def interpreter():
    """An interpreter that has openstack-heat, or None."""
    return os.environ.get(PYTHON) or (sys.executable if importlib.util.find_spec('heat') else None)


def test_the_manifest_says_what_the_installed_classes_say(tmp_path):
    if interpreter() is None:
        pytest.skip(f'install convergence-heat[classes], or name a Python that has openstack-heat and ours in {PYTHON}')
    done = subprocess.run(
        [interpreter(), '-W', 'ignore', '-m', 'convergence_heat.writing', tmp_path / 'types.json'],
        env=os.environ | {'PYTHONPATH': PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    written = json.loads((tmp_path / 'types.json').read_text(encoding='utf-8'))['types']
    assert sorted(written) == sorted(ENTRIES)
    differing = [name for name in written if written[name] != ENTRIES[name]]
    assert differing == [], 'write it anew: python -m convergence_heat.writing'


def test_what_is_found_again_after_a_crash_are_types_of_heat():
    assert {*OF_TYPES, *BY_KEY, *SETS} <= set(TYPES)


def test_all_types_are_there_and_what_is_read_is_what_was_written():
    assert len(ENTRIES) == 201
    withheld = {name for name, entry in ENTRIES.items() if 'withheld' in entry}
    assert set(TYPES) == set(ENTRIES) - withheld
    assert withheld - set(builtin_types()) == {
        'AWS::ElasticLoadBalancing::LoadBalancer',
        'AWS::IAM::User',
        'OS::Mistral::Workflow',
    }
    registry = Registry(TYPES)
    assert registry.names() == tuple(sorted(TYPES))
    assert {name: entry_of(registry.get(name)) for name in TYPES} == {name: ENTRIES[name] for name in TYPES}


def test_every_constraint_is_known_or_asks_a_service():
    checks, names = installed_checks().tolerating(), set()

    def collect(value):
        if isinstance(value, dict):
            names.update([value['custom_constraint']] if 'custom_constraint' in value else [])
            value = list(value.values())
        for each in value if isinstance(value, list) else ():
            collect(each)

    collect(ENTRIES)
    assert 'neutron.network' in names
    assert [name for name in names if checks.get(name) is None] == []


def test_parameters_may_have_each_constraint_of_heat_that_asks_a_service():
    if importlib.util.find_spec('heat') is None:
        pytest.skip('openstack-heat is not installed: make heat')
    wanted = {each.name for each in entry_points(group='heat.constraints') if '.' in each.name}
    offered = {each.name: each.load() for each in entry_points(group='convergence.constraints') if '.' in each.name}
    assert wanted - set(offered) == set()
    assert {check('anything') for check in offered.values()} == {None}


def test_properties_of_a_server_are_read_as_heat_reads_them():
    schema = PropertySchema.of(TYPES['OS::Nova::Server'].Properties)
    old = {'flavor': 'm1', 'networks': [{'uuid': 'private'}], 'metadata': {'a': None}}
    new = {'flavor': 'm1', 'networks': [{'network': 'private', 'port': None}], 'metadata': {'a': None}}
    assert schema.changed(old, new) == set()
    assert schema.changed(new, {**new, 'flavor': 'm2'}) == {'flavor'}
    assert schema.properties['flavor'].update_allowed
    with pytest.raises(StackValidationFailed) as caught:
        schema.parse({'flavour': 'm1', 'networks': [{'netwrok': 'x'}], 'config_drive': 'perhaps'})
    for said in ('flavor not assigned', 'flavour; did you mean flavor?', 'networks.0.netwrok', 'config_drive'):
        assert said in str(caught.value)
    assert has_attribute(TYPES['OS::Nova::Server'], 'first_address')
    assert not has_attribute(TYPES['OS::Nova::Server'], 'adresses')


def test_nothing_of_heat_is_imported():
    program = (
        'import sys, convergence_heat; from convergence.resources.registry import Registry\n'
        'Registry(convergence_heat.manifest().types()).describe("OS::Nova::Server")\n'
        'assert not {"heat", "novaclient", "keystoneauth1"} & set(sys.modules)'
    )
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', program],
        env=os.environ | {'PYTHONPATH': PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_engines_offer_them_beside_their_own_of_the_same_names():
    if not entry_points(group='convergence.resource_manifests', name='heat'):
        pytest.skip('convergence-heat is not installed: its entry point is not there')
    known = Registry.installed()
    assert known.describe('OS::Nova::KeyPair')['attributes']['private_key']['type'] == 'string'
    own = builtin_types()
    assert {type(known.get(name)) for name in own} == {type(kind) for kind in own.values()}
