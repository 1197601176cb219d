"""The command line of ``convergence-simulate``."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from convergence.errors import Invalid
from convergence_simulator.runs.explore import Grain
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.report import PROGRAM, Form
from convergence_simulator.runs.shrink import Schedule
from convergence_simulator.runs.shrink import read as read_schedule
from convergence_simulator.stores.sqlstore import in_sqlite
from convergence_simulator.stores.storage import in_memory
from convergence_simulator.world.faults import Faults

SEEDS = range(100)
"""The seeds that are used if the command line names none."""
FOREVER = range(10**9)
SERVERS = ('postgresql', 'mariadb')
"""The stores that are database servers."""
URL_VARIABLE = 'CONVERGENCE_SIMULATE_DATABASE_URL'
"""Environment variable with the URL of the database for simulations. The URL may contain a password."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of a call.

    :param order: run in order. With `seeds`, run under these seeds, too.
    :param alternate: True to run every other seed without faults.
    :param time_s: duration of all runs in seconds, or None to run everything once.
    :param story: the form in which the story of each run is printed. With None, the story of a failure is printed in
        all forms, and no other.
    """

    paths: tuple[Path, ...]
    plan: RunPlan
    order: bool = False
    seed: int | None = None
    seeds: range | None = None
    explore: bool = False
    schedule: Schedule | None = None
    alternate: bool = False
    time_s: float | None = None
    story: Form | None = None
    jobs: int = 1
    states: int = 20_000
    choices: int = 10_000
    real: bool = False
    store: str = 'memory'
    database_url: str = ''
    transport_url: str = ''

    def settings(self, plan: RunPlan) -> list[str]:
        """The arguments of a plan that differ from the defaults."""
        usual, faults = RunPlan(), plan.faults
        given = {
            '--store': (self.store, 'memory'),
            '--engines': (plan.engines, usual.engines),
            '--workers': (plan.workers, usual.workers),
            '--threads': (plan.threads, usual.threads),
            '--in-a-row': (plan.max_inline_nodes, usual.max_inline_nodes),
            '--window': (plan.window, usual.window),
            '--grain': (_grain(plan), Grain.STEP),
            '--drop': (faults.drop, 0.0),
            '--double': (faults.double, 0.0),
            '--crash': (faults.crash, 0.0),
            '--freeze': (faults.freeze, 0.0),
            '--no-answer': (faults.database, 0.0),
            '--outage': (faults.outage, 0.0),
            '--lag': (faults.lag, 0.0),
            '--lose-commits': (faults.back, 0.0),
            '--drift': (faults.drift, 0.0),
            '--most-crashes': (faults.most_crashes, usual.faults.most_crashes),
        }
        differing = {name: value for name, (value, usually) in given.items() if value != usually}
        shown = ((name, f'{value:g}' if isinstance(value, float) else str(value)) for name, value in differing.items())
        return [word for pair in shown for word in pair]


def _grain(plan: RunPlan) -> Grain:
    return Grain.TRANSACTION if plan.passed else Grain.STEP


def parse(argv: Sequence[str] | None) -> SimulateOptions:
    """Parse the command line.

    :raises SystemExit: it is wrong (code 2), or requests the help (code 0).
    """
    parser = _parser()
    given = parser.parse_args(argv)
    given.paths += [Path(f'random:{number}') for number in given.random]
    given.paths += [Path(f'tree:{number}') for number in given.trees]
    given.paths += [Path(f'storm:{number}') for number in given.storms]
    if not given.paths:
        parser.error('nothing to run: name files or directories, or use --random')
    _require_server(parser, given)
    explore = bool(given.explore)
    grain = Grain(given.grain or (Grain.TRANSACTION if explore else Grain.STEP))
    plan = RunPlan(
        faults=_faults(given),
        engines=given.engines or (1 if explore else RunPlan().engines),
        workers=given.workers or (2 if explore else RunPlan().workers),
        threads=given.threads,
        max_inline_nodes=given.max_inline_nodes,
        window=given.window,
        storage=in_sqlite if given.store == 'sqlite' else in_memory,
        passed=grain.passed,
    )
    chosen = given.order or given.seed is not None or given.seeds or explore or given.schedule or given.real
    seeds = given.seeds if given.seeds is not None or chosen else SEEDS
    if given.time is not None and seeds is SEEDS:
        seeds = FOREVER
    return SimulateOptions(
        paths=tuple(given.paths),
        plan=plan,
        order=given.order or not chosen,
        seed=given.seed,
        seeds=seeds,
        explore=explore,
        schedule=given.schedule,
        alternate=given.alternate,
        time_s=given.time,
        story=Form(given.story) if given.story else None,
        jobs=given.jobs,
        states=given.states,
        choices=given.choices,
        real=given.real,
        store=given.store,
        database_url=given.database_url,
        transport_url=given.transport_url,
    )


def _faults(given: argparse.Namespace) -> Faults:
    return Faults(
        given.drop,
        given.double,
        given.crash,
        given.most_crashes,
        given.freeze,
        given.no_answer,
        given.outage,
        given.lag,
        given.lose_commits,
        given.drift,
    )


def _require_server(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse options that a database server cannot have: an order of events, and most faults."""
    if given.store not in SERVERS:
        return
    if not given.database_url:
        parser.error(f'--store {given.store} needs --database-url, or {URL_VARIABLE} in the environment')
    for option in (
        'order',
        'explore',
        'schedule',
        'real',
        'no_answer',
        'outage',
        'lag',
        'lose_commits',
        'drift',
        'story',
        'grain',
    ):
        if getattr(given, option):
            parser.error(
                f'--{option.replace("_", "-")} cannot be used on a database server: use --store memory or sqlite'
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description='Run scenarios on the real engine under every order of events. Without a mode: in order, then '
        f'under the seeds {SEEDS.start}:{SEEDS.stop}.',
        epilog='Exit code: 0 all runs passed, 1 a rule was broken, 2 wrong command line, 130 interrupted.',
    )
    parser.add_argument('paths', nargs='*', type=Path, metavar='FILE-OR-DIRECTORY')
    _add_modes(parser.add_argument_group('mode, one of'))
    _add_settings(parser.add_argument_group('settings'))
    _add_real(parser.add_argument_group('real processes'))
    return parser


