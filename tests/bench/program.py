"""``make bench``: what creating, keeping and deleting stacks costs on this machine. See docs/benchmarks.rst.

Exit code: 0, or 1 if an operation failed, or a server that was asked for does not answer; 2 for a wrong command line;
130 after Ctrl-C. Nothing is left behind in the servers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from convergence.errors import ConvergenceError
from tests.bench.against import ROUNDS, compare
from tests.bench.installations import EMBEDDED, INSTALLATIONS, unavailable
from tests.bench.sections import SECTIONS, Bench
from tests.bench.shapes import SHAPES

INTERRUPTED = 130
SIZES = (100, 1000)
QUICK_SIZES = (20,)
SECONDS, QUICK_SECONDS = 60.0, 3.0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    options = _arguments(argv)
    console = Console(highlight=False)
    try:
        bench = _bench(options, console)
        if options.against:
            found: dict[str, Any] = {'against': compare(bench, options.against, options.rounds)}
            _write(options.json, found)
        else:
            found = {}
            for name in _chosen(options):
                found[name] = SECTIONS[name].run(bench, bench.numbers[name])
                _write(options.json, found)  # what comes later may be interrupted
    except ConvergenceError as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _write(path: Path | None, found: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps({'machine': _machine(), **found}, indent=1) + '\n', encoding='utf-8')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    about = '\n'.join(
        f'  {name:<11} {section.about}' + (f' ({section.number})' if section.number else '')
        for name, section in SECTIONS.items()
    )
    parser = argparse.ArgumentParser(
        prog='convergence-bench',
        description='Measure what stacks cost on this machine.',
        epilog=f'sections, and how large they are:\n{about}\ngiant is left out unless it is asked for.',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--only', nargs='+', choices=tuple(SECTIONS), metavar='SECTION', help='these sections alone')
    parser.add_argument(
        '--on',
        nargs='+',
        choices=INSTALLATIONS,
        metavar='INSTALLATION',
        help='embedded: SQLite, one process; postgresql, mariadb: with RabbitMQ, three processes; else all that are '
        'there. Sections for one installation take the first of them that has servers',
    )
    parser.add_argument('--shapes', nargs='+', choices=tuple(SHAPES), default=tuple(SHAPES))
    parser.add_argument('--sizes', nargs='+', type=_size, metavar='N', help=f'resources of a stack; else {SIZES}')
    parser.add_argument(
        '--number', nargs='+', type=_number, default=[], metavar='SECTION=N', help='how large a section is'
    )
    parser.add_argument('--seconds', type=float, metavar='S', help='of idleness, and that a slow resource takes')
    parser.add_argument('--quick', action='store_true', help='everything much smaller, to see that it works')
    parser.add_argument(
        '--floor',
        action=argparse.BooleanOptionalAction,
        default=True,
        help='compare real processes with a bare loop of three transactions and a message for each resource',
    )
    parser.add_argument(
        '--profile', type=Path, metavar='DIRECTORY', help='write flame graphs of the operations of all processes there'
    )
    parser.add_argument(
        '--against', metavar='REVISION', help='compare the operations with those of another revision, in turns'
    )
    parser.add_argument(
        '--rounds',
        type=_size,
        default=ROUNDS,
        metavar='N',
        help='how often, with --against, and of nested stacks beside flat ones: medians are shown',
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures there as well')
    return parser.parse_args(argv)


def _size(text: str) -> int:
    size = int(text)
    if size < 1:
        raise argparse.ArgumentTypeError('at least 1 is wanted')
    return size


def _number(text: str) -> tuple[str, int]:
    name, _, number = text.partition('=')
    if name not in SECTIONS:
        raise argparse.ArgumentTypeError(f'there is no section {name}')
    return name, _size(number)


def _chosen(options: argparse.Namespace) -> list[str]:
    """The names of the sections to run, in their order."""
    if options.only:
        return [name for name in SECTIONS if name in options.only]
    return [name for name, section in SECTIONS.items() if not section.asked_only]


def _bench(options: argparse.Namespace, console: Console) -> Bench:
    numbers = {name: section.quick if options.quick else section.number for name, section in SECTIONS.items()}
    return Bench(
        console,
        _installations(options.on, console),
        options.shapes,
        options.sizes or (QUICK_SIZES if options.quick else SIZES),
        numbers | dict(options.number),
        options.floor,
        options.profile,
        options.seconds or (QUICK_SECONDS if options.quick else SECONDS),
        1 if options.quick else options.rounds,
    )


def _installations(wanted: Sequence[str] | None, console: Console) -> list[str]:
    """The installations to measure. One that was not asked for by name is left out when it is not there.

    What was asked for and is not there is told of by whoever tries to use it.
    """
    if wanted:
        return list(wanted)
    found = [EMBEDDED]
    for name in INSTALLATIONS[1:]:
        problem = unavailable(name)
        if problem is None:
            found.append(name)
        else:
            console.print(Text(f'Not {name}: {problem}', 'yellow'))
    return found


def _machine() -> dict[str, Any]:
    return {'cores': os.cpu_count(), 'python': platform.python_version(), 'system': platform.system()}
