"""Follow an operation on a stack to its end, and say how it went."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from convergence.cli.connection.client import StackClient
from convergence.cli.exits import NotFound, Unfinished, Unreachable
from convergence.cli.watch.display import Display
from convergence.cli.watch.feed import Feed
from convergence.cli.watch.progress import BEGUN, OperationProgress, Scene
from convergence.documents import Document

TICK_S = 0.2
LOOK_S = 3.0
"""Seconds after which the state of the stack is asked for, though no event says that it has changed."""
PATIENCE_S = 60.0
"""Seconds for which a server may be away before nobody waits for it any more."""
DELETED = 'DELETE_COMPLETE'


@dataclass(frozen=True, slots=True)
class Ending:
    """How an operation ended. `took_s`: in seconds, since it was followed."""

    state: str
    reason: str
    took_s: float


@dataclass(frozen=True, slots=True)
class OperationStart:
    """Where an operation began.

    :param scene: what the stack was made of.
    :param since: its last event before; None: none.
    """

    scene: Scene
    since: str | None


def scene_of(stack: StackClient, before: Scene | None = None, *, deleting: bool = False) -> Scene:
    """What a stack is made of now.

    :param before: what it was made of before the operation; None: nothing.
    :param deleting: whether nothing of it is wanted any more.
    """
    graph = stack.graph()
    types = {str(node['name']): str(node['type']) for node in graph['nodes']}
    requires: dict[str, list[str]] = {}
    for edge in graph['edges']:
        requires.setdefault(str(edge['from']), []).append(str(edge['to']))
    # What an operation has begun to work on is not known any more to have changed, so what was known before counts too.
    drifted = [node for node in graph['nodes'] if node.get('changed_outside')]
    outside = {str(node['name']): str(node['changed_outside']) for node in drifted}
    if before is not None:
        outside = {**before.outside, **outside}
    if deleting:
        return Scene(stack.name, stack.id, {}, types, requires, outside=outside)
    # What has no state yet has not been made: a creation that has failed is told so by its rows alone after a while.
    planned = frozenset(
        str(node['name']) for node in graph['nodes'] if node.get('is_planned') or _is_untouched(node.get('status'))
    )
    return Scene(stack.name, stack.id, types, before.wanted if before is not None else {}, requires, planned, outside)


def _is_untouched(status: str | None) -> bool:
    return status is None or status.startswith('INIT_')


def before(stack: StackClient) -> OperationStart:
    """Remember how a stack is, before an operation on it begins."""
    return OperationStart(scene_of(stack), stack.last_event())


def is_good(state: str) -> bool:
    """Whether a stack in that state has become what was wanted last."""
    return state.endswith('_COMPLETE') and not state.startswith('ROLLBACK_')


class Follower:
    """Shows an operation until it has ended.

    :param timeout_s: seconds after which to wait no longer; None: wait for as long as it takes.
    :param clock: seconds that only ever grow.
    """

    def __init__(
        self,
        stack: StackClient,
        display: Display,
        timeout_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stack, self._display, self._timeout_s, self._clock = stack, display, timeout_s, clock
        self._begun = clock()

    def follow(self, scene: Scene, since: str | None) -> Ending:
        """Show it, and wait for its end.

        :raises Unfinished: `timeout_s` is over.
        :raises Unreachable: the server is away for good.
        """
        progress = OperationProgress(scene)
        heard = looked = self._clock()
        note, look = '', True
        with Feed(self._stack, since) as feed, self._display:
            while True:
                if look:
                    looked = self._clock()
                    try:
                        ending = self._look()
                        heard, note = looked, ''
                    except Unreachable as error:
                        if looked - heard > PATIENCE_S:
                            raise
                        ending, note = None, f'No answer, trying again: {error.message}'
                    if ending is not None:
                        return self._end(progress, ending, since)
                events = feed.take(TICK_S)
                now_s = self._now_s()
                self._display.show(progress, progress.learn(events, now_s), now_s, note)
                look = any(map(progress.is_about_the_stack, events)) or self._clock() - looked > LOOK_S
                if self._timeout_s is not None and now_s > self._timeout_s:
                    raise Unfinished(
                        f'The stack {self._stack.name} is still {progress.stack.state or "at work"} after '
                        f'{self._timeout_s:g} s; it goes on. {how_to_go_on(self._stack.name)}'
                    )

    def _look(self) -> Ending | None:
        """How the operation has ended; None while it goes on."""
        try:
            shown = self._stack.show()
        except NotFound:
            return Ending(DELETED, 'the stack is gone', self._now_s())
        state = str(shown['stack_status'])
        if state.endswith(BEGUN):
            return None
        return Ending(state, str(shown.get('stack_status_reason') or ''), self._now_s())

    def _end(self, progress: OperationProgress, ending: Ending, since: str | None) -> Ending:
        """Show the end. A state is stored together with the events that led to it: all of them are there."""
        events: list[Document] = []
        # What is missing where that fails is only the picture.
        with contextlib.suppress(NotFound, Unreachable):
            events = self._stack.events(progress.last_event or since)
        now_s = self._now_s()
        changes = progress.learn(events, now_s)
        progress.end(well=is_good(ending.state))
        self._display.show(progress, changes, now_s)
        return ending

    def _now_s(self) -> float:
        return self._clock() - self._begun


def how_to_go_on(name: str) -> str:
    """What to type to follow an operation, and to cancel it."""
    return f'"convergence stack wait {name}" follows it, "convergence stack cancel {name}" cancels it.'


def console() -> Console:
    """Where progress is shown: standard error, so that results can be piped."""
    return Console(stderr=True, highlight=False)
