"""``make demo``, as its user runs it: really, in a process of its own."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convergence.cmd.demo import left_over

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(tmp_path):
    """A temporary directory of the test's own, by which everything that the demo starts can be recognised."""
    yield tmp_path
    for pid in processes(tmp_path):
        os.kill(pid, signal.SIGKILL)


def processes(directory):
    """Processes that were started with `directory` as their temporary directory, and their descendants."""
    found = []
    for environment in Path('/proc').glob('[0-9]*/environ'):
        try:
            if f'TMPDIR={directory}'.encode() in environment.read_bytes().split(b'\0'):
                found.append(int(environment.parent.name))
        except OSError:  # it has ended, or is somebody else's
            continue
    return found


def start(world, *arguments):
    """The demo, with its output in a pipe."""
    return subprocess.Popen(
        [sys.executable, '-m', 'convergence.cmd.demo', *arguments],
        cwd=ROOT,
        env=os.environ | {'TMPDIR': str(world), 'PYTHONUNBUFFERED': '1', 'PYTHONIOENCODING': 'utf-8'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding='utf-8',
    )


def examples(world, change):
    """The examples, with the first site changed by `change`, somewhere else."""
    directory = world / 'examples'
    directory.mkdir()
    text = (ROOT / 'examples' / 'site.yaml').read_text(encoding='utf-8')
    changed = change(text)
    assert changed != text
    (directory / 'site.yaml').write_text(changed, encoding='utf-8')
    for name in ('site-update.yaml', 'scaling.yaml'):
        shutil.copy(ROOT / 'examples' / name, directory)
    return str(directory)


def test_everything_comes_true_and_nothing_is_left(world):
    with start(world) as demo:
        printed, _ = demo.communicate(timeout=240)
    assert demo.returncode == 0, printed
    for text in (
        'The stack is CREATE_COMPLETE',
        '200 Hello from Convergence (first edition)',
        'The stack is UPDATE_COMPLETE',
        'The result is that of the preview',
        '200 Good day from Convergence (second edition)',
        'has taken its place in',
        'The stack is DELETE_COMPLETE',
        'No process is left running',
        'GET / of both: 200 Hello from the group',
        'Another signal has ended the oldest',
        'checks passed.',
    ):
        assert text in printed
    assert 'Warning' not in printed
    assert processes(world) == []
    assert list(world.iterdir()) == []


@pytest.mark.parametrize('number', [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interruption_removes_what_was_made(world, number):
    with start(world) as demo:
        assert demo.stdout is not None
        printed = ''
        for line in demo.stdout:
            printed += line
            if 'GET /private, with the password' in line:  # the site is up, and the update has not begun
                assert len(processes(world)) == 3  # the demo, the server, the site
                demo.send_signal(number)
                break
        printed += demo.stdout.read()
        demo.wait(timeout=240)
    assert demo.returncode == 130, printed
    assert 'Interrupted. Deleting the stacks' in printed
    assert 'The stack is DELETE_COMPLETE' not in printed
    assert processes(world) == []
    assert list(world.iterdir()) == []


@pytest.mark.long
def test_a_site_that_does_not_come_up_fails_the_demo_and_leaves_only_the_log(world):
    directory = examples(world, lambda text: text.replace('import configparser\n', 'raise SystemExit(1)\n', 1))
    with start(world, '--examples', directory) as demo:
        printed, _ = demo.communicate(timeout=240)
    assert demo.returncode == 1, printed
    assert 'The stack is CREATE_FAILED' in printed
    assert 'ended at once; see its log' in ' '.join(printed.split())
    assert 'checks failed.' in printed
    assert processes(world) == []
    (kept,) = (path for path in world.iterdir() if path.name != 'examples')
    assert left_over(kept / 'local') == []
    assert (kept / 'demo.log').stat().st_size > 0


@pytest.mark.long
def test_a_site_that_says_something_else_fails_the_demo(world):
    directory = examples(world, lambda text: text.replace('You know the password.', 'Who are you?', 1))
    with start(world, '--examples', directory) as demo:
        printed, _ = demo.communicate(timeout=240)
    assert demo.returncode == 1, printed
    words = ' '.join(printed.split())
    assert re.search(r'\b1 of \d+ checks failed\.', words)
    assert "(200, 'Who are you?')" in words
    assert processes(world) == []


def test_without_the_examples_the_demo_says_where_it_looked(world):
    with start(world, '--examples', str(world)) as demo:
        printed, _ = demo.communicate(timeout=240)
    assert demo.returncode == 2
    assert str(world / 'site.yaml') in printed
    assert '--examples DIRECTORY' in printed


def test_what_is_left_over_is_found(tmp_path):
    for path in ('.convergence/owners', '.convergence/processes', 'd'):
        (tmp_path / path).mkdir(parents=True)
    for path in ('.convergence/lock', '.convergence/owners/x.json', 'd/f'):
        (tmp_path / path).touch()
    assert left_over(tmp_path) == ['.convergence/owners/x.json', 'd', 'd/f']
