"""The plugin guide's example is what it claims to be, and works."""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
import types

import pytest

from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template import Identity, compile
from convergence.testing import conformance


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
    validate(compile(text, identity=Identity('i', 'n', 'p')), registry)


def test_every_case_of_the_kit_is_in_the_guide(guide):
    kit = importlib.import_module('convergence.testing.conformance')
    names = [name for name, thing in vars(kit).items() if getattr(thing, '__annotations__', {}).get('fixture')]
    documented = [name for name in names if not name.startswith('_') and name not in ('conformance', 'Case')]
    assert len(documented) >= 11
    assert [name for name in documented if f'``{name}``' not in guide] == []
