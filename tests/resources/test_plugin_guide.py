"""The plugin guide's example is what it claims to be, and works."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import textwrap
import types

import pytest

from convergence.config import WorkerSettings
from convergence.resources import contract
from convergence.resources.constraints import AllowedPattern, AllowedValues, Length, Modulo, Range
from convergence.resources.contract import GROUPS, HOOKS, FutureValue, Outline
from convergence.resources.custom import NAMESPACE, CustomConstraints
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.resources.validation import validate
from convergence.template import StackIdentity, compile
from convergence.testing import conformance
from convergence.worker.attempts.attempt import PollPolicy


@pytest.fixture
def guide(request):
    return (request.config.rootpath / 'docs' / 'plugins.rst').read_text(encoding='utf-8')


@pytest.fixture
def module(guide, monkeypatch, tmp_path):
    """The guide's code, as a module that runs where nothing else is."""
    monkeypatch.chdir(tmp_path)
    code = types.ModuleType('motto_of_the_guide')
    monkeypatch.setitem(sys.modules, code.__name__, code)
    for name in ('motto', 'conformance'):
        exec(block(guide, f'.. code-block:: python\n   :name: {name}\n'), vars(code))  # noqa: S102 - our own documentation
    return code


def block(guide, header):
    """The indented text after a directive."""
    after = guide.partition(header)[2]
    assert after, header
    return textwrap.dedent(re.match(r'(?:\n|[ ]+.*\n)+', after)[0])


def test_the_example_is_as_short_as_promised(guide):
    lines = block(guide, '.. code-block:: python\n   :name: motto\n').splitlines()
    body = [line for line in lines if line.strip() and not re.match(r'from|import', line)]
    assert len(body) <= 15


def test_the_example_passes_its_own_conformance_test(module, tmp_path):
    cases = conformance(module.MOTTO)
    assert {str(case) for case in cases} >= {'lives', 'is_created_twice', 'is_updated_twice', 'survives_lost_answers'}
    for case in cases:
        case.run()
    assert list(tmp_path.iterdir()) == []


def test_the_template_of_the_guide_is_valid(guide, module):
    text = block(guide, '.. code-block:: yaml\n')
    registry = Registry({'Example::Motto': module.Motto})
    validate(compile(text, identity=StackIdentity('i', 'n', 'p')), registry)


def test_the_tables_of_methods_are_complete(guide):
    section = guide.partition('The methods\n===========\n')[2].partition('\nChecks before an operation\n')[0]
    tables = re.findall(r'^=+ =+\n(.*?)^=+ =+$', section, flags=re.MULTILINE | re.DOTALL)
    documented = [re.findall(r'^``(\w+)`` ', table, re.MULTILINE) for table in tables]
    assert documented == [[name for name in HOOKS if name in vars(group)] for group in GROUPS]


@pytest.mark.parametrize('kind', [Length, Range, Modulo, AllowedValues, AllowedPattern])
def test_the_arguments_of_the_constraints_are_right(guide, kind):
    *arguments, last = (entry.name for entry in dataclasses.fields(kind) if entry.init)
    assert f'``{kind.__name__}({", ".join(arguments)})``' in guide
    assert last == 'description'


def test_the_rules_for_old_names_do_what_is_said(guide, monkeypatch):
    module = types.ModuleType('server_of_the_guide')
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(block(guide, '.. code-block:: python\n   :name: translations\n'), vars(module))  # noqa: S102 - as above
    schema = PropertySchema.of(module.ServerProperties)
    old = {'flavour': 'small', 'group': 'web', 'legacy_flag': True, 'state': 'OFF'}
    new = {'flavor': 'small', 'groups': ['web'], 'state': 'off'}
    assert schema.changed(old, new) == frozenset()
    assert schema.parse(old) == schema.parse(new)


def test_the_constraint_of_the_guide_is_one(guide):
    module = types.ModuleType('constraint_of_the_guide')
    exec(block(guide, '.. code-block:: python\n   :name: constraint\n'), vars(module))  # noqa: S102 - as above
    checks = CustomConstraints({'example.odd': module.check_odd})
    assert checks.check('example.odd', 3) is None
    assert checks.check('example.odd', 4) == 'it must be odd'
    assert f'group ``{NAMESPACE}``' in guide


def test_the_number_of_attempts_is_that_of_the_option(guide):
    (told,) = re.findall(r'``\[worker\] transient_attempts``\s+times \((\d+) unless', guide)
    assert int(told) == WorkerSettings().transient_attempts == PollPolicy().transient_attempts


def test_every_answer_and_error_of_the_contract_is_in_the_guide(guide):
    section = guide.partition('Answers and errors\n')[2].partition('``convergence.plugin``')[0]
    told = set(re.findall(r'^``(\w+)', section, re.MULTILINE))
    kinds = [thing for thing in vars(contract).values() if isinstance(thing, type)]
    raised = {kind.__name__ for kind in kinds if issubclass(kind, contract.PluginFailure)} - {'PluginFailure'}
    assert told == {'Done', 'InProgress', *raised}


def test_what_the_guide_says_about_attributes_is_where_it_says(guide):
    module = importlib.import_module('convergence.resources.attributes')
    assert f'``AnyAttribute``, from ``{module.__name__}``' in guide
    assert callable(module.attr)
    assert isinstance(module.AnyAttribute, type)


def test_every_case_of_the_kit_is_in_the_guide(guide):
    kit = importlib.import_module('convergence.testing.conformance')
    names = [name for name, thing in vars(kit).items() if getattr(thing, '__annotations__', {}).get('fixture')]
    documented = [name for name in names if not name.startswith('_') and name not in ('conformance', 'Case')]
    assert len(documented) >= 11
    assert [name for name in documented if f'``{name}``' not in guide] == []


def test_the_port_of_the_guide_waits_for_its_subnets(guide):
    module = types.ModuleType('port_of_the_guide')
    exec(block(guide, '.. code-block:: python\n   :name: implied\n'), vars(module))  # noqa: S102 - as above
    one, other = FutureValue('{"get_resource": "net"}', 'net'), FutureValue('{"get_resource": "far"}', 'far')
    outlines = [
        Outline('port', 'Example::Port', {'network': one}),
        Outline('near', 'Example::Subnet', {'network': one}),
        Outline('away', 'Example::Subnet', {'network': other}),
    ]
    assert module.Port().implied(outlines[0], {each.name: each for each in outlines}) == ['near']


def test_the_server_of_the_guide_says_what_an_update_would_do(guide):
    class Nova:
        def find_flavor(self, name):
            ids = {'tiny': '1', '1': '1', 'small': '2'}
            return types.SimpleNamespace(id=ids[name]) if name in ids else None

        def can_resize(self, physical_id):
            return physical_id == 'quick'

    def call(flavor, physical_id='quick'):
        before, after = (types.SimpleNamespace(flavor=each) for each in ('tiny', flavor))
        return types.SimpleNamespace(previous=before, properties=after, physical_id=physical_id)

    module = types.ModuleType('server_of_the_guide')
    module.nova = lambda call: Nova()
    exec(block(guide, '.. code-block:: python\n   :name: plan\n'), vars(module))  # noqa: S102 - as above
    server, change = module.Server(), contract.Change
    assert (server.implements('plan'), server.implements('validate')) == (True, True)
    asked = [server.plan(call('1')), server.plan(call('small')), server.plan(call('small', 'slow'))]
    assert asked == [change.NONE, change.IN_PLACE, change.REPLACE]
    for ask in (server.validate, server.plan):
        with pytest.raises(contract.FinalFailure, match='there is no huge'):
            ask(call('huge'))
