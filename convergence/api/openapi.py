"""Generates the OpenAPI 3.1 document from the routing table."""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from http import HTTPStatus

from convergence import __version__
from convergence.api import queries
from convergence.api.discovery import NONCE, PROOF
from convergence.api.faults import reason
from convergence.api.routes import ROUTES, Access, Body, Route
from convergence.documents import Document
from convergence.signing import SIGNATURE

_FLAGS = (
    'show_deleted',
    'show_nested',
    'show_hidden',
    'with_count',
    'global_tenant',
    'resolve_outputs',
    'with_unreadable',
    'with_detail',
    'with_description',
    'with_condition_func',
)
_NUMBERS = ('limit', 'nested_depth')
_CHOICES = {
    'sort_dir': ('asc', 'desc'),
    'format': ('json', 'dot', 'mermaid', 'svg'),
    'template_type': ('cfn', 'hot'),
}
_REPEATABLE = ('sort_keys', 'with_attr')
_FAILURES = (400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 421, 422, 500, 501, 503)
_PROJECT: Document = {'name': 'project_id', 'in': 'path', 'required': True, 'schema': {'type': 'string'}}

_PROBLEM: Document = {
    'type': 'object',
    'description': 'One problem of a template or an environment; unknown values are null.',
    'required': ['message', 'kind'],
    'properties': {
        'message': {'type': 'string'},
        'file': {'type': ['string', 'null']},
        'line': {'type': ['integer', 'null'], 'minimum': 1},
        'column': {'type': ['integer', 'null'], 'minimum': 1},
        'path': {'type': ['array', 'null'], 'items': {'type': ['string', 'integer']}},
        'hint': {'type': ['string', 'null']},
        'kind': {'type': 'string'},
        'excerpt': {'type': ['string', 'null']},
    },
}

_ERROR: Document = {
    'type': 'object',
    'required': ['code', 'title', 'explanation', 'error'],
    'properties': {
        'code': {'type': 'integer'},
        'title': {'type': 'string'},
        'explanation': {'type': 'string'},
        'error': {
            'type': 'object',
            'required': ['type', 'traceback'],
            'properties': {
                'type': {'type': 'string'},
                'message': {'type': 'string'},
                'traceback': {'type': 'null'},
                'problems': {'type': 'array', 'items': _PROBLEM},
            },
        },
    },
}


_PROOF_OPERATION: Document = {
    'operationId': 'prove_identity',
    'summary': 'Prove to the account that started this server that it is this server. Other servers answer 404.',
    'tags': ['server'],
    'security': [{}],
    'parameters': [
        {
            'name': 'nonce',
            'in': 'query',
            'required': True,
            'schema': {'type': 'string', 'pattern': f'^{NONCE}$'},
        }
    ],
    'responses': {
        '200': {
            'description': 'OK',
            'content': {
                'application/json': {
                    'schema': {
                        'type': 'object',
                        'required': ['proof'],
                        'properties': {'proof': {'type': 'string', 'pattern': '^[0-9a-f]{64}$'}},
                    }
                }
            },
        }
    },
}


def describe(url: str) -> Document:
    """Return the document.

    :param url: of the server, without the version.
    """
    return {**_fixed(), 'servers': [{'url': url}]}


@lru_cache(maxsize=16)
def text(url: str) -> str:
    """Return the document as JSON, cached because it is long and constant. See `describe`."""
    return json.dumps(describe(url))


@cache
def _fixed() -> Document:
    paths: dict[str, Document] = {}
    for route in ROUTES:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route)
    paths[PROOF] = {'get': _PROOF_OPERATION}
    failure = {'$ref': '#/components/responses/Failure'}
    for path in paths.values():
        for operation in path.values():
            operation['responses'].update({str(code): failure for code in _FAILURES})
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Convergence: Orchestration API',
            'version': __version__,
            'summary': 'Stacks of resources: created, changed and removed as templates say.',
            'description': 'HEAD is answered wherever GET is, without a body.',
        },
        'paths': paths,
        'components': {
            'schemas': {'Error': _ERROR},
            'responses': {
                'Failure': {
                    'description': 'The request was not carried out; the body says why.',
                    'content': {'application/json': {'schema': {'$ref': '#/components/schemas/Error'}}},
                }
            },
            'securitySchemes': {
                'token': {'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'},
                'signature': {'type': 'apiKey', 'in': 'query', 'name': SIGNATURE},
            },
        },
        'security': [{}, {'token': []}],
    }


def _operation(route: Route) -> Document:
    status = HTTPStatus(route.status)
    answer: Document = {'description': reason(status)}
    if status is not HTTPStatus.NO_CONTENT:
        answer['content'] = {kind: {} for kind in _content_types(route)}
    operation: Document = {
        'operationId': _name(route),
        'summary': route.summary,
        'tags': [route.rule.partition(':')[0] or 'signals'],
        'parameters': [
            _PROJECT,
            *({**_PROJECT, 'name': name} for name in route.variables),
            *(_parameter(name) for name in route.query),
            *_conditions(route),
        ],
        'responses': {str(route.status): answer},
    }
    if route.access is Access.SIGNATURE:
        operation['security'] = [{'signature': []}, {'token': []}]
    if route.body is not Body.NONE:
        required = route.body is Body.REQUIRED
        # JSON Schema expresses an optional value only with null.
        schema = route.schema if required else {'anyOf': [route.schema, {'type': 'null'}]}
        operation['requestBody'] = {'required': required, 'content': {'application/json': {'schema': schema}}}
    return operation


def _name(route: Route) -> str:
    words = re.sub(r'\W+', '_', route.path.replace('{', 'by_').replace('}', '')).strip('_')
    return f'{route.method.lower()}_{words}'


def _content_types(route: Route) -> list[str]:
    if 'format' in route.query:
        return ['application/json', 'text/vnd.graphviz', 'text/plain', 'image/svg+xml']
    return ['application/json', *(['text/event-stream'] if 'follow' in route.query else [])]


def _parameter(name: str) -> Document:
    schema: Document = {'type': 'string'}
    if name in _FLAGS or name == 'follow':
        schema = {'type': 'boolean'}
    elif name in _NUMBERS:
        schema = {'type': 'integer', 'minimum': 0, 'maximum': queries.LARGEST}
    elif name in _CHOICES:
        schema = {'type': 'string', 'enum': list(_CHOICES[name])}
    elif name in _REPEATABLE:
        schema = {'type': 'array', 'items': schema}
    return {'name': name, 'in': 'query', 'schema': schema}


def _conditions(route: Route) -> list[Document]:
    """Return the headers of conditional requests."""
    text = {'type': 'string', 'minLength': 1, 'maxLength': 255}
    if route.rule == 'stacks:create':
        return [{'name': 'Idempotency-Key', 'in': 'header', 'schema': text}]
    if route.rule in ('stacks:update', 'stacks:update_patch', 'stacks:delete'):
        return [{'name': 'If-Match', 'in': 'header', 'schema': text}]
    return []
