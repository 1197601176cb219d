"""The page on environments says what is so."""

import re
import textwrap

import pytest

from convergence.core.model import Hook, Restriction
from convergence.resources.checks import BUILTIN
from convergence.template import StackIdentity, compile
from convergence.template.environment import SECTIONS, Strategy


@pytest.fixture
def page(request):
    return (request.config.rootpath / 'docs' / 'environments.rst').read_text(encoding='utf-8')


def entries(text):
    """The first cells of the tables in a text."""
    return re.findall(r'^``([\w-]+)`` ', text, re.MULTILINE)


def test_the_custom_constraints_are_listed(page):
    assert entries(page.partition('\nCustom constraints\n')[2]) == list(BUILTIN)


def test_the_strategies_hooks_restrictions_and_sections_are_listed(page):
    assert entries(page.partition('\nSeveral files\n')[2].partition('\nEvent sinks\n')[0]) == list(Strategy)
    assert all(f'``{word}``' in page or f': {word}``' in page for word in (*Hook, *Restriction))
    assert all(f'``{section}``' in page for section in SECTIONS)


def test_the_example_is_an_environment(page):
    example = page.partition('   :name: environment\n\n')[2].partition('\nEvery section')[0]
    template = """
heat_template_version: newton
parameters: {size: {type: number}, zone: {type: string}}
resources: {database_1: {type: 'My::Server', properties: {value: {get_param: zone}}}}
"""
    compiled = compile(template, identity=StackIdentity('i', 'n', 'p'), environment=textwrap.dedent(example))
    found = compiled.goal.definitions['database_1']
    assert (found.type, found.restrictions) == ('OS::Heat::TestResource', (Restriction.REPLACE,))
    assert (compiled.parameters['size'].value, compiled.parameters['zone'].value) == (3, 'east')
