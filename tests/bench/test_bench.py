"""``make bench`` measures what it says, on stacks that are small here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convergence import template
from convergence.db.connections.database import connect
from tests.bench import program as bench
from tests.bench.against import checked_out
from tests.bench.counting import Counters, counted, difference, total
from tests.bench.servers import SERVERS, ServerWatch, own_database
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
    command = [sys.executable, '-m', 'tests.bench', '--json', str(figures), '--rounds', '1', *arguments]
    variables = os.environ | {'TMPDIR': str(tmp_path)} | environment
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ''
    assert [path.name for path in tmp_path.iterdir()] == ['figures.json']
    return json.loads(figures.read_text(encoding='utf-8')), done.stdout


def check(figures, installation, size):
    """Every operation was measured, and its counts are those of this very algorithm."""
    measured = {each['operation']: each for each in figures['operations']}
    assert list(measured) == ['create', 'no-op update', 'update one', 'update all', 'delete']
    for each in measured.values():
        assert (each['installation'], each['shape'], each['size']) == (installation, 'chain', size)
        assert each['took']['seconds'] > 0
        assert all(peak > 2**20 for peak in each['took']['peak_bytes'].values())
    counts = {operation: each['took']['counts'] for operation, each in measured.items()}
    for operation in ('create', 'update all', 'delete'):
        # What a worker has done for one is finished in one transaction, which claims the next as well.
        assert counts[operation]['commits'] > size
        assert counts[operation]['statements'] > counts[operation]['commits']
    assert counts['no-op update']['messages'] == 0
    assert counts['update one']['commits'] < counts['update all']['commits'] / 2
    return measured


def test_the_embedded_default_is_measured(tmp_path):
    only = (
        'operations',
        'nested',
        'large',
        'parked',
        'served',
        'requests',
        'stored',
        'crowd',
        'share',
        'observed',
        'simulated',
    )
    sizes = (
        'nested=40',
        'large=50',
        'parked=20',
        'served=5',
        'requests=50',
        'stored=30',
        'crowd=3',
        'share=60',
        'observed=20',
    )
    figures, printed = run(
        tmp_path,
        *('--on', 'embedded', '--shapes', 'chain', '--sizes', '12', '--seconds', '1'),
        *('--only', *only, '--number', *sizes, 'simulated=3'),
    )
    check(figures, 'embedded', 12)
    assert set(figures) == {'machine', *only}
    assert len(figures['large']) == 3
    assert [(each['operation'], each['stacks'], each['resources']) for each in figures['nested']] == [
        (operation, 6, 40) for operation in ('create', 'update', 'delete')
    ]
    # Beyond its resources a nested stack costs a plan and some visits: the same for each, however large the tree is.
    assert all(each['counts'][0]['messages'] < 2 * each['counts'][1]['messages'] + 1 for each in figures['nested'])
    assert {each['faults'] for each in figures['simulated'] if each['runs_per_s'] > 0} == {
        'without faults',
        'with faults',
    }
    assert {each['request'] for each in figures['served']} == {'one stack', '20 stacks', 'all stacks'}
    assert {each['resources'] for each in figures['requests']} == {1, 5, 50}
    # What many finished stacks may cost the others is nothing.
    created, _ = figures['stored']
    before, after = (created[when]['counts']['statements'] for when in ('before', 'after'))
    assert after <= 1.5 * before
    parked = figures['parked'][0]
    assert (parked['resources'], parked['each_s']) == (20, 1.0)
    assert 0 < parked['most'] <= 20
    assert [each['shape'] for each in figures['share']] == ['flat', 'tree']
    assert figures['crowd'][0]['ratio'] > 0
    (observed,) = figures['observed']
    assert observed['looks'] == 5 * 20
    assert observed['statements'] == 5 * 7, 'a batch is leased and written as a whole'
    assert 'no-op update' in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.long
def test_real_processes_are_measured_and_leave_nothing(tmp_path, rabbit_url):
    server = service('postgresql')
    figures, printed = run(
        tmp_path,
        *('--on', 'postgresql', '--only', 'operations', 'idle', '--shapes', 'chain', '--sizes', '12'),
        *('--number', 'idle=200', '--seconds', '1'),
        CONVERGENCE_TEST_POSTGRESQL_URL=server.url,
        CONVERGENCE_TEST_RABBIT_URL=rabbit_url,
    )
    measured = check(figures, 'postgresql', 12)
    assert all(each['took']['cpu_s'].keys() >= {'engine', 'worker', 'postgresql'} for each in measured.values())
    assert all(each['floor_s'] > 0 for each in measured.values())
    assert figures['idle'][0]['cpu_percent'].keys() >= {'engine', 'worker', 'observer', 'api'}
    assert 'The bare loop' in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize('name', SERVERS)
def test_a_server_tells_what_it_has_done(name, monkeypatch):
    monkeypatch.setenv(SERVERS[name].variable, service(name).url)
    with own_database(SERVERS[name]) as url:
        database = connect(url)
        watch = ServerWatch(database)
        before = watch.read()
        with database.begin() as connection:
            connection.exec_driver_sql('CREATE TABLE made (number INTEGER)')
            connection.exec_driver_sql('INSERT INTO made VALUES (1)')
        watch.look(1.0)
        done = watch.read() - before
        database.dispose()
    assert done.writes >= 1
    assert done.log_bytes > 0
    assert done.statements is None or done.statements >= 2
    assert SERVERS[name].version().startswith(SERVERS[name].title)


@pytest.mark.long
def test_another_revision_is_run_with_its_own_code_and_entry_points():
    if subprocess.run(['git', 'rev-parse', 'HEAD'], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip('this is no checkout')
    asked = (
        'import convergence; from importlib.metadata import entry_points as points; '
        "print(convergence.__file__, len(points(group='convergence.resource_types')) > 20)"
    )
    with checked_out('HEAD') as tree:
        done = subprocess.run(
            [sys.executable, '-c', asked],
            cwd=tree,
            env=os.environ | {'PYTHONPATH': str(tree)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [str(tree / 'convergence' / '__init__.py'), 'True']
    assert not tree.exists()


def test_a_server_that_was_asked_for_and_does_not_answer_is_named(monkeypatch, capsys):
    monkeypatch.setenv('CONVERGENCE_TEST_POSTGRESQL_URL', 'postgresql://nobody:secret@127.0.0.1:1/none')
    assert bench.main(['--on', 'postgresql', '--only', 'operations']) == 1
    said = capsys.readouterr().err
    assert '127.0.0.1:1' in said
    assert 'secret' not in said


@pytest.mark.parametrize(
    'arguments',
    [['--sizes', '0'], ['--shapes', 'ring'], ['--on', 'pigeon'], ['--number', 'ring=3'], ['--only', 'ring']],
)
def test_a_wrong_command_line_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err
