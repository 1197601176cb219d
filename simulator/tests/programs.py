"""Small scenarios for the tests of the tools."""

from __future__ import annotations

from pathlib import Path

from convergence_simulator.runs.batch import load
from convergence_simulator.scenarios.language import Scenario

CHAIN = """
wanted = Template({'A': RsrcDef({'a': 'x'}), 'B': RsrcDef({'a': GetAtt('A', 'a')})})
engine.create_stack('chain', wanted)
engine.noop(2)
engine.call(verify, wanted)
"""
REPLACE = """
engine.create_stack('site', Template({'A': RsrcDef({'!a': 'x'})}))
engine.noop(1)
engine.update_stack('site', Template({'A': RsrcDef({'!a': 'y'})}))
"""
RACE = """
engine.create_stack('race', Template({'A': RsrcDef({}), 'B': RsrcDef({})}))
engine.settle()
engine.call(lambda: test.assertIn('A-1', reality.all_resources(), 'B was first'))
"""
"""Right only as long as A is made before B, which nothing ensures."""


def program(directory: Path, name: str, text: str) -> Path:
    """A scenario file."""
    path = directory / f'{name}.py'
    path.write_text(text)
    return path


def scenario(directory: Path, text: str) -> Scenario:
    """A scenario, loaded."""
    return load(program(directory, 'scenario', text))
