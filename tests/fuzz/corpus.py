"""The seeds of mutations: real templates and environments."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SEPARATOR = '\n=====\n'
"""Between the parts of an input that has several."""

TEMPLATE: dict[str, Any] = {
    'heat_template_version': '2018-08-31',
    'parameters': {
        'text': {'type': 'string', 'default': 'a'},
        'number': {'type': 'number', 'default': 1},
        'names': {'type': 'comma_delimited_list', 'default': 'a,b'},
        'tree': {'type': 'json', 'default': {'a': {'b': [1]}}},
        'flag': {'type': 'boolean', 'default': False},
        'secret': {'type': 'string', 'hidden': True, 'default': 'canary-5512'},
    },
    'resources': {
        'first': {'type': 'OS::Heat::TestResource', 'properties': {'value': {'get_param': 'text'}}},
        'second': {
            'type': 'OS::Heat::Value',
            'depends_on': ['first'],
            'properties': {'value': {'list_join': [',', [{'get_attr': ['first', 'output']}, {'get_param': 'secret'}]]}},
        },
        'random': {'type': 'OS::Heat::RandomString', 'properties': {'length': 8}, 'metadata': {'k': 'v'}},
    },
    'outputs': {'shown': {'description': 'd', 'value': {'get_attr': ['second', 'value']}}},
}
"""A template with a parameter of every type."""

ENVIRONMENTS = (
    {'parameters': {'text': 'x', 'number': 2, 'names': 'c,d', 'tree': {'a': {'c': 2}}, 'flag': True}},
    {
        'parameters': {'number': 1.5, 'names': ['e'], 'tree': '{"z": [1, {"y": null}]}'},
        'parameter_defaults': {'text': 'y', 'other': [1, 2]},
        'parameter_merge_strategies': {'default': 'deep_merge', 'text': 'merge', 'flag': 'overwrite'},
        'encrypted_param_names': ['text'],
    },
    {
        'resource_registry': {
            'My::Type': 'OS::Heat::Value',
            'Other::*': 'OS::Heat::*',
            'resources': {'first': {'hooks': 'pre-create', 'restricted_actions': ['replace']}},
        },
        'parameter_merge_strategies': {'tree': 'merge', 'names': 'merge', 'number': 'merge'},
        'event_sinks': [],
    },
)


@cache
def templates() -> tuple[str, ...]:
    """The texts of the examples and of the templates that the tests of the language keep."""
    places = (ROOT / 'examples', ROOT / 'tests/template/documents')
    paths = [path for place in places for path in sorted(place.rglob('*')) if path.suffix in ('.yaml', '.json')]
    texts = [path.read_bytes().decode('utf-8-sig') for path in paths]
    return (*texts, json.dumps(TEMPLATE))


@cache
def environments() -> tuple[str, ...]:
    """Environments, as texts."""
    return tuple(json.dumps(each) for each in ENVIRONMENTS)


@cache
def merges() -> tuple[str, ...]:
    """Several environment files and what the request says besides them, as one text."""
    first, second, third = environments()
    return (SEPARATOR.join((first, second, third)), SEPARATOR.join((second, first, '{}')), SEPARATOR.join((third,) * 3))
