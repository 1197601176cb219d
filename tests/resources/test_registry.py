from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest
from stevedore import extension

from convergence.errors import EntityNotFound
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.value import Value
from convergence.resources.contract import Done, ResourceType
from convergence.resources.registry import Registry
from convergence.resources.withdrawn import WITHDRAWN


@dataclass(frozen=True)
class Unreadable:
    value: set[str]


class Broken(ResourceType):
    Properties = Unreadable


class Exploding(ResourceType):
    def __init__(self):
        raise RuntimeError('no service')


def test_the_builtin_types_are_there_and_local_ones_only_when_enabled(tmp_path):
    plain, local = Registry.builtin(), Registry.builtin(local=LocalProvider(tmp_path))
    assert plain.names() == (
        'AWS::AutoScaling::AutoScalingGroup',
        'AWS::AutoScaling::LaunchConfiguration',
        'AWS::AutoScaling::ScalingPolicy',
        'AWS::CloudFormation::Stack',
        'AWS::CloudFormation::WaitCondition',
        'AWS::CloudFormation::WaitConditionHandle',
        'OS::Heat::AccessPolicy',
        'OS::Heat::AutoScalingGroup',
        'OS::Heat::CloudConfig',
        'OS::Heat::Delay',
        'OS::Heat::DeployedServer',
        'OS::Heat::InstanceGroup',
        'OS::Heat::MultipartMime',
        'OS::Heat::None',
        'OS::Heat::RandomString',
        'OS::Heat::ResourceChain',
        'OS::Heat::ResourceGroup',
        'OS::Heat::ScalingPolicy',
        'OS::Heat::SoftwareComponent',
        'OS::Heat::SoftwareConfig',
        'OS::Heat::SoftwareDeployment',
        'OS::Heat::SoftwareDeploymentGroup',
        'OS::Heat::SoftwareDeployments',
        'OS::Heat::Stack',
        'OS::Heat::StructuredConfig',
        'OS::Heat::StructuredDeployment',
        'OS::Heat::StructuredDeploymentGroup',
        'OS::Heat::StructuredDeployments',
        'OS::Heat::TestResource',
        'OS::Heat::UpdateWaitConditionHandle',
        'OS::Heat::Value',
        'OS::Heat::WaitCondition',
        'OS::Heat::WaitConditionHandle',
    )
    assert 'Convergence::Local::File' not in plain
    assert 'Convergence::Local::File' in local


def test_an_unknown_type_is_the_users_error_with_a_suggestion():
    with pytest.raises(EntityNotFound, match=r'\(OS::Heat::Valeu\) could not be found; did you mean OS::Heat::Value\?'):
        Registry.builtin().get('OS::Heat::Valeu')
    with pytest.raises(EntityNotFound, match=r'The Resource Type \(X\) could not be found\.$'):
        Registry.builtin().get('X')


@pytest.mark.parametrize('name', WITHDRAWN)
def test_a_type_that_the_field_has_given_up_is_refused_with_its_reason(name):
    with pytest.raises(EntityNotFound) as caught:
        Registry.builtin().get(name)
    assert str(caught.value) == f'The Resource Type ({name}) could not be found: {WITHDRAWN[name]}.'


def test_a_broken_type_is_logged_and_left_out(caplog):
    with caplog.at_level(logging.ERROR):
        registry = Registry({'Good': Value, 'Broken': Broken, 'Exploding': Exploding, 'NoType': dict})
    assert registry.names() == ('Good',)
    for name in ('Broken', 'Exploding', 'NoType'):
        assert name in caplog.text


def test_a_function_may_give_the_type():
    assert Registry({'Example::Value': lambda: Value()}).names() == ('Example::Value',)


def test_more_types_win_over_builtin_ones():
    class Mine(Value):
        def create(self, call):
            return Done('mine')

    assert isinstance(Registry.builtin(more={'OS::Heat::Value': Mine}).get('OS::Heat::Value'), Mine)


@pytest.mark.parametrize('statement', ['import no_such_module_x', 'assert False', 'raise SystemExit(3)', 'x = 1'])
def test_a_package_that_cannot_be_imported_ends_nobody(statement, tmp_path, monkeypatch, caplog):
    (tmp_path / f'broken_{abs(hash(statement))}.py').write_text(statement)
    monkeypatch.syspath_prepend(tmp_path)
    group = 'convergence.resource_types'
    entries = [
        EntryPoint('Example::Broken', f'broken_{abs(hash(statement))}:Type', group),
        EntryPoint('Example::Value', 'convergence.resources.builtin.value:Value', group),
    ]
    monkeypatch.setattr(extension.ExtensionManager, 'list_entry_points', lambda self: entries)
    extension.ExtensionManager.ENTRY_POINT_CACHE.clear()
    assert Registry.installed().names() == ('Example::Value',)
    assert 'Example::Broken' in caplog.text


def test_every_builtin_type_can_be_described(tmp_path):
    registry = Registry.builtin(local=LocalProvider(tmp_path))
    for name in registry.names():
        described = json.loads(json.dumps(registry.describe(name)))
        assert described['resource_type'] == name
        assert described['description']
    value = registry.describe('OS::Heat::Value')
    assert value['properties']['value']['required'] is True
    assert value['properties']['value']['update_allowed'] is True
    assert value['attributes']['value'] == {'description': 'The value, read as its type.'}, 'of any type'
