"""The counts and findings of a run. A finding is neither an answer nor an error that names its cause."""

from __future__ import annotations

import resource
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CPU_S = 5.0
"""Seconds of this process's own work that one input may cost: ten times what the dearest one costs on a slow machine."""


@dataclass
class Figures:
    """The result of a run.

    :ivar executions: inputs or requests.
    :ivar outcomes: how many of each.
    :ivar found: an example of each finding, by what tells it from others.
    """

    target: str
    executions: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)
    dearest_s: float = 0.0

    def found_one(self, kind: str, example: Any) -> None:
        """Keep a finding."""
        self.outcomes['finding'] += 1
        self.found.setdefault(kind, str(example)[:2_000])

    def text(self) -> str:
        """For people."""
        outcomes = ', '.join(f'{name} {count}' for name, count in sorted(self.outcomes.items()))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        lines = [f'{self.target}: {self.executions} tried: {outcomes}; dearest {self.dearest_s:.2f} s, {memory} MB']
        lines += [f'  FOUND {kind}\n    {example}' for kind, example in self.found.items()]
        return '\n'.join(lines)


@dataclass(frozen=True)
class Target:
    """Something that reads texts.

    :ivar seeds: texts to begin with.
    :ivar read: True: taken; False: refused with an error of the project. Anything that is raised is a finding.
    """

    name: str
    seeds: tuple[str, ...]
    read: Callable[[str], bool]

    def attempt(self, text: str, figures: Figures) -> None:
        """Read one text, and see what comes of it."""
        figures.executions += 1
        before_s = time.process_time()
        try:
            figures.outcomes['taken' if self.read(text) else 'refused'] += 1
        except Exception as error:  # noqa: BLE001  # Whatever it is: that is what is looked for.
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if '/convergence/' in frame.filename] or frames
            figures.found_one(f'{type(error).__name__}: {str(error)[:200]} in {own[-1].name}', text)
        spent_s = time.process_time() - before_s
        figures.dearest_s = max(figures.dearest_s, spent_s)
        if spent_s > CPU_S:
            figures.found_one(f'an input that costs more than {CPU_S} s', text)
