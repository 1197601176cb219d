"""Keeps docs/how-it-works.rst true: its stories are what the code produces now. (Its pictures: `tests.pictures`.)

``python -m simulator.tests.document`` writes them anew. In the document, comments say what stands where:

* ``.. scenario: NAME; order`` before a Python block: a scenario, run in order.
* ``.. scenario: NAME; crash=0.02; shows PHRASE / PHRASE``: the first seed, with these faults, in whose story the
  phrases come in this order.
* ``.. story: NAME``: what happens in it, in lines.
"""

from __future__ import annotations

import logging
import re
import tempfile
import textwrap
from pathlib import Path

from convergence_simulator.runs.explore import Grain
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.report import tell
from convergence_simulator.runs.story import Story
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

DOCUMENT = Path(__file__).parents[2] / 'docs' / 'how-it-works.rst'
SEEDS = 3000
SCENARIO = re.compile(r'^\.\. scenario: (\w+); (.+)\n\n\.\. code-block:: python\n\n((?:    .*\n|\n)+)', re.MULTILINE)
PLACE = re.compile(r'^\.\. story: (\w+)\n\n\.\. code::.*\n(?:   .*\n|\n)*', re.MULTILINE)


def renewed(text: str) -> str:
    """The document with all that is produced produced anew."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        stories = {name: story_of(name, *told) for name, told in programs(text).items()}
    finally:
        logging.disable(before)
    return PLACE.sub(lambda match: _block(match[1], stories[match[1]].text()), text)


def programs(text: str) -> dict[str, tuple[str, str]]:
    """By name, how each scenario of the document is run, and its program."""
    return {name: (manner, textwrap.dedent(program)) for name, manner, program in SCENARIO.findall(text)}


def _block(name: str, told: str) -> str:
    return f'.. story: {name}\n\n.. code:: text\n\n{textwrap.indent(told, "   ")}\n\n'


def story_of(name: str, manner: str, program: str) -> Story:
    """Run a scenario of the document as it is to be run."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f'{name}.py'
        path.write_text(program)
        if manner == 'order':
            verdict, story = tell(path, RunPlan(mode=Mode.ORDER), Choices())
            assert not verdict.error, f'{name}: {verdict.error}'
            return story
        return _first(path, manner)


def _first(path: Path, manner: str) -> Story:
    """The story of the first seed that shows what it should."""
    settings, _, shows = manner.partition('shows ')
    rates = {key: float(rate) for key, rate in re.findall(r'(\w+)=([\d.]+)', settings)}
    plan = RunPlan(faults=Faults(**rates, most_crashes=1), engines=1, workers=2, passed=Grain.TRANSACTION.passed)
    pattern = re.compile('.*'.join(re.escape(phrase.strip()) for phrase in shows.split(' / ')), re.DOTALL)
    for seed in range(SEEDS):
        verdict, story = tell(path, plan, Choices(seed))
        assert not verdict.error, f'{path.stem}, seed {seed}: {verdict.error}'
        if pattern.search(story.text()):
            return story
    raise AssertionError(f'{path.stem}: none of {SEEDS} seeds shows {shows}')


if __name__ == '__main__':
    DOCUMENT.write_text(renewed(DOCUMENT.read_text(encoding='utf-8')), encoding='utf-8')
