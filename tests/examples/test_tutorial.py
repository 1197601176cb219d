"""The tutorial: its templates are valid, its type passes the kit, its commands and options exist."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
import types
from itertools import pairwise
from pathlib import Path

import click
import pytest

from convergence.cmd.convergence import program
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.testing import Fixture, conformance
from tests.template.build import compiled

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text(encoding='utf-8') for path in sorted((ROOT / 'docs' / 'tutorial').glob('*.rst'))}
BLOCK = re.compile(r'^\.\. code-block:: \w+\n   :name: (\S+)\n\n((?:    .*\n|\n)+)', re.MULTILINE)
FILES = {name: textwrap.dedent(text) for page in PAGES.values() for name, text in BLOCK.findall(page)}
COMMANDS = re.findall(r'^    (convergence .*)$', '\n'.join(PAGES.values()), re.MULTILINE)


@pytest.fixture
def motto(monkeypatch, tmp_path):
    """The type of the tutorial."""
    monkeypatch.chdir(tmp_path)
    code = types.ModuleType('motto_of_the_tutorial')
    monkeypatch.setitem(sys.modules, code.__name__, code)
    exec(FILES['motto.py'], vars(code))  # noqa: S102 - our own documentation
    return code.Motto


@pytest.mark.parametrize('name', [name for name in FILES if name.endswith('.yaml')])
def test_the_templates_are_valid(name, motto):
    assert validate(compiled(FILES[name]), Registry.builtin(more={'Example::Motto': motto()})) == []


def test_the_type_passes_the_kit(motto):
    for case in conformance(Fixture(motto, {'text': 'Nothing is lost.'}, changed={'text': 'Everything flows.'})):
        case.run()


@pytest.mark.parametrize('line', sorted(set(COMMANDS)))
def test_the_commands_exist(line):
    words = shlex.split(line)[1:]
    found: click.Command | None = program
    while isinstance(found, click.Group) and words:
        found = found.get_command(click.Context(found), words.pop(0))
    assert found is not None
    assert not isinstance(found, click.Group)
    options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith('-')} <= options | {'--config-file'}


def test_each_lesson_names_the_next_one():
    lessons = [name for name in PAGES if name != 'index.rst']
    assert lessons == sorted(re.findall(r'<(\d-[\w-]+\.rst)>', PAGES['index.rst']))
    assert all(f'<{after}>' in PAGES[before] for before, after in pairwise(lessons))
