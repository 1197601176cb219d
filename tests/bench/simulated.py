"""How many simulated runs a second: what it costs to try an order of events."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path

from convergence_simulator.runs.batch import CHUNK, Chunk, execute, load
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

from convergence.errors import ConvergenceError

PROGRAM = """
def site(value):
    return Template({
        'A': RsrcDef({'a': value}),
        'B': RsrcDef({}),
        'C': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
        'D': RsrcDef({'c': GetRes('C')}),
        'E': RsrcDef({'ca': GetAtt('C', '!a')}),
    })

engine.create_stack('site', site('one'))
engine.settle()
engine.update_stack('site', site('two'))
engine.settle()
engine.delete_stack('site')
"""
"""A scenario of the size that the field's first prototype had: five resources made, one replaced, all removed."""


def simulate(runs: int) -> dict[str, float]:
    """Runs per second of one core, with rows in memory: without faults, and with some.

    :raises ConvergenceError: a run failed.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
            path = Path(directory) / 'site.py'
            path.write_text(PROGRAM, encoding='utf-8')
            faults = {'without faults': Faults(), 'with faults': Faults(drop=0.02, double=0.02, crash=0.002)}
            return {name: _rate(path, RunPlan(faults=each), runs) for name, each in faults.items()}
    finally:
        logging.disable(before)


def _rate(path: Path, plan: RunPlan, runs: int) -> float:
    execute(load(path), plan, Choices())  # the templates are compiled once
    begun = time.process_time()  # of this one core, whatever else the machine does
    for first in range(0, runs, CHUNK):  # as convergence-simulate does it
        tally = Chunk(path, plan, range(first, min(first + CHUNK, runs))).run()
        if tally.failures:
            raise ConvergenceError(f'a simulated run has failed: {tally.failures[0]}')
    return runs / (time.process_time() - begun)