def _add_modes(group: argparse._ArgumentGroup) -> None:
    modes = group.add_mutually_exclusive_group()
    modes.add_argument('--order', action='store_true', help='run one event at a time, in order')
    modes.add_argument('--seed', type=_natural, metavar='N', help='run the random schedule of this seed')
    modes.add_argument('--seeds', type=_range, metavar='A:B', help='run the random schedules of seeds A to B - 1')
    modes.add_argument('--explore', action='store_true', help='run every schedule up to a bound, each state once')
    modes.add_argument('--schedule', type=_schedule, metavar='LIST', help='run one schedule, as a failure prints it')
    modes.add_argument('--real', action='store_true', help='run on real processes, a broker and a database')


def _add_going_on(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        '--max-inline-nodes',
        '--in-a-row',
        dest='max_inline_nodes',
        type=_positive,
        default=RunPlan().max_inline_nodes,
        metavar='N',
        help='nodes that a thread of a worker runs one after the other; 1: one message per node',
    )
    group.add_argument(
        '--window',
        type=_positive,
        default=RunPlan().window,
        metavar='N',
        help=f'ready nodes of a stack that are dispatched at a time ({RunPlan().window})',
    )


def _add_settings(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        '--random',
        type=_range,
        default=range(0),
        metavar='A:B',
        help='run random programs, too, numbers A to B - 1; random:N names one of them',
    )
    group.add_argument(
        '--trees',
        type=_range,
        default=range(0),
        metavar='A:B',
        help='run random programs about nested stacks, too; tree:N names one of them',
    )
    _add_stores(group)
    group.add_argument('--engines', type=_positive, metavar='N', help='engine processes (2; explore: 1)')
    group.add_argument('--workers', type=_positive, metavar='N', help='worker processes (3; explore: 2)')
    group.add_argument(
        '--grain',
        choices=[grain.value for grain in Grain],
        help='processes take turns at each step (default), or between transactions only (default of --explore)',
    )
    group.add_argument(
        '--threads', type=_positive, default=RunPlan().threads, metavar='N', help='threads per worker (8)'
    )
    _add_going_on(group)
    _add_faults(group)
    group.add_argument(
        '--alternate',
        action='store_true',
        help='run even seeds without faults, two of four seeds with a message for each node, and half of the others '
        'with a window of two nodes',
    )
    group.add_argument('--time', type=_seconds, metavar='S', help='run further seeds for S seconds')
    group.add_argument('--jobs', type=_positive, default=1, metavar='N', help='processes that share the seeds')
    group.add_argument('--story', choices=[form.value for form in Form], help='print the story of the run in this form')
    group.add_argument(
        '--states', type=_positive, default=20_000, metavar='N', help='maximum number of states of --explore'
    )
    group.add_argument(
        '--choices', type=_positive, default=10_000, metavar='N', help='explore departures at the first N choices only'
    )


