"""Asks both for the values of expressions, for what templates mean, and for what resource types declare."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import make_dataclass
from pathlib import Path

from convergence.core.model import Json
from convergence.errors import ConvergenceError
from convergence.expressions import evaluator
from convergence.resources.attributes import ABOUT_SHOW, SHOW, describe_attributes
from convergence.resources.builtin import builtin_types
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.support import SUPPORTED, Status
from convergence.template import Installation, Require, StackIdentity, analyse, compile, resolve

PYTHON = 'CONVERGENCE_REFERENCE_PYTHON'
"""The environment variable that names the interpreter of an environment in which the reference is installed."""

REFUSED = 'refused'
IDENTITY = StackIdentity('id-1', 'shop', 'project')
NEWEST = '2021-04-16'


def case_of(value, version=NEWEST, parameters=None, files=None):
    """A case as both sides read it: a value, and the template around it."""
    is_cloud = version in ('2010-09-09', '2012-12-12')
    key = {'2010-09-09': 'AWSTemplateFormatVersion', '2012-12-12': 'HeatTemplateFormatVersion'}
    return {
        'key': key.get(version, 'heat_template_version'),
        'version': version,
        'section': 'Parameters' if is_cloud else 'parameters',
        'parameters': parameters or {},
        'files': files or {},
        'value': value,
    }


@functools.cache
def _installation():
    return Installation(yaql=evaluator())


def ours(case):
    """Return our result for a case: its value, or `REFUSED`."""
    is_cloud = case['section'] == 'Parameters'
    words = ('Resources', 'Type', 'Properties') if is_cloud else ('resources', 'type', 'properties')
    section, type_, properties = words
    document = {
        case['key']: case['version'],
        case['section']: case['parameters'],
        section: {'only': {type_: 'T', properties: {'x': case['value']}}},
    }
    try:
        compiled = compile(document, identity=IDENTITY, files=case['files'], installation=_installation())
        return resolve(compiled.goal.definitions['only'].properties, {}, evaluator()).get('x')
    except ConvergenceError:
        return REFUSED


def interpreter():
    """An interpreter that has the reference, or None."""
    if os.environ.get(PYTHON):
        return os.environ[PYTHON]
    return sys.executable if importlib.util.find_spec('heat') else None


def theirs(cases):
    """Return the results of the reference for the cases: a value each, or `REFUSED`."""
    return [answer.get('value') if 'value' in answer else REFUSED for answer in _asked('reference.py', cases)]


def corpus():
    """The templates that the packages of the reference carry, with what it makes of each; see `tests.differential.corpus`."""
    return _asked('corpus.py')


def understood(text, parameters):
    """Return our result for a template: the requirements of each resource and the outputs, or the errors."""
    try:
        compiled = analyse(
            text,
            identity=IDENTITY,
            parameters=parameters,
            installation=_installation(),
            require_parameters=Require.NONE,
        )
    except ConvergenceError as error:
        return {'refused': [str(error)]}
    if compiled.problems:
        return {'refused': [problem.message for problem in compiled.problems.found()]}
    resources = {name: sorted(each.requires) for name, each in compiled.goal.definitions.items()}
    return {'resources': resources, 'outputs': sorted(compiled.outputs)}


def read_there(values):
    """Return the coerced values of the reference by type of property; see `tests.differential.coerced`."""
    told = _asked('coerced.py', values)
    return {kind: [answer.get('value', REFUSED) for answer in answers] for kind, answers in told.items()}


def read_here(values):
    """The same of ours."""
    return {kind: [_read(annotation, value) for value in values] for kind, annotation in _ANNOTATIONS.items()}


_ANNOTATIONS = {'string': str, 'integer': int, 'number': float, 'boolean': bool, 'list': list, 'map': dict, 'any': Json}


def _read(annotation, value):
    schema = PropertySchema.of(make_dataclass('One', [('one', annotation, prop())], frozen=True))
    try:
        return schema.parse({'one': value}).one
    except ConvergenceError:
        return REFUSED


def declared_there(*beginnings):
    """Return the declarations of the reference's types with a prefix; see `tests.differential.declared`."""
    return _asked('declared.py', beginnings)


def declared_here():
    """The same of ours, in the same form."""
    types = builtin_types()
    return {name: _declared(kind) for name, kind in types.items()}


def _declared(kind):
    return {
        'properties': _properties(kind.Properties),
        'attributes': describe_attributes(kind) | {SHOW: ABOUT_SHOW},
        'update_policy': _properties(kind.UpdatePolicy) if kind.UpdatePolicy is not None else {},
        'support_status': kind.support.document(),
    }


def _properties(declared):
    """Return the visible and hidden declarations, each with its support status."""
    schema = PropertySchema.of(declared)
    return _together(schema.describe(whole=True), schema.describe())


def _together(whole, shown):
    return {
        name: entry | about | {'schema': _together(entry.get('schema', {}), about.get('schema', {}))}
        for name, entry in whole.items()
        for about in [shown.get(name, {})]
        if about or entry.get('support_status', {}).get('status') == Status.HIDDEN
    }


def differing(here, there):
    """Return the differences of two declarations by place: both values, None for a missing one."""
    us, them = places(here), places(there)
    both = us.keys() & them.keys()
    # Of what is on one side only it is told that it is there, and not all that it says.
    alone = {place for place in us.keys() ^ them.keys() if place.rpartition('.')[0] in both}
    return {place: (us.get(place), them.get(place)) for place in {*alone, *(at for at in both if us[at] != them[at])}}


def places(declared):
    """Return the declaration of a type by place."""
    told = {'support_status': declared['support_status']}
    for section in ('properties', 'attributes', 'update_policy'):
        told[section] = _THERE
        told.update(_entries(declared[section], section))
    return told


_THERE = {}
"""Keys of whole properties and attributes, whose parts are compared one by one."""
_UNSAID = {'description', 'nullable', 'secret'}
"""Keys that may differ: texts for people, and keys that neither API shows."""


def _entries(entries, around):
    for name, entry in entries.items():
        place = f'{around}.{name}'
        yield place, _THERE
        usual = {} if around == 'attributes' else {'support_status': SUPPORTED.document()}
        for key, value in (usual | entry).items():
            if key not in {*_UNSAID, 'schema'}:
                yield f'{place}.{key}', value
        yield from _entries(entry.get('schema', {}), place)


def _asked(program, question=None):
    """Return the answer of a program that runs beside the reference."""
    path = Path(__file__).with_name(program)
    done = subprocess.run(
        [interpreter(), path], input=json.dumps(question), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
