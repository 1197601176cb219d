"""Asks both for the values of expressions."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from convergence.errors import ConvergenceError
from convergence.expressions import evaluator
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
    """What we make of a case: its value, or `REFUSED`."""
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
    """What the reference makes of the cases: a value each, or `REFUSED`."""
    return [answer.get('value') if 'value' in answer else REFUSED for answer in _asked('reference.py', cases)]


def corpus():
    """The templates that the packages of the reference carry, with what it makes of each; see `tests.differential.corpus`."""
    return _asked('corpus.py')


def understood(text, parameters):
    """What we make of a template: what each resource requires, and the outputs; or what is wrong with it."""
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


def _asked(program, question=None):
    """What a program answers that runs where the reference is."""
    path = Path(__file__).with_name(program)
    done = subprocess.run(
        [interpreter(), path], input=json.dumps(question), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