RATES = {
    '--drop': 'rate of lost messages, 0 to 1',
    '--double': 'rate of messages delivered twice',
    '--crash': 'rate of points at which a process dies',
    '--freeze': 'rate of points at which a process freezes for a while',
    '--no-answer': 'rate of points at which the answer of a transaction is lost',
    '--outage': 'rate of sweeps in which broker or database are away',
    '--lag': 'rate of transactions and queries that read rows of some commits ago',
    '--lose-commits': 'rate of points at which the database loses its last commits',
    '--drift': 'rate of points at which an object changes, breaks or vanishes outside of its stack; adds observers',
}
"""Help of the options for faults."""


def _add_faults(group: argparse._ArgumentGroup) -> None:
    for option, text in RATES.items():
        group.add_argument(option, type=_rate, default=0.0, metavar='RATE', help=text)
    group.add_argument(
        '--most-crashes',
        type=_natural,
        default=Faults().most_crashes,
        metavar='N',
        help='maximum number of crashes in one run, and of freezes, and of outages (3)',
    )


def _add_stores(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        '--storms',
        type=_range,
        default=range(0),
        metavar='A:B',
        help='run storms, too: random programs with many operations at a time; storm:N names one of them',
    )
    group.add_argument(
        '--store',
        choices=['memory', 'sqlite', *SERVERS],
        default='memory',
        help='the store of the rows; on a server (--database-url) real threads have concurrent transactions, and '
        'no run can be repeated exactly',
    )


def _add_real(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        '--database-url',
        default=os.environ.get(URL_VARIABLE, ''),
        metavar='URL',
        help=f'URL of an empty database, also for --store postgresql and mariadb; or set {URL_VARIABLE}. '
        'Default of --real: an SQLite file of its own',
    )
    group.add_argument('--transport-url', default='', metavar='URL', help='URL of a broker; --real needs one')


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number')
    return int(text)


def _positive(text: str) -> int:
    if (number := _natural(text)) < 1:
        raise argparse.ArgumentTypeError('the number must be at least 1')
    return number


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate < 1.0:
        raise argparse.ArgumentTypeError(f'{text!r} is not a rate from 0 to below 1')
    return rate


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number of seconds')
    return seconds


def _range(text: str) -> range:
    match = re.fullmatch(r'(\d+):(\d+)', text)
    if match is None or int(match[1]) >= int(match[2]):
        raise argparse.ArgumentTypeError(f'{text!r} is not A:B with A below B')
    return range(int(match[1]), int(match[2]))


def _schedule(text: str) -> Schedule:
    try:
        return read_schedule(text)
    except Invalid as error:
        raise argparse.ArgumentTypeError(str(error)) from None
