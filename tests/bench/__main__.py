"""``make bench``: what creating, keeping and deleting stacks costs on this machine. See docs/benchmarks.rst.

Exit code: 0, or 1 if an operation failed, or a server that was asked for does not answer; 2 for a wrong command line;
130 after Ctrl-C. Nothing is left behind in the servers.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from convergence.errors import ConvergenceError
from tests.bench.counting import difference
from tests.bench.shapes import SHAPES, template

if TYPE_CHECKING:
    from tests.bench.floor import Floor
    from tests.bench.installations import BenchmarkInstallation

INTERRUPTED = 130
LARGE = 4000
NESTED = 5000
PARKED = 1000
SERVED = 1000
SIMULATED = 200
SIZES = (100, 1000)
SLOW_S = 60.0
_FORMAT = '{:<6} {:>5} {:<12} {:>7} {:>8} {:>7} {:>10} {:>7} {:>8}'
_SHOWN = ('statements', 'commits', 'messages')
_RATIOS = ('create', 'update all', 'delete')


@dataclass(frozen=True, slots=True)
class Measurement:
    """One operation on one stack.

    :param cpu_s: processor time of engine and workers.
    :param counts: of statements, commits and messages, of all processes, for the whole operation.
    """

    installation: str
    shape: str
    size: int
    operation: str
    seconds: float
    cpu_s: float
    counts: dict[str, int]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    options = _arguments(argv)
    console = Console(highlight=False)
    logging.captureWarnings(True)  # libraries warn while they are imported; nobody is told
    measurements: list[Measurement] = []
    nesting: list[dict[str, Any]] = []
    floors: list[Floor] = []
    try:
        names = _installations(options.transport, console)
        for name in names:
            measurements += _measure(name, options, console)
            floors += _floor(measurements, options, console) if options.floor and name == 'real' else []
            nesting += _nest(name, options.nested, console) if options.nested else []
        compiling = _compile(options.large, console) if options.large else {}
        parking = _park(options.parked, options.parked_s, console) if options.parked and 'real' in names else {}
        serving = _serve(options.served, console) if options.served else {}
        simulating = _simulate(options.simulated, console) if options.simulated else {}
    except ConvergenceError as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    if options.json:
        document = {
            'machine': _machine(),
            'measurements': [asdict(each) for each in measurements],
            'floor': [asdict(each) for each in floors],
            'nested': nesting,
            'large': compiling,
            'parked': parking,
            'served': serving,
            'simulated': simulating,
        }
        options.json.write_text(json.dumps(document, indent=2) + '\n', encoding='utf-8')
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='convergence-bench', description='Measure stacks of some shapes and sizes.')
    parser.add_argument('--shapes', nargs='+', choices=tuple(SHAPES), default=tuple(SHAPES))
    parser.add_argument('--sizes', nargs='+', type=_size, default=SIZES, metavar='N', help='resources of a stack')
    parser.add_argument(
        '--transport',
        choices=('embedded', 'real', 'all'),
        default='all',
        help='embedded: SQLite, one process; real: RabbitMQ, PostgreSQL, three processes; all: what is there',
    )
    parser.add_argument(
        '--floor',
        action=argparse.BooleanOptionalAction,
        default=True,
        help='compare real processes with a bare loop of three transactions and a message for each resource',
    )
    parser.add_argument(
        '--nested',
        type=int,
        default=NESTED,
        metavar='N',
        help='resources of a tree of stacks that is compared with a flat one; 0: none',
    )
    parser.add_argument('--large', type=int, default=LARGE, metavar='N', help='resources to compile and plan; 0: none')
    parser.add_argument('--simulated', type=int, default=SIMULATED, metavar='N', help='simulated runs; 0: none')
    parser.add_argument(
        '--parked',
        type=int,
        default=PARKED,
        metavar='N',
        help='slow resources, on real processes where those are measured; 0: none',
    )
    parser.add_argument('--parked-s', type=float, default=SLOW_S, metavar='S', help='seconds that each of them takes')
    parser.add_argument(
        '--served', type=int, default=SERVED, metavar='N', help='stacks behind an API that is asked for them; 0: none'
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures there as well')
    return parser.parse_args(argv)


def _size(text: str) -> int:
    size = int(text)
    if size < 1:
        raise argparse.ArgumentTypeError('at least 1 is wanted')
    return size


def _installations(transport: str, console: Console) -> list[str]:
    """The installations to measure. One that was not asked for by name is left out when it is not there.

    :raises OperatorError: a server that was asked for does not answer.
    """
    from tests.bench import installations

    if transport != 'all':
        return [transport]
    problem = installations.unavailable()
    if problem is None:
        return ['embedded', 'real']
    console.print(Text(f'Only embedded: {problem}', 'yellow'))
    return ['embedded']


# --- operations -----------------------------------------------------------------------------------------------


def _measure(name: str, options: argparse.Namespace, console: Console) -> list[Measurement]:
    from tests.bench import installations

    url = os.environ.get(*installations.POSTGRESQL)
    engine = {'embedded': installations.versions, 'real': lambda: f'RabbitMQ, {installations.versions(url)}'}[name]()
    processes = {'embedded': '1 process, 1 worker of 8 threads', 'real': '1 engine, 2 workers of 8 threads'}[name]
    console.print(Text(f'\n{name}: {engine}, {processes}', 'bold'))
    console.print(Text(_heading(), 'dim'), soft_wrap=True)
    measurements = []
    opened = {'embedded': installations.embedded, 'real': installations.real}[name]
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory, opened(Path(directory)) as installation:
        list(_operations(installation, 'flat', 10))  # imports, connections and prepared statements are not measured
        for size in options.sizes:
            for shape in options.shapes:
                for measured in _operations(installation, shape, size):
                    measurements.append(measured)
                    console.print(_line(measured), soft_wrap=True)
    return measurements


def _operations(installation: BenchmarkInstallation, shape: str, size: int) -> list[Measurement]:
    """Create a stack, update it with the same template, with one and with all resources changed, and delete it.

    :raises ConvergenceError: an operation failed.
    """
    client, context = installation.client, installation.context
    source, changed = template(shape, size), range(size)
    one, every = template(shape, size, changed[-1:]), template(shape, size, changed[:-1])
    identity: dict[str, Any] = {}
    measured = []

    def create() -> None:
        identity.update(client.create_stack(context, f'{shape}-{size}', source))

    for operation, begin in (
        ('create', create),
        ('no-op update', lambda: client.update_stack(context, identity, source)),
        ('update one', lambda: client.update_stack(context, identity, one)),
        ('update all', lambda: client.update_stack(context, identity, every)),
        ('delete', lambda: client.delete_stack(context, identity)),
    ):
        before, used_s, begun = installation.counts(), installation.cpu_s(), time.perf_counter()
        begin()
        stack = installation.wait(identity)
        seconds = time.perf_counter() - begun
        if stack.status.value != 'COMPLETE':
            raise ConvergenceError(f'{operation} of {stack.name} has failed: {stack.status_reason}')
        counts = difference(installation.counts(), before)
        cpu_s = installation.cpu_s() - used_s
        measured.append(Measurement(installation.name, shape, size, operation, seconds, cpu_s, counts))
    return measured


def _floor(measured: Sequence[Measurement], options: argparse.Namespace, console: Console) -> list[Floor]:
    """What the database and the broker allow, and how much of that is reached."""
    from tests.bench.floor import measure

    console.print(Text('\nThe bare loop on the same servers, and the part of its speed that is reached', 'bold'))
    titles = ('shape', 'size', 'seconds', 'number/s', *_RATIOS)
    console.print(Text('{:<6} {:>5} {:>8} {:>9} {:>8} {:>11} {:>8}'.format(*titles), 'dim'))
    found = []
    cases = [(shape, size) for size in options.sizes for shape in options.shapes]
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
        for each in measure(Path(directory), cases):
            found.append(each)
            took = {
                one.operation: one.seconds
                for one in measured
                if (one.installation, one.shape, one.size) == ('real', each.shape, each.size)
            }
            create, update, delete = (each.seconds / took[operation] for operation in _RATIOS)
            console.print(
                f'{each.shape:<6} {each.size:5} {each.seconds:8.2f} {each.size / each.seconds:9.0f} '
                f'{create:8.2f} {update:11.2f} {delete:8.2f}'
            )
    return found


def _nest(name: str, resources: int, console: Console) -> list[dict[str, Any]]:
    """What it costs that resources are in nested stacks."""
    from tests.bench import installations
    from tests.bench.nested import compare, sizes

    opened = {'embedded': installations.embedded, 'real': installations.real}[name]
    middle, lowest = sizes(resources)
    console.print(
        Text(f'\n{name}: 1 + {middle} + {lowest} stacks beside a flat one, of {resources} resources each', 'bold')
    )
    console.print(Text(f'{"":<8}{"nested":>9}{"flat":>9}{"ratio":>7}{"statements/resource":>27}', 'dim'))
    found = []
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory, opened(Path(directory)) as installation:
        list(_operations(installation, 'flat', 10))
        for each in compare(installation, resources):
            nested, level = (counts['statements'] for counts in each.counts)
            console.print(
                f'{each.operation:<8}{each.seconds[0]:7.1f} s{each.seconds[1]:7.1f} s{each.ratio:7.2f}'
                f'{nested:14.1f} and {level:7.1f}'
            )
            found.append({'installation': name, 'ratio': each.ratio, **asdict(each)})
    return found


def _compile(size: int, console: Console) -> dict[str, float]:
    """Seconds for the parts of accepting a template of `size` resources, which happen in one piece."""
    from tests.bench.large import accept

    parts = accept(size)
    console.print(Text(f'\nA template of {size} resources, in this process', 'bold'))
    for part, seconds in parts.items():
        console.print(f'{part:<40}{seconds:8.2f} s')
    return parts


def _park(resources: int, each_s: float, console: Console) -> dict[str, float]:
    """How many actions that take their time are under way at once, with 16 threads."""
    from tests.bench.parked import wait

    console.print(Text(f'\n{resources} resources that take {each_s:g} s each, 2 workers of 8 threads', 'bold'))
    waited = wait(resources, each_s)
    console.print(f'{"under way at the same time, at most":<40}{waited.most:8d}')
    console.print(f'{"until all were complete":<40}{waited.seconds:8.1f} s')
    return asdict(waited)


def _serve(stacks: int, console: Console) -> dict[str, Any]:
    """How fast the API answers with so many stacks."""
    from tests.bench.served import CLIENTS, serve

    console.print(Text(f'\nThe API with {stacks} stacks, {CLIENTS} clients at once, all in this process', 'bold'))
    answers = serve(stacks)
    for what, answered in answers.items():
        console.print(
            f'{what:<14}{1000 * answered.median_s:8.1f} ms (slowest {1000 * answered.slowest_s:.1f} ms)'
            f'{answered.per_second:8.0f} requests/s'
        )
    return {what: asdict(answered) for what, answered in answers.items()}


def _simulate(runs: int, console: Console) -> dict[str, float]:
    """Simulated runs per second of one core, of a stack of five resources that is made, updated and deleted."""
    from tests.bench.simulated import simulate

    rates = simulate(runs)
    console.print(Text('\nSimulated runs of a stack of five resources: create, update, delete', 'bold'))
    for faults, rate in rates.items():
        console.print(f'{faults:<40}{rate:8.0f} runs/s')
    return rates


# --- printing -------------------------------------------------------------------------------------------------


def _heading() -> str:
    titles = ('shape', 'size', 'operation', 'seconds', 'number/s', 'CPU ms', *_SHOWN)
    return f'{"per resource:":>64}\n{_FORMAT.format(*titles)}'


def _line(measured: Measurement) -> str:
    speed = f'{measured.size / measured.seconds:.0f}'
    cpu = f'{1000 * measured.cpu_s / measured.size:.2f}'
    counts = [f'{measured.counts[kind] / measured.size:.2f}' for kind in _SHOWN]
    figures = (f'{measured.seconds:.2f}', speed, cpu, *counts)
    return _FORMAT.format(measured.shape, measured.size, measured.operation, *figures)


def _machine() -> dict[str, Any]:
    return {'cores': os.cpu_count(), 'python': platform.python_version(), 'system': platform.system()}


if __name__ == '__main__':
    sys.exit(main())
