"""``make fuzz``: fuzzes the readers of documents and requests, and prints the findings.

The exit code is 1 where something was found: an answer 500 or 503, an error that is none of the language, an error that
shows the inside, an error in the log of a process, a role that gets what it may not have, or an input that costs too much.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from tests.fuzz import guided, requests
from tests.fuzz.findings import Figures
from tests.fuzz.language import TARGETS
from tests.fuzz.mutation import Mutator

NAMES = (*TARGETS, *requests.STEPS, 'api')


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog='python -m tests.fuzz', description=__doc__)
    parser.add_argument('target', nargs='*', choices=[*NAMES, []], help='what to send it to; none: everything')
    parser.add_argument('--time', type=float, default=60.0, help='seconds for each target (and role)')
    parser.add_argument('--count', type=int, default=0, help='inputs for each target, instead of --time')
    parser.add_argument('--seed', type=int, default=0, help='of all chance; the same seed makes the same inputs')
    parser.add_argument('--role', choices=requests.ROLES, action='append', help='who asks; none: all, one by one')
    parser.add_argument('--store', choices=requests.STORES, default='sqlite', help='the database behind requests')
    parser.add_argument('--guided', action='store_true', help='by what the inputs reach, with atheris')
    arguments = parser.parse_args()
    warnings.simplefilter('ignore')
    found = False
    for name in arguments.target or NAMES:
        if arguments.guided and name in TARGETS:
            all_figures = [guided.in_another_process(name, arguments.time, arguments.seed)]
        else:
            all_figures = list(runs(name, arguments))
        for figures in all_figures:
            print(figures.text(), flush=True)
            found = found or bool(figures.found)
    return 1 if found else 0


def runs(name: str, arguments: argparse.Namespace) -> Any:
    """The figures of each run of a target: one, or one for each role."""
    if name in TARGETS:
        figures = Figures(name)
        language(name, Mutator(arguments.seed), figures, bound(figures, arguments))
        yield figures
        return
    for role in arguments.role or (requests.ROLES if name == 'api' else ['member']):
        figures = Figures(f'{name} as {role} on {arguments.store}')
        database = requests.empty(arguments.store)
        requests.run(name, role, Mutator(arguments.seed), figures, bound(figures, arguments), database)
        yield figures


def language(name: str, mutator: Mutator, figures: Figures, going_on: Callable[[], bool]) -> None:
    """Feed one of the readers of texts: its seeds first, then what the mutations make of them."""
    target = TARGETS[name]
    for text in target.seeds:
        target.attempt(text, figures)
    while going_on():
        target.attempt(mutator.text(target.seeds), figures)


def bound(figures: Figures, arguments: argparse.Namespace) -> Callable[[], bool]:
    """Return True until there were enough inputs, or the time is up."""
    end = time.monotonic() + arguments.time
    return lambda: figures.executions < arguments.count if arguments.count else time.monotonic() < end


if __name__ == '__main__':
    raise SystemExit(main())
