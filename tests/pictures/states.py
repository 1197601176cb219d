"""The tables of states as pictures: for each action how it goes, and what may begin from each of its states."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core import states
from convergence.core.model import Action, Status
from convergence.core.operation_table import State
from tests.pictures.drawing import Drawing, width_of

SHOWN = (Action.CREATE, Action.UPDATE, Action.ROLLBACK, Action.DELETE)
"""The actions that change the goal. The others have the same transitions and would make the picture unreadable."""
KINDS = {Status.IN_PROGRESS: 'busy', Status.COMPLETE: 'good', Status.FAILED: 'bad'}
WIDTH, HEIGHT, ROW = 290, 62, 168
LEFT, RIGHT, TOP = 30, 440, 30

Table = Mapping[State, frozenset[State]]


def stack_states() -> str:
    """The states of a stack."""
    return picture(states.STACK, 'The states of a stack', {})


def resource_states() -> str:
    """The states of a resource."""
    return picture(states.RESOURCE, 'The states of a resource', {Action.DELETE: 'the row is removed'})


def transitions(table: Table) -> list[tuple[State, State]]:
    """The drawn part of a table."""
    known = {*SHOWN, Action.INIT}
    return [
        (state, each)
        for state, following in table.items()
        for each in sorted(following)
        if {state[0], each[0]} <= known
    ]


def picture(table: Table, title: str, removed: Mapping[Action, str]) -> str:
    """A table of states. Every transition is an arrow, or a word after *next*.

    :param removed: instead of which state of success there is none.
    """
    actions = [action for action in SHOWN if any(state[0] is action for state in table)]
    first = states.INIT in table
    drawing = Drawing(LEFT + RIGHT + WIDTH, TOP + ROW * len(actions) + (90 if first else 0) - 10, title)
    places = _places(table, actions, TOP + (90 if first else 0))
    said: dict[State, list[str]] = {state: [] for state in places}
    for state, each in transitions(table):
        if state[0] is each[0] and state is not each and _joined(drawing, places, state, each):
            continue
        if state == states.INIT and each == (Action.CREATE, Status.IN_PROGRESS):
            (x, y), (_, below) = places[state], places[each]
            drawing.arrow((x + 60, y + HEIGHT), (x + 60, below))
            continue
        said[state].append(each[0] if each[1] is Status.IN_PROGRESS else '_'.join(each))
    for state, (x, y) in places.items():
        following = f'next: {", ".join(said[state])}' if said[state] else ''
        kind = 'plain' if state == states.INIT else KINDS[state[1]]
        drawing.box(x, y, WIDTH, HEIGHT, ['_'.join(state), following] if following else ['_'.join(state)], kind)
        assert width_of(following) < WIDTH, following
    for action, text in removed.items():
        x, y = RIGHT, places[action, Status.IN_PROGRESS][1] - 36
        drawing.box(x, y, WIDTH, HEIGHT, [text], 'still')
        drawing.arrow((LEFT + WIDTH, y + 67), (x, y + HEIGHT / 2))
    return drawing.svg()


def _places(table: Table, actions: list[Action], top: float) -> dict[State, tuple[float, float]]:
    places: dict[State, tuple[float, float]] = {states.INIT: (LEFT, TOP)} if states.INIT in table else {}
    for number, action in enumerate(actions):
        y = top + ROW * number
        wanted = {
            (action, Status.IN_PROGRESS): (LEFT, y + 36),
            (action, Status.COMPLETE): (RIGHT, y),
            (action, Status.FAILED): (RIGHT, y + 72),
        }
        places |= {state: place for state, place in wanted.items() if state in table}
    return places


def _joined(drawing: Drawing, places: Mapping[State, tuple[float, float]], state: State, each: State) -> bool:
    """Draw an arrow between states of one action, where there is a way for one."""
    (x, y), (other_x, other_y) = places[state], places[each]
    if state[1] is Status.IN_PROGRESS and each[1] is not Status.IN_PROGRESS:
        shift = 20 if each[1] is Status.FAILED else -20
        drawing.arrow((x + WIDTH, y + HEIGHT / 2 + shift / 2), (other_x, other_y + HEIGHT / 2))
        return True
    if (state[1], each[1]) == (Status.FAILED, Status.COMPLETE):
        drawing.arrow((x + WIDTH - 20, y), (x + WIDTH - 20, other_y + HEIGHT))
        return True
    return False
