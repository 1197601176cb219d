"""Templates made from resource types, and what is told about types."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from dataclasses import dataclass

import pytest

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedPattern, AllowedValues, Length, Range, custom
from convergence.resources.contract import ResourceType
from convergence.resources.generation import TemplateLanguage, generate
from convergence.resources.registry import Registry
from convergence.resources.schema import prop
from convergence.resources.support import Status, SupportStatus
from convergence.resources.validation import validate
from convergence.template import Require, StackIdentity, compile


@dataclass(frozen=True)
class Rule:
    port: int = prop(80)


@dataclass(frozen=True)
class Properties:
    name: str = prop(description='Its name.', constraints=[Length(2, 9), AllowedPattern('[a-z]+')])
    size: int = prop(3, constraints=[Range(1, None, 'at least one')])
    zone: str | None = prop(None, constraints=[AllowedValues(('a', 'b'))])
    public: bool = prop(False)
    labels: dict[str, str] = prop({'a': 'b'})
    tags: list[str] = prop(['x'])
    rules: list[Rule] = prop([])
    first: Rule = prop(Rule(port=8080))
    network: str = prop(constraints=[custom('net_cidr')])
    anything: Json = prop(None)
    secret_switch: bool = prop(False, support=SupportStatus(Status.HIDDEN))


@dataclass(frozen=True)
class Attributes:
    address: str = attr('Where it is.')
    state: Json = attr()


class Server(ResourceType[Properties]):
    """A server."""

    Properties = Properties
    Attributes = Attributes
    support = SupportStatus(Status.DEPRECATED, '2', 'Use Other.', SupportStatus(Status.SUPPORTED, '1'))


def test_a_hot_template():
    template = generate('Example::Big-Server', Server(), TemplateLanguage.HOT)
    assert template['heat_template_version'] == '2016-10-14'
    parameters = template['parameters']
    assert parameters['name'] == {
        'type': 'string',
        'description': 'Its name.',
        'constraints': [{'length': {'min': 2, 'max': 9}}, {'allowed_pattern': '[a-z]+'}],
    }
    assert parameters['size'] == {
        'type': 'number',
        'default': 3,
        'constraints': [{'range': {'min': 1}, 'description': 'at least one'}],
    }
    assert parameters['network']['constraints'] == [{'custom_constraint': 'net_cidr'}]
    assert parameters['first'] == {'type': 'json', 'default': {'port': 8080}}
    assert {name: entry['type'] for name, entry in parameters.items()} == {
        'name': 'string',
        'size': 'number',
        'zone': 'string',
        'public': 'boolean',
        'labels': 'json',
        'tags': 'comma_delimited_list',
        'rules': 'json',
        'first': 'json',
        'network': 'string',
        'anything': 'json',
    }
    resource = template['resources']['BigServer']
    assert resource['type'] == 'Example::Big-Server'
    assert resource['properties']['size'] == {'get_param': 'size'}
    assert template['outputs'] == {
        'address': {'description': 'Where it is.', 'value': {'get_attr': ['BigServer', 'address']}},
        'state': {'description': 'No description given', 'value': {'get_attr': ['BigServer', 'state']}},
    }


def test_a_cfn_template():
    template = generate('Example::Server', Server(), TemplateLanguage.CFN)
    assert template['HeatTemplateFormatVersion'] == '2012-12-12'
    assert template['Parameters']['name'] == {
        'Type': 'String',
        'Description': 'Its name.',
        'MinLength': 2,
        'MaxLength': 9,
        'AllowedPattern': '[a-z]+',
    }
    assert template['Parameters']['size'] == {
        'Type': 'Number',
        'Default': 3,
        'MinValue': 1,
        'ConstraintDescription': 'at least one',
    }
    assert template['Parameters']['zone'] == {'Type': 'String', 'AllowedValues': ['a', 'b']}
    assert template['Resources']['Server']['Properties']['tags'] == {'Ref': 'tags'}
    assert template['Outputs']['address']['Value'] == {'Fn::GetAtt': ['Server', 'address']}


@pytest.mark.parametrize('name', Registry.builtin().names())
def test_the_templates_of_the_built_in_types_are_valid(name):
    registry = Registry.builtin()
    for dialect in TemplateLanguage:
        template = generate(name, registry.get(name), dialect)
        compiled = compile(template, identity=StackIdentity('i', 'n', 'p'), require_parameters=Require.NONE)
        validate(compiled, registry)


def test_what_is_hidden_is_not_shown_but_works():
    registry = Registry({'Server': Server})
    described = registry.describe('Server')
    assert 'secret_switch' not in described['properties']
    assert described['properties']['first']['default'] == {'port': 8080}
    assert described['support_status'] == {
        'status': 'DEPRECATED',
        'version': '2',
        'message': 'Use Other.',
        'previous_status': {'status': 'SUPPORTED', 'version': '1', 'message': None, 'previous_status': None},
    }
