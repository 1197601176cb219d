"""The page on templates says what is so."""

import dataclasses
import re
import textwrap
from pathlib import Path

import pytest

from convergence.cli.template.commands import template
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template.limits import Limits
from convergence.template.versions import VERSIONS
from tests.template.build import compiled

PAGE = (Path(__file__).parents[2] / 'docs' / 'templates.rst').read_text(encoding='utf-8')


def section(title):
    """The text below a heading, up to the next one."""
    return re.split(r'\n[^\n]+\n=+\n', PAGE.partition(f'\n{title}\n{"=" * len(title)}\n')[2])[0]


def rows(text):
    """The first cells of a table, with the text of their rows."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r'``?([\w-]+)``? |(\d{4}-\d\d-\d\d)\b', line):
            name = match[1] or match[2]
            found[name] = line
        elif found and line.startswith('  '):
            found[name] += f'\n{line}'
    return found


def test_the_table_of_versions_is_what_the_versions_are():
    text = section('Versions').partition('=====')[1] + section('Versions').partition('=====')[2]
    border = next(line for line in text.splitlines() if line.startswith('====='))
    starts = [match.start() for match in re.finditer(r'=+', border)]
    before: set[str] = set()
    versions = list(dict.fromkeys(version.date for version in VERSIONS.values()))
    assert [name for name in rows(text) if name in versions] == versions
    for date, row in rows(text).items():
        version = VERSIONS[date]
        lines = row.splitlines()
        assert lines[0][starts[1] : starts[2]].strip() == (version.alias or '')
        new = {name for line in lines for name in re.findall(r'``([\w:]+)``', line[starts[2] : starts[3]])}
        gone = {name for line in lines for name in re.findall(r'``([\w:]+)``', line[starts[3] :])}
        functions = set(version.functions)
        assert new - before == functions - before
        assert new <= functions
        assert gone == before - functions
        before = functions


def test_each_function_of_the_newest_version_has_its_line():
    newest = list(VERSIONS.values())[-1]
    assert set(rows(section('Functions'))) == set(newest.functions)
    assert all(f'``{name}``' in section('Functions') for name in newest.conditions)


def test_the_limits_are_what_applies():
    listed = {name: int(re.search(r'`` +(\d+)', row)[1]) for name, row in rows(section('Limits')).items()}
    assert listed == dataclasses.asdict(Limits())


def test_the_options_of_the_command_exist():
    known = {option for parameter in template.commands['validate'].params for option in parameter.opts}
    named = set(re.findall(r'^``(-{1,2}[\w-]+)', section('Checking a template'), re.MULTILINE))
    assert named and named <= known
    assert all(f'``convergence template {name}' in PAGE for name in template.commands if name != 'validate')


def test_the_example_is_a_template():
    text = PAGE.partition('   :name: template\n\n')[2].partition('\nChecking')[0]
    assert validate(compiled(textwrap.dedent(text)), Registry.builtin()) == []


@pytest.mark.parametrize('key', rows(section('Resources')))
def test_the_keys_of_resources_exist(key):
    value = {'type': 'OS::Heat::None', 'condition': 'true', 'deletion_policy': 'Retain', 'depends_on': '[]'}.get(key)
    body = {
        'type': 'OS::Heat::None',
        key: value or ('{}' if key in ('properties', 'metadata', 'update_policy') else 'x'),
    }
    text = ', '.join(f'{name}: {given}' for name, given in body.items())
    assert compiled(f'resources: {{a: {{{text}}}}}\n').version
    assert len(rows(section('Resources'))) == 9
