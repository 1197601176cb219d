"""The commit-msg hook: which messages it accepts, and that git runs it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import yaml

from tests.architecture.source import ROOT

SCRIPT = ROOT / '.ci' / 'commit_message.py'
specification = importlib.util.spec_from_file_location('commit_message', SCRIPT)
hook = importlib.util.module_from_spec(specification)
specification.loader.exec_module(hook)

BODY = '\n\nBecause of this.\n'


@pytest.mark.parametrize(
    'message',
    [
        f'db: name the columns for what they hold{BODY}',
        f'core, engine: leave ordered mode to the simulator{BODY}',
        f'tests/cli: process one page{BODY}',
        f'# a comment of git\n\nworker: pass rows on\n# another\n{BODY}',
        "Merge branch 'main' into house/docs",
        'fixup! db: name the columns',
    ],
)
def test_a_message_of_the_right_form_is_accepted(message):
    assert hook.problems(message) == []


@pytest.mark.parametrize(
    ('message', 'problem'),
    [
        ('', 'empty'),
        ('# nothing but comments', 'empty'),
        (f'What a template was compiled from is told once{BODY}', 'area: imperative'),
        (f'db: Name the columns{BODY}', 'area: imperative'),
        (f'db: name the columns.{BODY}', 'area: imperative'),
        (f'db: named the columns{BODY}', 'not imperative'),
        (f'db: names the columns{BODY}', 'not imperative'),
        (f'db: naming the columns{BODY}', 'not imperative'),
        (f'db: {"name " * 14}columns{BODY}', '81 characters'),
        ('db: name the columns', 'body'),
        ('db: name the columns\n\n# only comments\n', 'body'),
        ('db: name the columns\nfor what they hold', 'empty line'),
    ],
)
def test_a_message_of_another_form_is_refused_with_the_reason(message, problem):
    assert any(problem in each for each in hook.problems(message)), hook.problems(message)


def test_the_exit_code_stops_the_commit(tmp_path):
    path = tmp_path / 'COMMIT_EDITMSG'
    path.write_text('Changes')
    done = subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, 'area: imperative' in done.stderr) == (1, True)
    path.write_text(f'db: name the columns{BODY}')
    assert subprocess.run([sys.executable, str(SCRIPT), str(path)], check=False).returncode == 0


def test_pre_commit_runs_the_hook():
    configured = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())
    assert 'commit-msg' in configured['default_install_hook_types']
    [entry] = [each for repo in configured['repos'] for each in repo['hooks'] if each.get('stages') == ['commit-msg']]
    assert entry['entry'].split()[-1] == SCRIPT.relative_to(ROOT).as_posix()
