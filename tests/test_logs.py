"""Log lines say what they are about and show no secret."""

import io
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_context import context as request_context

from convergence import logs


@pytest.fixture
def stream(monkeypatch):
    """What a process with default options writes to stderr; logging is put back afterwards."""
    written = io.StringIO()
    root = logging.getLogger()
    before, level, hook = list(root.handlers), root.level, sys.excepthook
    monkeypatch.setattr(sys, 'stderr', written)
    conf = cfg.ConfigOpts()
    logs.register(conf)
    conf([], project='convergence', default_config_files=[])
    logs.set_up(conf, 'convergence-test')
    yield written
    root.handlers[:] = before
    root.setLevel(level)
    sys.excepthook = hook


def test_a_line_names_what_it_is_about_in_a_fixed_order(stream):
    with logs.bind(stack='s1', request_id='req-7'), logs.bind(node=4, traversal='t1', worker='w1'):
        logging.getLogger('convergence.worker').info('created %s', 'web')
    assert (
        stream.getvalue()
        .rstrip()
        .endswith('INFO convergence.worker [request_id=req-7 stack=s1 traversal=t1 node=4 worker=w1] created web')
    )


def test_a_line_outside_any_work_has_no_empty_brackets(stream):
    logging.getLogger('convergence').info('ready')
    assert stream.getvalue().rstrip().endswith('INFO convergence ready')


def test_an_inner_block_adds_and_takes_away_and_ends(stream):
    with logs.bind(stack='s1', node=1):
        with logs.bind(node=None, worker='w'):
            assert logs.bound() == {'stack': 's1', 'worker': 'w'}
        assert logs.bound() == {'stack': 's1', 'node': '1'}
    assert logs.bound() == {}


def test_the_request_id_comes_from_the_request_if_nobody_bound_one(stream):
    request_context.RequestContext(request_id='req-from-caller')
    logging.getLogger('convergence').info('asked')
    with logs.bind(request_id='req-bound'):
        logging.getLogger('convergence').info('asked')
    first, second = stream.getvalue().splitlines()
    assert '[request_id=req-from-caller] asked' in first
    assert '[request_id=req-bound] asked' in second


def test_other_threads_are_about_something_else():
    seen = {}

    def work(number):
        with logs.bind(stack=number):
            barrier.wait()
            seen[number] = dict(logs.bound())

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {1: {'stack': '1'}, 2: {'stack': '2'}}


def test_a_misspelt_field_is_refused():
    with pytest.raises(TypeError, match=r'no field stak.*stack'), logs.bind(stak='s1'):
        pass


@pytest.mark.parametrize(
    'text',
    [
        'connecting to rabbit://guest:hunter2@broker:5672/',
        'postgresql+psycopg2://convergence:hunter2@db/convergence failed',
        "{'password': 'hunter2', 'name': 'x'}",
        'admin_password = hunter2',
        '{"auth_token": "hunter2"}',
    ],
)
def test_secrets_are_masked_in_messages(stream, text):
    logging.getLogger('convergence').warning('%s', text)
    assert '***' in stream.getvalue()
    assert 'hunter2' not in stream.getvalue()


def test_secrets_are_masked_in_tracebacks_and_the_traceback_is_there(stream):
    try:
        raise ValueError('mysql://root:hunter2@127.0.0.1/ does not answer')
    except ValueError:
        with logs.bind(stack='s1'):
            logging.getLogger('convergence').exception('no database')
    text = stream.getvalue()
    assert 'Traceback' in text
    assert 'mysql://root:***@127.0.0.1/' in text
    assert 'hunter2' not in text
    assert all('[stack=s1]' in line for line in text.splitlines())


def test_a_url_without_a_password_stays_readable():
    assert logs.mask('http://127.0.0.1:8080/a@b and sqlite:///x') == 'http://127.0.0.1:8080/a@b and sqlite:///x'


def test_lines_in_json_carry_the_same_fields(monkeypatch):
    """For installations that collect their logs by machine."""
    import json

    written = io.StringIO()
    root = logging.getLogger()
    before, level, hook = list(root.handlers), root.level, sys.excepthook
    monkeypatch.setattr(sys, 'stderr', written)
    conf = cfg.ConfigOpts()
    logs.register(conf)
    conf([], project='convergence', default_config_files=[])
    conf.set_override('use_json', True)
    logs.set_up(conf, 'convergence-test')
    try:
        with logs.bind(stack='s1', traversal='t1'):
            logging.getLogger('convergence').warning('password=hunter2')
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        sys.excepthook = hook
    line = json.loads(written.getvalue())
    assert (line['extra']['stack'], line['extra']['traversal']) == ('s1', 't1')
    assert 'hunter2' not in written.getvalue()


def test_a_log_that_cannot_be_written_says_so_once_and_shows_no_traceback(tmp_path):
    """In a process of its own: here the handlers are those of the tests."""
    program = tmp_path / 'program.py'
    program.write_text(
        'import logging\n'
        'from oslo_config import cfg\n'
        'from convergence import logs\n'
        'conf = cfg.ConfigOpts()\n'
        'logs.register(conf)\n'
        "conf(['--log-file', '/dev/full'], project='convergence', default_config_files=[])\n"
        "logs.set_up(conf, 'convergence-test')\n"
        'for number in range(5):\n'
        "    logging.getLogger('convergence.somewhere').error('line %d', number)\n"
    )
    environment = {**os.environ, 'PYTHONPATH': str(Path(__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    told = [line for line in ended.stderr.splitlines() if 'cannot be written' in line]
    assert told == ['The log cannot be written (OSError: [Errno 28] No space left on device); lines are lost.']
    assert '--- Logging error ---' not in ended.stderr
