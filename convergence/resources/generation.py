"""A template with one resource of a type: all its properties are parameters, all its attributes outputs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from convergence.core.model import Json
from convergence.resources.attributes import describe_attributes
from convergence.resources.contract import ResourceType
from convergence.resources.describing import plain
from convergence.resources.schema import Property, PropertySchema
from convergence.resources.shapes import Kind
from convergence.resources.support import Status
from convergence.template.constraints import AllowedPattern, AllowedValues, Constraint, Length, Range


class TemplateLanguage(StrEnum):
    """In which language the template is."""

    HOT = 'hot'
    CFN = 'cfn'


_HOT_TYPES: Mapping[Kind, str] = {
    Kind.STRING: 'string',
    Kind.INTEGER: 'number',
    Kind.NUMBER: 'number',
    Kind.BOOLEAN: 'boolean',
    Kind.LIST: 'comma_delimited_list',
    Kind.MAP: 'json',
    Kind.ANY: 'json',
}
_CFN_TYPES: Mapping[Kind, str] = {
    Kind.STRING: 'String',
    Kind.INTEGER: 'Number',
    Kind.NUMBER: 'Number',
    Kind.BOOLEAN: 'Boolean',
    Kind.LIST: 'CommaDelimitedList',
    Kind.MAP: 'Json',
    Kind.ANY: 'Json',
}


def generate(name: str, kind: ResourceType[Any], dialect: TemplateLanguage) -> dict[str, Json]:
    """The template. A property without a default is a parameter that needs a value: no value means the same as none.

    :param name: of the type. The resource is called like its last part.
    """
    resource = ''.join(character for character in name.rpartition('::')[2] if character.isalnum()) or 'Resource'
    properties = {
        key: declared
        for key, declared in PropertySchema.of(kind.Properties).properties.items()
        if declared.support.status is not Status.HIDDEN
    }
    make = _hot if dialect is TemplateLanguage.HOT else _cfn
    return make(name, resource, properties, describe_attributes(kind))


def _hot(
    name: str, resource: str, properties: Mapping[str, Property], attributes: Mapping[str, Json]
) -> dict[str, Json]:
    parameters: dict[str, Json] = {key: _hot_parameter(declared) for key, declared in properties.items()}
    outputs: dict[str, Json] = {
        key: {'description': _about(about), 'value': {'get_attr': [resource, key]}} for key, about in attributes.items()
    }
    wanted: dict[str, Json] = {key: {'get_param': key} for key in properties}
    return {
        'heat_template_version': '2016-10-14',
        'description': f'Initial template of {resource}',
        'parameters': parameters,
        'resources': {resource: {'type': name, 'properties': wanted}},
        'outputs': outputs,
    }


def _hot_parameter(declared: Property) -> dict[str, Json]:
    type_ = _type(declared, _HOT_TYPES)
    parameter: dict[str, Json] = {'type': type_}
    if declared.declaration.description:
        parameter['description'] = declared.declaration.description
    if declared.default is not None:
        parameter['default'] = plain(declared.default)
    constraints = [constraint.document() for constraint in declared.constraints if type_ in constraint.types]
    if constraints:
        parameter['constraints'] = [*constraints]
    return parameter


def _cfn(
    name: str, resource: str, properties: Mapping[str, Property], attributes: Mapping[str, Json]
) -> dict[str, Json]:
    parameters: dict[str, Json] = {key: _cfn_parameter(declared) for key, declared in properties.items()}
    outputs: dict[str, Json] = {
        key: {'Description': _about(about), 'Value': {'Fn::GetAtt': [resource, key]}}
        for key, about in attributes.items()
    }
    wanted: dict[str, Json] = {key: {'Ref': key} for key in properties}
    return {
        'HeatTemplateFormatVersion': '2012-12-12',
        'Description': f'Initial template of {resource}',
        'Parameters': parameters,
        'Resources': {resource: {'Type': name, 'Properties': wanted}},
        'Outputs': outputs,
    }


def _cfn_parameter(declared: Property) -> dict[str, Json]:
    parameter: dict[str, Json] = {'Type': _type(declared, _CFN_TYPES)}
    if declared.declaration.description:
        parameter['Description'] = declared.declaration.description
    if declared.default is not None:
        parameter['Default'] = plain(declared.default)
    for constraint in declared.constraints:
        if _type(declared, _HOT_TYPES) in constraint.types:
            parameter.update(_cfn_constraint(constraint))
            if constraint.description:
                parameter['ConstraintDescription'] = constraint.description
    return parameter


def _cfn_constraint(constraint: Constraint) -> dict[str, Json]:
    """The keys for a constraint; none where the dialect has no such constraint."""
    keys: dict[str, Json] = {}
    match constraint:
        case Length():
            keys = {'MinLength': constraint.minimum, 'MaxLength': constraint.maximum}
        case Range():
            keys = {'MinValue': constraint.minimum, 'MaxValue': constraint.maximum}
        case AllowedValues():
            keys = {'AllowedValues': constraint.argument()}
        case AllowedPattern():
            keys = {'AllowedPattern': constraint.argument()}
    return {key: value for key, value in keys.items() if value is not None}


def _type(declared: Property, types: Mapping[Kind, str]) -> str:
    """The type of the parameter. A list of anything but simple values cannot be written with commas."""
    items = declared.shape.items
    if declared.shape.kind is Kind.LIST and items is not None and items.kind in (Kind.MAP, Kind.LIST, Kind.ANY):
        return types[Kind.MAP]
    return types[declared.shape.kind]


def _about(described: Json) -> Json:
    return described.get('description') or 'No description given' if isinstance(described, dict) else None
