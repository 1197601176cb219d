"""``make chaos``: break a real installation in every way there is, and see that nothing is lost. See docs/failures.rst.

Engines and workers are processes of their own, on RabbitMQ and a database: found as the tests find them
(tests/services.py); where servers are restarted, on servers of the run's own. Exit code: 0 if everything held, 1 if
something did not, 2 for a wrong command line or a server that is not there.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos import cancelling, clusters, drains, kinds, loss, outages, storm
from tests.chaos.crash_sweep import CrashSweep, table
from tests.chaos.installation import Broken, installed
from tests.chaos.servers import CannotStart, Unavailable
from tests.services import SERVICES, Missing

PARTS = ('crashes', 'kinds', 'drains', 'outages', 'messages', 'cancel', 'storm', 'clusters')
DATABASES = ('postgresql', 'mariadb')
INTERRUPTED = 130
GRACE_AND_SWEEP_S = 2.5
"""What a cancel takes in these runs: the grace period and a sweep."""

STARTS_S = 15.0
"""What starts before one of the other parts can begin, and ends after it, about."""
LEAST_S = 20.0
"""A part has at least so long, however little is left."""
STORM_S = 120.0

LATE_S = 3.0
"""What a busy machine may add to that."""


LASTS_S = {'outages': 130.0, 'messages': 60.0, 'cancel': 40.0, 'clusters': 180.0}
"""What the parts that always do the same take with one database, about: servers and processes start in it, too."""


@dataclass
class Run:
    """What was asked for, and what came of it so far."""

    options: argparse.Namespace
    directory: Path
    began: float = field(default_factory=time.monotonic)
    problems: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def share_s(self) -> float | None:
        """For how long each of the other parts may go on with each database, so that all fit; None: to their ends."""
        if self.options.time is None:
            return None
        fixed_s = sum(LASTS_S.get(part, STARTS_S) for part in self.options.only) * len(self.options.database)
        others = sum(part not in LASTS_S for part in self.options.only) * len(self.options.database)
        return float(max(LEAST_S, (self.options.time - fixed_s) / max(1, others)))

    def ends(self) -> float | None:
        """When the share of a part that begins now is over."""
        return None if self.share_s is None else time.monotonic() + self.share_s

    def say(self, text: str) -> None:
        """Tell what goes on."""
        print(f'{time.monotonic() - self.began:7.1f}  {text}', flush=True)

    def failed(self, what: str, problem: str) -> None:
        """Something did not hold."""
        if problem:
            self.problems.append(f'{what}: {problem}')


def crashes(run: Run, database: str) -> None:
    """A process dies at each commit and each send of each operation."""
    with installed(run.directory / f'crashes-{database}', database) as installation:
        installation.start()
        sweep = CrashSweep(installation, run.say, run.options.seed)
        trials = sweep.record()
        for place in sweep.missing():
            run.failed('crashes', f'{place} is passed by no operation')
        ends = run.ends()
        if ends is not None:
            random.Random(run.options.seed).shuffle(trials)
        outcomes = sweep.run(trials, ends)
        delays = [each.seconds - sweep.baseline[each.operation] for each in outcomes if each.fired and not each.problem]
        print(table(sweep, outcomes))
        for each in outcomes:
            run.failed(f'{each.place}, {each.operation}', each.problem)
        run.figures[f'crashes {database}'] = {
            'places': len({each.place for each in outcomes}),
            'trials': len(trials),
            'run': len(outcomes),
            'killed': sum(each.fired for each in outcomes),
            'same_end': sum(each.fired and not each.problem for each in outcomes),
            'not reached': sum(not each.fired for each in outcomes),
            'longest_delay_s': round(max(delays, default=0.0), 1),
            'deaths': dict(installation.deaths),
            'median_delay_s': round(sorted(delays)[len(delays) // 2], 1) if delays else 0.0,
        }


def lost_creations(run: Run, database: str) -> None:
    """Types of every sort lose what a creation has made."""
    with installed(run.directory / f'kinds-{database}', database) as installation:
        installation.start(engines=2, workers=5)
        cases = list(kinds.CASES)
        random.Random(run.options.seed).shuffle(cases)
        ends = run.ends()
        found = kinds.run(installation, run.say, cases, ends)
        for problem in found.problems:
            run.failed('kinds', problem)
        run.figures[f'kinds {database}'] = {**vars(found), 'of': len(cases)}


def drain(run: Run, database: str) -> None:
    """Workers are told to stop, again and again, in the middle of a backlog."""
    with installed(run.directory / f'drains-{database}', database, threads=4) as installation:
        installation.start(engines=1, workers=2)
        found = drains.run(installation, run.say, seconds=run.share_s)
        for problem in found.problems:
            run.failed('drains', problem)
        run.figures[f'drains {database}'] = asdict(found)


def outage(run: Run, database: str) -> None:
    """Servers are away, and workers frozen, while results are at hand."""
    with storm.surroundings(run.directory / f'outages-{database}', database, run.say) as around:
        around.installation.start(engines=2, workers=3)
        found = outages.run(around, run.say)
        for problem in found.problems:
            run.failed('outages', problem)
        run.figures[f'outages {database}'] = asdict(found)


def messages(run: Run, database: str) -> None:
    """Messages are lost."""
    with installed(run.directory / f'messages-{database}', database) as installation:
        installation.start()
        found = loss.run(installation, run.say)
        for each in found:
            run.failed(f'{each.share:.0%} of the messages lost, {each.operation}', each.problem)
        run.figures[f'messages {database}'] = [asdict(each) for each in found]


def cancel(run: Run, database: str) -> None:
    """Stuck calls are cancelled."""
    with installed(run.directory / f'cancel-{database}', database, threads=10) as installation:
        installation.start(engines=2, workers=3)
        found = cancelling.run(installation, run.say)
        run.failed('cancel', found.problem)
        if max(found.ended_s, found.free_s) > GRACE_AND_SWEEP_S + LATE_S:
            run.failed('cancel', f'it took {max(found.ended_s, found.free_s):.1f} s, not {GRACE_AND_SWEEP_S} s')
        if found.replaced:
            run.failed('cancel', f'{found.replaced} resources were replaced without a reason')
        run.figures[f'cancel {database}'] = asdict(found)


def blow(run: Run, database: str) -> None:
    """Everything at once."""
    with storm.surroundings(run.directory / f'storm-{database}', database, run.say) as around:
        around.installation.start(engines=2, workers=3)
        found = storm.run(around, run.say, seed=run.options.seed, seconds=run.share_s or STORM_S, size=run.options.size)
        for problem in found.problems:
            run.failed(f'storm of seed {found.seed}', problem)
        run.figures[f'storm {database}'] = vars(found)
        run.say(
            f'{found.faults.total()} faults, {found.updates} updates, {found.made} objects made; '
            f'at rest {found.calm_s:.1f} s after the last fault'
        )


def cluster(run: Run, database: str) -> None:
    """Clusters: Galera for MariaDB; a primary with a standby, and one of RabbitMQ, for PostgreSQL.

    Where programs are missing the part is skipped. Where they are there and a cluster does not start, it has failed.
    """
    for part in clusters.PARTS[database]:
        name = f'clusters {database}, {part.__name__}'
        try:
            found = part(run.directory / f'clusters-{database}-{part.__name__}', run.say)
        except CannotStart as broken:
            run.failed(name, str(broken))
        except Unavailable as missing:
            print(f'SKIPPED  {name}: {missing}', file=sys.stderr, flush=True)
            run.figures[name] = f'skipped: {missing}'
        else:
            for problem in found.problems:
                run.failed(name, problem)
            run.figures[name] = asdict(found)


RUNS: dict[str, Callable[[Run, str], None]] = {
    'crashes': crashes,
    'kinds': lost_creations,
    'drains': drain,
    'outages': outage,
    'messages': messages,
    'cancel': cancel,
    'storm': blow,
    'clusters': cluster,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run all that was asked for; the exit code."""
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end what was started, however we are ended
    logging.disable(logging.CRITICAL)  # the client's own complaints; what the programs log is kept in files
    directory = Path(tempfile.mkdtemp(prefix='convergence-chaos-'))
    directory.chmod(0o755)
    run = Run(options, directory)
    print(f'seed {options.seed}; logs in {directory}', flush=True)
    try:
        for database in options.database:
            for part in options.only:
                run.say(f'--- {part}, {database}')
                try:
                    RUNS[part](run, database)
                except Broken as broken:
                    run.failed(f'{part}, {database}', str(broken))
    except Missing as missing:
        print(f'chaos: {missing}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        SERVICES.close()
    for problem in run.problems:
        print(f'DID NOT HOLD  {problem}')
    if options.json:
        options.json.write_text(json.dumps(run.figures, indent=1) + '\n', encoding='utf-8')
    if run.problems:
        return 1
    print('Everything held.')
    shutil.rmtree(directory, ignore_errors=True)
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='make chaos', description='Break a real installation in every way there is.')
    parser.add_argument('--only', nargs='+', choices=PARTS, default=PARTS, help='parts to run')
    parser.add_argument('--database', nargs='+', choices=DATABASES, default=DATABASES)
    parser.add_argument(
        '--time',
        type=float,
        metavar='SECONDS',
        help='about how long all of it is to take: crashes, kinds, drains and storms share what the other parts leave, '
        'and try a choice by the seed (everything; storms of 120 s)',
    )
    parser.add_argument('--seed', type=int, default=random.randrange(1_000_000), help='of all choices (any)')
    parser.add_argument('--size', type=int, default=1000, metavar='N', help='resources of the large stack in a storm')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures there as well')
    return parser.parse_args(argv)


if __name__ == '__main__':
    sys.exit(main())
