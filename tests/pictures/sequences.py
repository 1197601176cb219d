"""A story of the simulator as a sequence diagram: who does what to whom, from top to bottom."""

from __future__ import annotations

from convergence_simulator.runs.story import CLOUD, ROWS, Manner, Story, StoryStep

from tests.pictures.drawing import Drawing, width_of

ACROSS, LINE = 165, 15
SHOWN_AS = {ROWS: 'database', CLOUD: 'service'}


def sequence(story: Story, title: str) -> str:
    """A story. What is asked and written are lines, messages are dashed."""
    names = story.participants()
    left = {name: 70 + ACROSS * number for number, name in enumerate(names)}
    heights = [LINE * len(_said(step)) + 16 for step in story.steps]
    bottom = 62 + sum(heights)
    drawing = Drawing(_width(story, left), bottom + 14, title)
    for name in names:
        drawing.line(left[name], 46, left[name], bottom)
    y = 62.0
    for step, height in zip(story.steps, heights, strict=True):
        _step(drawing, step, left, y)
        y += height
    for name in names:
        kind = (
            'good' if name == ROWS else 'plain' if name in ('user', CLOUD) else 'back' if name == 'broker' else 'busy'
        )
        drawing.box(left[name] - 52, 14, 104, 32, [SHOWN_AS.get(name, name)], kind)
    return drawing.svg()


def _said(step: StoryStep) -> list[str]:
    return list(step.what)


def _step(drawing: Drawing, step: StoryStep, left: dict[str, int], y: float) -> None:
    lines, here = _said(step), left[step.who]
    there = left.get(step.whom)
    if there is None:
        width = max(width_of(line) for line in lines) + 24
        drawing.box(here - width / 2, y - 6, width, LINE * len(lines) + 8, lines, 'bad')
        return
    for number, line in enumerate(lines):
        drawing.text(min(here, there) + 8, y + 8 + LINE * number, line, 'text small halo')
    base = y + LINE * len(lines)
    drawing.arrow((here, base), (there, base), dashed=step.manner is Manner.DELIVERS)


def _width(story: Story, left: dict[str, int]) -> int:
    ends = [
        min(left[step.who], left[step.whom]) + 8 + width_of(line)
        for step in story.steps
        if step.whom in left
        for line in _said(step)
    ]
    return int(max(*ends, *(place + 60 for place in left.values()))) + 12
