"""Two revisions of this repository, measured in turns: what else the machine does meanwhile befalls both alike."""

from __future__ import annotations

import configparser
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convergence.errors import ConfigurationError, ConvergenceError
from tests.bench.installations import ROOT

if TYPE_CHECKING:
    from tests.bench.sections import Bench

ROUNDS = 3
_SHOWN = '{:<10} {:<6} {:>5} {:<12} {:>8} {:>8} {:>6} {:>7} {:>10}'


@dataclass(frozen=True, slots=True)
class _Figures:
    """One operation of one revision, in one round."""

    seconds: float
    cpu_s: float
    statements: float


def compare(bench: Bench, revision: str, rounds: int) -> list[dict[str, Any]]:
    """Measure the operations of another revision and of this one, again and again; medians, and their ratios.

    Each revision is measured by its own benchmark.

    :raises ConfigurationError: there is no such revision.
    :raises ConvergenceError: one of the benchmarks has failed.
    """
    found: dict[tuple[str, ...], dict[Path, list[_Figures]]] = {}
    with checked_out(revision) as other:
        for _ in range(rounds):
            for name in bench.names:
                for size in bench.sizes:
                    for tree in (other, ROOT):
                        for key, figures in _measure(tree, name, bench.shapes, size):
                            found.setdefault(key, {}).setdefault(tree, []).append(figures)
        bench.title(f'This revision beside {revision}: medians of {rounds} rounds')
        titles = ('', 'shape', 'size', 'operation', 'seconds', 'before', 'ratio', 'CPU', 'statements')
        bench.heading(_SHOWN.format(*titles))
        return [_told(bench, key, each[ROOT], each[other]) for key, each in found.items() if len(each) == 2]


def _told(bench: Bench, key: tuple[str, ...], now: list[_Figures], before: list[_Figures]) -> dict[str, Any]:
    def median(figures: list[_Figures], name: str) -> float:
        return statistics.median(getattr(each, name) for each in figures)

    def ratio(name: str) -> float:
        return median(now, name) / (median(before, name) or 1e-9)

    ratios = {name: ratio(name) for name in ('seconds', 'cpu_s', 'statements')}
    seconds = median(now, 'seconds'), median(before, 'seconds')
    shown = (*(f'{each:.2f}' for each in seconds), *(f'{each:.2f}' for each in ratios.values()))
    bench.say(_SHOWN.format(*key, *shown))
    installation, shape, size, operation = key
    return {
        'installation': installation,
        'shape': shape,
        'size': int(size),
        'operation': operation,
        'seconds': seconds[0],
        'seconds_before': seconds[1],
        'ratios': ratios,
    }


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A tree of the revision that is run with the packages of this environment, and with its own entry points.

    :raises ConfigurationError: there is no such revision.
    """
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
        tree = Path(directory) / 'tree'
        _git('worktree', 'add', '--quiet', '--detach', str(tree), revision)
        try:
            _describe(tree)
            yield tree
        finally:
            _git('worktree', 'remove', '--force', str(tree))


def _git(*arguments: str) -> None:
    done = subprocess.run(['git', *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigurationError(f'git {arguments[0]} {arguments[1]}: {done.stderr.strip()}')


def _describe(tree: Path) -> None:
    """Have Python find the entry points of a tree whose directory comes first on its path, as if it were installed."""
    configuration = configparser.ConfigParser(delimiters=('=',), interpolation=None)
    configuration.read(tree / 'setup.cfg', encoding='utf-8')
    metadata = tree / 'convergence.egg-info'
    metadata.mkdir(exist_ok=True)
    (metadata / 'PKG-INFO').write_text('Metadata-Version: 2.1\nName: convergence\nVersion: 0\n', encoding='utf-8')
    points = configuration['options.entry_points'].items()
    text = '\n'.join(f'[{group}]{names}' for group, names in points)
    (metadata / 'entry_points.txt').write_text(text + '\n', encoding='utf-8')


def _measure(
    tree: Path, name: str, shapes: Sequence[str], size: int
) -> Iterator[tuple[tuple[str, str, str, str], _Figures]]:
    """The operations of a tree, by its own benchmark."""
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
        written = Path(directory) / 'figures.json'
        command = [
            sys.executable,
            '-W',
            'ignore',
            '-m',
            'tests.bench',
            '--only',
            'operations',
            '--on',
            name,
            '--no-floor',
        ]
        command += ['--shapes', *shapes, '--sizes', str(size), '--json', str(written)]
        variables = os.environ | {'PYTHONPATH': str(tree)}
        done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ['without a word'])[-1]
            raise ConvergenceError(f'The benchmark in {tree} has failed: {said}')
        figures = json.loads(written.read_text(encoding='utf-8'))
    for each in figures['operations']:
        took = each['took']
        cpu_s = sum(took['cpu_s'].get(kind, 0.0) for kind in ('embedded', 'engine', 'worker'))
        key = (each['installation'], each['shape'], str(each['size']), each['operation'])
        yield key, _Figures(took['seconds'], cpu_s, took['counts']['statements'])
