"""What the README tells a newcomer to type works, and the code that it shows is the code that runs."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / 'README.rst').read_text(encoding='utf-8')


def test_the_first_stack_does_what_is_said(tmp_path):
    assert '.venv/bin/python -W ignore examples/hello.py' in README
    for _ in range(2):  # the second time finds the database of the first
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', str(ROOT / 'examples' / 'hello.py')],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        # An environment for tests may have both plugins of OpenStack, of which the operator is to choose one.
        errors = [line for line in done.stderr.splitlines() if not line.startswith('Several packages offer ')]
        assert (done.stdout, errors, done.returncode) == ('CREATE COMPLETE\ngreeting = Hello, reader!\n', [], 0)
    assert (tmp_path / 'convergence-data' / 'convergence.sqlite').exists()


def test_the_code_that_is_shown_is_the_code_of_the_example():
    shown = re.search(r'\.\. code-block:: python\n\n((?:    .*\n|\n)+)', README)
    assert shown is not None
    assert textwrap.dedent(shown[1]).strip() in (ROOT / 'examples' / 'hello.py').read_text(encoding='utf-8')


@pytest.mark.parametrize('path', re.findall(r'``((?:[a-z_.-]+/)+(?:[a-z_.-]+\.[a-z]+)?)``', README))
def test_what_is_named_exists(path):
    """The table of questions names paths below `convergence/`."""
    is_there = (ROOT / path).exists() or (ROOT / 'convergence' / path).exists()
    assert is_there or path in ('architecture/', 'convergence-data/convergence.sqlite')


@pytest.mark.parametrize('program', sorted(set(re.findall(r'^    (convergence-[a-z-]+)', README, re.MULTILINE))))
def test_every_program_that_is_named_is_installed(program):
    assert f'{program} = convergence.cmd.' in (ROOT / 'setup.cfg').read_text(encoding='utf-8')


@pytest.mark.parametrize('target', sorted(set(re.findall(r'(?:^    |``)make ([a-z]+)', README, re.MULTILINE))))
def test_every_target_that_is_named_can_be_made(target):
    assert re.search(rf'^{target}:', (ROOT / 'Makefile').read_text(encoding='utf-8'), re.MULTILINE)
