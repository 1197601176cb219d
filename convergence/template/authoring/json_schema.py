"""A JSON Schema of templates, built from the versions of the language and the installed resource types.

Editors complete names and mark errors with it. The schema accepts every template that the engine accepts. It cannot
check references, types of computed values, and the functions of each version; ``convergence template validate`` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from convergence.template.authoring.types import TypeCatalog
from convergence.template.functions.base import Function
from convergence.template.values import ParameterType
from convergence.template.versions import DIALECTS, VERSIONS, Version

JsonSchema: TypeAlias = dict[str, Any]

DIALECT = 'https://json-schema.org/draft/2020-12/schema'

_TEXT: JsonSchema = {'type': ['string', 'number', 'boolean', 'null']}
_SCALAR_TYPES = ['string', 'number', 'boolean']
_FUNCTION: JsonSchema = {'$ref': '#/$defs/function'}
_VALUE: JsonSchema = {'$ref': '#/$defs/value'}
_CONDITION: JsonSchema = {'$ref': '#/$defs/condition'}


def language_versions() -> list[Version]:
    """Return all versions of all dialects, each once."""
    return list({(each.key, each.date): each for known in DIALECTS.values() for each in known.values()}.values())


def meaning(function: Function) -> str:
    """Return the description of a function. The description of the first version comes first."""
    sentences: list[str] = []
    for kind in type(function).__mro__:
        sentence = (kind.__dict__.get('__doc__') or '').partition('\n')[0]
        sentences.insert(0, sentence.removeprefix('As before; ').removeprefix('As before, '))
        if not sentence.startswith('As before'):
            break
    return ' '.join(f'{sentence[:1].upper()}{sentence[1:]}' for sentence in sentences)


def schema(types: TypeCatalog) -> JsonSchema:
    """Return the JSON Schema of templates of every version, with the given resource types."""
    return {
        '$schema': DIALECT,
        'title': 'Template of Convergence',
        'description': 'The Heat Orchestration Template language (HOT) in all versions, and CFN templates.',
        'type': 'object',
        'anyOf': [
            {'required': ['heat_template_version']},
            {'required': ['HeatTemplateFormatVersion']},
            {'required': ['AWSTemplateFormatVersion']},
        ],
        'if': {'required': ['heat_template_version']},
        'then': {'$ref': '#/$defs/hot'},
        'else': {'$ref': '#/$defs/cfn'},
        '$defs': {
            'hot': _hot(),
            'cfn': _cfn(),
            'function': _functions(),
            'value': {'description': 'Any value. It may contain functions at every level.'},
            'condition': {
                'description': 'The name of a condition, true or false, or a function.',
                'anyOf': [
                    {'type': ['string', 'boolean']},
                    _one_of_keys({name for version in language_versions() for name in version.conditions}),
                ],
            },
            'parameter': _parameter(),
            'resource': _resource(types),
            'output': _output(),
            'types': {name: _type(types, name) for name in types.names()},
        },
    }


def _hot() -> JsonSchema:
    group = {
        'label': _TEXT,
        'description': _TEXT,
        'parameters': {'type': 'array', 'items': {'type': 'string'}},
    }
    return _closed(
        {
            'heat_template_version': {'description': 'The version of the language.', 'enum': list(VERSIONS)},
            'description': _TEXT,
            'parameter_groups': {
                'description': 'Order and headings for the display of parameters.',
                'type': ['array', 'null'],
                'items': _closed(group, required=('parameters',)),
            },
            'parameters': _map_of('parameter', 'Values that a user gives when a stack is created.'),
            'conditions': {
                'description': 'Conditions by name (since 2016-10-14).',
                'type': ['object', 'null'],
                'additionalProperties': _CONDITION,
            },
            'resources': _map_of('resource', 'Desired resources by name.'),
            'outputs': _map_of('output', 'Values that the stack shows.'),
        },
        required=('heat_template_version',),
    )


def _parameter() -> JsonSchema:
    constraint = {
        'description': _TEXT,
        'length': _bounds(),
        'range': _bounds(),
        'modulo': _closed({'step': _number(), 'offset': _number()}, required=('step', 'offset')),
        'allowed_values': {'type': 'array'},
        'allowed_pattern': {'type': 'string'},
        'custom_constraint': {'type': 'string'},
    }
    boolean = {'type': ['boolean', 'string', 'number', 'null']}
    return _closed(
        {
            'type': {'enum': [kind.value for kind in ParameterType]},
            'label': _TEXT,
            'description': _TEXT,
            'default': {'description': 'Value to use if the user gives none.'},
            'hidden': {'description': 'Mask the value in all output.', **boolean},
            'immutable': {'description': 'An update cannot change the value.', **boolean},
            'constraints': {
                'description': 'Conditions for a valid value.',
                'type': ['array', 'null'],
                'items': _closed(constraint),
            },
            'tags': {
                'description': 'Tags (since 2018-03-02).',
                'type': ['array', 'null'],
                'items': {'type': 'string'},
            },
        },
        required=('type',),
    )


def _resource(types: TypeCatalog) -> JsonSchema:
    made = _closed(
        {
            'type': {'anyOf': [{'enum': list(types.names())}, {'type': 'string', 'minLength': 1}]},
            'properties': {'type': ['object', 'null']},
            'metadata': {'type': ['object', 'null']},
            'depends_on': {
                'description': 'Resources to create before this one.',
                'anyOf': [{'type': ['string', 'null']}, {'type': 'array', 'items': {'type': 'string'}}, _FUNCTION],
            },
            'deletion_policy': {
                'description': 'Deletes, retains or snapshots the object when the resource is deleted.',
                'anyOf': [{'enum': _policies()}, _FUNCTION],
            },
            'update_policy': {'type': ['object', 'null']},
            'description': _TEXT,
            'condition': _CONDITION,
            'external_id': {
                'description': 'Id of an existing object to use (since 2016-10-14).',
                'anyOf': [_TEXT, _FUNCTION],
            },
        },
        required=('type',),
    )
    made['allOf'] = [
        {
            'if': {'properties': {'type': {'const': name}}, 'required': ['type']},
            'then': {'properties': {'properties': {'$ref': f'#/$defs/types/{name}'}}},
        }
        for name in types.names()
    ]
    return made


def _policies() -> list[str | None]:
    words = ('Delete', 'Retain', 'Snapshot')
    return [*words, *(word.lower() for word in words), None]


def _output() -> JsonSchema:
    return _closed({'value': _VALUE, 'description': _TEXT, 'condition': _CONDITION}, required=('value',))


def _functions() -> JsonSchema:
    described = {
        name: meaning(function) for version in language_versions() for name, function in version.functions.items()
    }
    made = _one_of_keys(described)
    made['description'] = 'A function of the language: a map with its name as the only key.'
    made['properties'] = {name: {'description': text} for name, text in sorted(described.items())}
    return made


def _one_of_keys(names: Iterable[str]) -> JsonSchema:
    return {'type': 'object', 'minProperties': 1, 'maxProperties': 1, 'propertyNames': {'enum': sorted(names)}}


def _cfn() -> JsonSchema:
    """Return the outline of CFN templates."""
    parameter = {'type': 'object', 'required': ['Type'], 'properties': {'Type': {'type': 'string'}}}
    resource = {'type': 'object', 'required': ['Type'], 'properties': {'Type': {'type': 'string'}}}
    output = {'type': 'object', 'required': ['Value']}
    return _closed(
        {
            'AWSTemplateFormatVersion': {'enum': ['2010-09-09']},
            'HeatTemplateFormatVersion': {'enum': ['2012-12-12']},
            'Description': _TEXT,
            'Metadata': {},
            'ParameterGroups': {},
            'Parameters': {'type': ['object', 'null'], 'additionalProperties': parameter},
            'Mappings': {'type': ['object', 'null']},
            'Conditions': {'type': ['object', 'null']},
            'Resources': {'type': ['object', 'null'], 'additionalProperties': resource},
            'Outputs': {'type': ['object', 'null'], 'additionalProperties': output},
        }
    )


def _type(types: TypeCatalog, name: str) -> JsonSchema:
    """Return the properties of a resource type. The map and each property may be a function."""
    described: Mapping[str, Any] = types.describe(name)
    made = _properties(described['properties'])
    # Some types accept undeclared properties.
    made['else']['additionalProperties'] = types.takes_any_property(name)
    return {'description': described.get('description') or '', 'type': ['object', 'null']} | made


def _properties(declared: Mapping[str, Any]) -> JsonSchema:
    """Return the schema of a map with known keys, which may also be a function."""
    known: JsonSchema = {'properties': {name: _property(about) for name, about in declared.items()}}
    required = [name for name, about in declared.items() if about.get('required')]
    if required:
        known['required'] = required
    known['additionalProperties'] = False
    return {'if': _FUNCTION, 'else': known}


def _property(about: Mapping[str, Any]) -> JsonSchema:
    value = _typed(about)
    made: JsonSchema = {'anyOf': [value, _FUNCTION, {'type': 'null'}]} if value else {}
    if about.get('description'):
        made['description'] = about['description']
    if about.get('default') is not None:
        made['default'] = about['default']
    return made


def _typed(about: Mapping[str, Any]) -> JsonSchema:
    """Return the schema of a literal value. Numbers and booleans may be written as text."""
    kind, inner = about.get('type'), about.get('schema')
    if kind in ('integer', 'number'):
        return {'anyOf': [{'type': 'number'} | _range(about), {'type': 'string'}]}
    if kind == 'boolean':
        return {'type': ['boolean', 'string', 'number']}
    if kind == 'string':
        values = _allowed(about)
        return {'enum': values} if values else {'type': _SCALAR_TYPES}
    if kind == 'list':
        items = inner.get('*') if isinstance(inner, Mapping) else None
        made: JsonSchema = {'type': 'array', 'items': _property(items) if items else {}}
        return {'anyOf': [made, {'type': 'string'}]}
    if kind == 'map':
        return {'type': ['object', 'string']} | _inside(inner)
    return {}


def _inside(inner: Any) -> JsonSchema:
    if not isinstance(inner, Mapping):
        return {}
    if set(inner) == {'*'}:
        return {'if': _FUNCTION, 'else': {'additionalProperties': _property(inner['*'])}}
    return _properties(inner)


def _range(about: Mapping[str, Any]) -> JsonSchema:
    found: JsonSchema = {}
    for constraint in about.get('constraints') or ():
        bounds = constraint.get('range') or {}
        if bounds.get('min') is not None:
            found['minimum'] = bounds['min']
        if bounds.get('max') is not None:
            found['maximum'] = bounds['max']
    return found


def _allowed(about: Mapping[str, Any]) -> list[Any]:
    for constraint in about.get('constraints') or ():
        if constraint.get('allowed_values'):
            return list(constraint['allowed_values'])
    return []


def _bounds() -> JsonSchema:
    return _closed({'min': _number(), 'max': _number()})


def _number() -> JsonSchema:
    return {'type': ['number', 'string']}


def _map_of(name: str, description: str) -> JsonSchema:
    return {
        'description': description,
        'type': ['object', 'null'],
        'additionalProperties': {'$ref': f'#/$defs/{name}'},
    }


def _closed(properties: JsonSchema, required: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of a map with exactly these keys."""
    made: JsonSchema = {'type': 'object', 'properties': properties, 'additionalProperties': False}
    if required:
        made['required'] = list(required)
    return made
