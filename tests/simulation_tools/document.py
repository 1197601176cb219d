"""Keeps docs/how-it-works.rst true: its stories and diagrams are what the code produces now.

``python -m tests.simulation_tools.document`` writes them anew. In the document, comments say what stands where:

* ``.. scenario: NAME; order`` before a Python block: a scenario, run in order.
* ``.. scenario: NAME; crash=0.02; shows PHRASE / PHRASE``: the first seed, with these faults, in whose story the
  phrases come in this order.
* ``.. story: NAME``, ``.. diagram: NAME``: what happens in it, in lines or as a Mermaid sequence diagram.
* ``.. states: stack``, ``.. states: resource``: a Mermaid diagram of a table in `convergence.core.states`.
"""

from __future__ import annotations

import logging
import re
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from convergence.core import states
from convergence.simulator.choices import Choices
from convergence.simulator.explore import Grain
from convergence.simulator.faults import Faults
from convergence.simulator.report import tell
from convergence.simulator.run import Mode, Plan
from convergence.simulator.story import Story

DOCUMENT = Path(__file__).parents[2] / 'docs' / 'how-it-works.rst'
SEEDS = 3000
SCENARIO = re.compile(r'^\.\. scenario: (\w+); (.+)\n\n\.\. code-block:: python\n\n((?:    .*\n|\n)+)', re.MULTILINE)
PLACE = re.compile(r'^\.\. (story|diagram|states): (\w+)\n\n\.\. code::.*\n(?:   .*\n|\n)*', re.MULTILINE)


def renewed(text: str) -> str:
    """The document with all that is produced produced anew."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        found = SCENARIO.findall(text)
        stories = {name: _story(name, manner, textwrap.dedent(program)) for name, manner, program in found}
    finally:
        logging.disable(before)

    def block(match: re.Match[str]) -> str:
        kind, name = match[1], match[2]
        if kind == 'states':
            tables = {'stack': states.STACK, 'resource': states.RESOURCE}
            return _block(f'.. states: {name}', 'mermaid', state_diagram(tables[name]))
        told = stories[name].text() if kind == 'story' else stories[name].mermaid()
        return _block(f'.. {kind}: {name}', 'text' if kind == 'story' else 'mermaid', told)

    return PLACE.sub(block, text)


def _block(comment: str, language: str, content: str) -> str:
    # No highlighter knows Mermaid; a class is what its script looks for.
    directive = '.. code:: text' if language == 'text' else f'.. code::\n   :class: {language}'
    return f'{comment}\n\n{directive}\n\n{textwrap.indent(content, "   ")}\n\n'


def _story(name: str, manner: str, program: str) -> Story:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f'{name}.py'
        path.write_text(program)
        if manner == 'order':
            verdict, story = tell(path, Plan(mode=Mode.ORDER), Choices())
            assert not verdict.error, f'{name}: {verdict.error}'
            return story
        return _first(path, manner)


def _first(path: Path, manner: str) -> Story:
    """The story of the first seed that shows what it should."""
    settings, _, shows = manner.partition('shows ')
    rates = {key: float(rate) for key, rate in re.findall(r'(\w+)=([\d.]+)', settings)}
    plan = Plan(faults=Faults(**rates, most_crashes=1), engines=1, workers=2, passed=Grain.TRANSACTION.passed)
    pattern = re.compile('.*'.join(re.escape(phrase.strip()) for phrase in shows.split(' / ')), re.DOTALL)
    for seed in range(SEEDS):
        verdict, story = tell(path, plan, Choices(seed))
        assert not verdict.error, f'{path.stem}, seed {seed}: {verdict.error}'
        if pattern.search(story.text()):
            return story
    raise AssertionError(f'{path.stem}: none of {SEEDS} seeds shows {shows}')


SHOWN = frozenset({'INIT', 'CREATE', 'UPDATE', 'ROLLBACK', 'DELETE'})
"""The actions in the state diagrams: those that change what is wanted. With all others nobody could read them."""


def state_diagram(table: Mapping[states.State, frozenset[states.State]]) -> str:
    """A table of states as a Mermaid state diagram."""
    lines = ['stateDiagram-v2']
    for state, following in table.items():
        shown = [each for each in sorted(following) if {state[0], each[0]} <= SHOWN]
        lines += [f'    {_state(state)} --> {_state(each)}' for each in shown]
    return '\n'.join(lines)


def _state(state: states.State) -> str:
    return '_'.join(state)


if __name__ == '__main__':
    DOCUMENT.write_text(renewed(DOCUMENT.read_text(encoding='utf-8')), encoding='utf-8')
