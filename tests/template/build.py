"""Small templates for the tests of the language."""

import json

import pytest

from convergence.core.model import Output
from convergence.errors import StackValidationFailed
from convergence.template import StackIdentity, compile, resolve

IDENTITY = StackIdentity(stack_id='id-1', stack_name='shop', project_id='project-1')
OLDEST, SEVERAL_LISTS, NEWEST = '2013-05-23', '2015-10-15', '2021-04-16'


def compiled(text, **arguments):
    """The template, compiled; a version line is put in front unless there is one."""
    if isinstance(text, str) and 'heat_template_version' not in text:
        text = f'heat_template_version: {NEWEST}\n{text}'
    return compile(text, identity=IDENTITY, **arguments)


def encoded_property(value, *, version=NEWEST, **arguments):
    """Return the encoded value of a property of the resource `web`, beside resources `db` and `net`."""
    template = {
        'heat_template_version': version,
        'parameters': arguments.pop('declared', {}),
        'resources': {
            'web': {'type': 'T', 'properties': {'x': value}},
            'db': {'type': 'T'},
            'net': {'type': 'T'},
        },
    }
    result = compile(json.dumps(template), identity=IDENTITY, **arguments)
    return result.goal.definitions['web'].properties['x']


def resolved_property(value, *, inputs=None, **arguments):
    """The value of that property once the other resources are there."""
    return resolve(encoded_property(value, **arguments), inputs if inputs is not None else INPUTS)


def problems(text, kind=StackValidationFailed, **arguments):
    """The problems of a template that must be refused with exactly this kind of error."""
    with pytest.raises(StackValidationFailed) as caught:
        compiled(text, **arguments)
    assert type(caught.value) is kind, caught.value
    return caught.value.problems


INPUTS = {
    'db': Output(
        resource_id='r1',
        reference='db-7',
        attributes={
            'port': 5432,
            'names': ['a', 'b', None],
            'tree': {'left': {'right': 'leaf'}, '3': 'three', 'list': [{'k': 'v'}]},
            'function': {'get_resource': 'web'},
            '': {'port': 5432, 'a': 'an attribute whose name is known only now'},
        },
        errors={'broken': 'the service said no'},
    ),
    'net': Output(resource_id='r2', reference=None),
}
