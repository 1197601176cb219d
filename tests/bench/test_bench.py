"""``make bench`` measures what it says, on stacks that are small here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convergence import template
from tests.bench import __main__ as bench
from tests.bench.counting import Counters, counted, difference, total
from tests.bench.shapes import SHAPES, layers
from tests.bench.shapes import template as template_of
from tests.services import service

ROOT = Path(__file__).parents[2]


def requirements(shape, size):
    goal = template.compile(template_of(shape, size), identity=template.StackIdentity('', '', '')).goal
    return {name: set(one.requires) for name, one in goal.definitions.items()}


def test_each_shape_has_the_dependencies_that_its_name_says():
    assert requirements('flat', 3) == {'r0': set(), 'r1': set(), 'r2': set()}
    assert requirements('chain', 3) == {'r0': set(), 'r1': {'r0'}, 'r2': {'r1'}}
    assert requirements('tree', 5) == {'r0': set(), 'r1': {'r0'}, 'r2': {'r0'}, 'r3': {'r1'}, 'r4': {'r1'}}


def test_layers_are_ten_and_join_three_of_the_layer_before():
    size = 100
    for number in range(size):
        required = list(layers(number, size))
        assert all(other // 10 == number // 10 - 1 for other in required)
        assert len(required) == (3 if number >= 10 else 0)


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('size', [1, 7, 25])
def test_every_shape_compiles_at_every_size(shape, size):
    assert len(requirements(shape, size)) == size


def test_counts_are_added_and_subtracted_by_kind():
    tally = Counters()
    before = tally.read()
    for kind in ('messages', 'statements', 'statements'):
        tally.note(kind)
    added = difference(tally.read(), before)
    assert added == {'statements': 2, 'commits': 0, 'rollbacks': 0, 'messages': 1}
    assert total([added, added]) == {'statements': 4, 'commits': 0, 'rollbacks': 0, 'messages': 2}


def test_every_message_that_is_sent_is_counted_and_sent():
    sent = []

    class Client:
        transport_options = None

        def prepare(self, **named):
            return self

        def cast(self, *arguments):
            sent.append(arguments)

        def call(self, *arguments):
            sent.append(arguments)
            return 'answer'

    class Transport:
        where = 'here'
        made = Client()

        def client(self, *arguments):
            return self.made

    tally = Counters()
    transport = counted(Transport(), tally)
    client = transport.client('topic')
    client.transport_options = 'options'
    client.prepare(fanout=True).cast({}, 'one')
    assert client.prepare().prepare().call({}, 'two') == 'answer'
    assert sent == [({}, 'one'), ({}, 'two')]
    assert tally.read()['messages'] == 2
    assert (transport.where, Transport.made.transport_options) == ('here', 'options')


def run(tmp_path, *arguments, **environment):
    """The program, in a process of its own; what it wrote as JSON."""
    figures = tmp_path / 'figures.json'
    command = [sys.executable, '-m', 'tests.bench', '--json', str(figures), *arguments]
    variables = os.environ | {'TMPDIR': str(tmp_path)} | environment
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ''
    assert [path.name for path in tmp_path.iterdir()] == ['figures.json']
    return json.loads(figures.read_text(encoding='utf-8')), done.stdout


def check(figures, installation, size):
    """Every operation was measured, and its counts are those of this very algorithm."""
    measured = {each['operation']: each for each in figures['measurements']}
    assert list(measured) == ['create', 'no-op update', 'update one', 'update all', 'delete']
    for each in measured.values():
        assert (each['installation'], each['shape'], each['size']) == (installation, 'chain', size)
        assert each['seconds'] > 0
    for operation in ('create', 'update all', 'delete'):
        # A message wakes a worker for each resource; it claims in one transaction and finishes in another.
        assert measured[operation]['counts']['messages'] >= size
        assert measured[operation]['counts']['commits'] >= 2 * size
        assert measured[operation]['counts']['statements'] > measured[operation]['counts']['commits']
    assert measured['no-op update']['counts']['messages'] == 0
    assert measured['update one']['counts']['commits'] < measured['update all']['counts']['commits'] / 2


def test_the_embedded_default_is_measured(tmp_path):
    arguments = ('--transport', 'embedded', '--shapes', 'chain', '--sizes', '12', '--large', '50', '--simulated', '3')
    arguments = (*arguments, '--served', '5', '--nested', '40')
    figures, printed = run(tmp_path, *arguments)
    check(figures, 'embedded', 12)
    assert len(figures['large']) == 3
    assert [(each['operation'], each['stacks'], each['resources']) for each in figures['nested']] == [
        (operation, 6, 40) for operation in ('create', 'update', 'delete')
    ]
    # Beyond its resources a nested stack costs a plan and some visits: the same for each, however large the tree is.
    assert all(each['counts'][0]['messages'] < 2 * each['counts'][1]['messages'] + 1 for each in figures['nested'])
    assert all(rate > 0 for rate in figures['simulated'].values())
    assert set(figures['simulated']) == {'without faults', 'with faults'}
    assert set(figures['served']) == {'one stack', '20 stacks', 'all stacks'}
    assert all(answered['per_second'] > 0 for answered in figures['served'].values())
    assert 'no-op update' in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_real_processes_are_measured_and_leave_nothing(tmp_path, rabbit_url):
    postgresql = service('postgresql')
    figures, printed = run(
        tmp_path,
        *('--transport', 'real', '--shapes', 'chain', '--sizes', '12', '--large', '0', '--simulated', '0'),
        *('--parked', '20', '--parked-s', '1', '--served', '0', '--nested', '0'),
        CONVERGENCE_TEST_POSTGRESQL_URL=postgresql.url,
        CONVERGENCE_TEST_RABBIT_URL=rabbit_url,
    )
    check(figures, 'real', 12)
    assert all(each['cpu_s'] >= 0 for each in figures['measurements'])
    assert [(each['shape'], each['size']) for each in figures['floor']] == [('chain', 12)]
    assert figures['floor'][0]['seconds'] > 0
    assert figures['large'] == {}
    assert 'The bare loop' in printed
    assert max(map(len, printed.splitlines())) <= 80
    parked = figures['parked']
    assert (parked['resources'], parked['each_s']) == (20, 1.0)
    assert 0 < parked['most'] <= 20
    assert parked['seconds'] >= 1.0


def test_a_server_that_was_asked_for_and_does_not_answer_is_named(monkeypatch, capsys):
    monkeypatch.setenv('CONVERGENCE_TEST_POSTGRESQL_URL', 'postgresql://nobody:secret@127.0.0.1:1/none')
    assert bench.main(['--transport', 'real', '--large', '0']) == 1
    said = capsys.readouterr().err
    assert '127.0.0.1:1' in said
    assert 'secret' not in said


@pytest.mark.parametrize('arguments', [['--sizes', '0'], ['--shapes', 'ring'], ['--transport', 'pigeon']])
def test_a_wrong_command_line_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err
