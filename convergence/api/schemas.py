"""The shapes of bodies, as JSON Schema: checked when a request comes in, and shown in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence.api.faults import bad_request
from convergence.api.queries import LARGEST

Schema = Mapping[str, Any]

STRING: Schema = {'type': 'string'}
BOOLEAN: Schema = {'type': 'boolean'}
TEXT_OR_NULL: Schema = {'type': ['string', 'null']}
OBJECT_OR_NULL: Schema = {'type': ['object', 'null']}
NAMES: Schema = {'type': ['array', 'null'], 'items': STRING}
FLAG: Schema = {'type': ['boolean', 'string', 'null']}
MINUTES: Schema = {'type': ['integer', 'string', 'null'], 'minimum': 0, 'maximum': LARGEST}
FILES: Schema = {'type': ['object', 'null'], 'additionalProperties': STRING}
DOCUMENT: Schema = {'type': ['object', 'string', 'null']}
ANYTHING: Schema = {}


def body(properties: Mapping[str, Schema], required: tuple[str, ...] = (), *, closed: bool = False) -> Schema:
    """Return the schema of a body: a map with these keys.

    :param required: the keys that a body must have.
    :param closed: True to refuse other keys; otherwise they are ignored.
    """
    schema: dict[str, Any] = {'type': 'object', 'properties': dict(properties)}
    if required:
        schema['required'] = list(required)
    if closed:
        schema['additionalProperties'] = False
    return schema


_TEMPLATE: dict[str, Schema] = {
    'template': DOCUMENT,
    'template_url': TEXT_OR_NULL,
    'parameters': OBJECT_OR_NULL,
    'environment': DOCUMENT,
    'environment_files': NAMES,
    'files': FILES,
    'files_container': TEXT_OR_NULL,
}
_STACK: dict[str, Schema] = {
    **_TEMPLATE,
    'disable_rollback': FLAG,
    'timeout_mins': MINUTES,
    'tags': {'type': ['string', 'array', 'null'], 'items': STRING},
    'converge': FLAG,
    'notification_topics': {
        'type': ['array', 'null'],
        'maxItems': 0,
        'description': 'Topics receive no events; create a webhook for the stack instead (POST /webhooks).',
    },
    'drift_policy': TEXT_OR_NULL,
    # Some clients send it. It is ignored: the URL names the stack.
    'stack_name': TEXT_OR_NULL,
}

VALIDATE = body(_TEMPLATE, ('template',))
CREATE = body({**_STACK, 'stack_name': STRING, 'adopt_stack_data': DOCUMENT}, ('stack_name',))
UPDATE = body(_STACK)
PATCH = body({**_STACK, 'clear_parameters': NAMES})
ACTION = body(
    dict.fromkeys(('suspend', 'resume', 'check', 'rollback', 'cancel_update', 'cancel_without_rollback'), ANYTHING),
)
DRIFT_POLICY = body({'drift_policy': STRING}, ('drift_policy',), closed=True)
ACCEPT = body({'properties': NAMES}, closed=True)
SNAPSHOT = body({'name': TEXT_OR_NULL})
UNHEALTHY = body({'mark_unhealthy': FLAG, 'resource_status_reason': TEXT_OR_NULL}, ('mark_unhealthy',), closed=True)
SIGNAL: Schema = {'type': ['object', 'null']}
SIGNAL_URL = body({'expires_in_s': {'type': ['integer', 'null']}, 'revoke': FLAG})
WEBHOOK = body({'url': {'type': 'string'}, 'name': TEXT_OR_NULL, 'stack': TEXT_OR_NULL}, ('url',), closed=True)
SOFTWARE_CONFIG = body(
    {
        'name': TEXT_OR_NULL,
        'group': TEXT_OR_NULL,
        'config': DOCUMENT,
        'inputs': {'type': ['array', 'null']},
        'outputs': {'type': ['array', 'null']},
        'options': OBJECT_OR_NULL,
    }
)
_DEPLOYMENT: dict[str, Schema] = {
    'config_id': TEXT_OR_NULL,
    'input_values': OBJECT_OR_NULL,
    'output_values': OBJECT_OR_NULL,
    'action': TEXT_OR_NULL,
    'status': TEXT_OR_NULL,
    'status_reason': TEXT_OR_NULL,
    'stack_user_project_id': TEXT_OR_NULL,
}
DEPLOYMENT = body({**_DEPLOYMENT, 'server_id': STRING}, ('server_id',))
DEPLOYMENT_CHANGE = body(_DEPLOYMENT)

_MISSING = {
    'stack_name': 'No stack name specified',
    'template': 'No template specified',
    'mark_unhealthy': 'Missing mandatory (mark_unhealthy) key from mark unhealthy request',
}
_KINDS: Mapping[str, tuple[type, ...]] = {
    'object': (dict,),
    'array': (list,),
    'string': (str,),
    'integer': (int,),
    'boolean': (bool,),
    'null': (type(None),),
}


def check(value: Any, schema: Schema, name: str = '') -> None:
    """Check that a value matches `schema`.

    :param name: of the value, for the error; empty: the body itself.
    :raises HttpProblem: 400; the text names the key.
    """
    what = name or 'The body'
    kinds = schema.get('type')
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not any(_is(value, kind) for kind in kinds):
            raise bad_request(f'{what} must be {_either(kinds)}, not {_kind_of(value)}.')
    if isinstance(value, dict):
        _check_map(value, schema, name)
    elif isinstance(value, list):
        if len(value) > schema.get('maxItems', len(value)):
            raise bad_request(f'{what} may have {schema["maxItems"]} items. {schema.get("description", "")}'.rstrip())
        for index, item in enumerate(value):
            check(item, schema.get('items', ANYTHING), f'{name}[{index}]')
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > schema.get('maximum', abs(value)):
        raise bad_request(f'{what} must be at most {schema["maximum"]}.')


def _check_map(value: dict[str, Any], schema: Schema, name: str) -> None:
    properties = schema.get('properties', {})
    for key in schema.get('required', ()):
        if key not in value:
            raise bad_request(_MISSING.get(key, f'{key} is missing'))
    others = schema.get('additionalProperties', ANYTHING)
    for key, item in value.items():
        if key in properties:
            check(item, properties[key], f'{name}.{key}' if name else key)
        elif others is False:
            raise bad_request(f'Unexpected argument(s): {key}')
        else:
            check(item, others, f'{name}.{key}' if name else key)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == 'boolean'
    return isinstance(value, _KINDS[kind])


def _either(kinds: list[str]) -> str:
    words = {'object': 'a map', 'array': 'a list', 'string': 'a text', 'integer': 'a whole number'}
    return ' or '.join(words.get(kind, kind) for kind in kinds)


def _kind_of(value: Any) -> str:
    return next((kind for kind in _KINDS if _is(value, kind)), 'a fraction')
