"""Follows an operation on a stack to its end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from convergence.cli.connection.client import StackClient
from convergence.cli.exits import NotFound, Superseded, Unfinished, Unreachable
from convergence.cli.watch.display import Display
from convergence.cli.watch.feed import Feed
from convergence.cli.watch.progress import STARTED, OperationProgress, Scene
from convergence.documents import Document
from convergence.followed import Followed, Standing, named

TICK_S = 0.2
LOOK_S = 3.0
"""Seconds without events after which the state of the stack is queried."""
PATIENCE_S = 60.0
"""Maximum number of seconds to wait for a server that does not answer."""
DELETED = 'DELETE_COMPLETE'


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of an operation. `took_s`: seconds since the follower started."""

    state: str
    reason: str
    took_s: float


@dataclass(frozen=True, slots=True)
class OperationStart:
    """The stack at the start of an operation.

    :param scene: its resources.
    :param since: its last event before the operation; None without events.
    """

    scene: Scene
    since: str | None


def operation_of(stack: StackClient, request_id: str = '') -> Followed:
    """Return the operation that a request began; the current one if the request began none, or is empty."""
    try:
        return Followed.of(stack.history(), request_id)
    except NotFound:  # A deleted stack may be purged already.
        return Followed(request_id)


def scene_of(stack: StackClient, before: Scene | None = None, *, deleting: bool = False) -> Scene:
    """Return the current resources of a stack.

    :param before: its resources before the operation; None for a new stack.
    :param deleting: True for a delete.
    """
    graph = stack.graph()
    types = {str(node['name']): str(node['type']) for node in graph['nodes']}
    requires: dict[str, list[str]] = {}
    for edge in graph['edges']:
        requires.setdefault(str(edge['from']), []).append(str(edge['to']))
    # An operation clears the drift of a resource when it starts on it, so the drift from before is added.
    drifted = [node for node in graph['nodes'] if node.get('changed_outside')]
    outside = {str(node['name']): str(node['changed_outside']) for node in drifted}
    if before is not None:
        outside = {**before.outside, **outside}
    if deleting:
        return Scene(stack.name, stack.id, {}, types, requires, outside=outside)
    # A resource without a state has no object yet.
    planned = frozenset(
        str(node['name']) for node in graph['nodes'] if node.get('is_planned') or _is_untouched(node.get('status'))
    )
    return Scene(stack.name, stack.id, types, before.desired if before is not None else {}, requires, planned, outside)


def _is_untouched(status: str | None) -> bool:
    return status is None or status.startswith('INIT_')


def before(stack: StackClient) -> OperationStart:
    """Record a stack before an operation starts."""
    return OperationStart(scene_of(stack), stack.last_event())


def is_good(state: str) -> bool:
    """Return True if the state is a success of the last request."""
    return state.endswith('_COMPLETE') and not state.startswith('ROLLBACK_')


class Follower:
    """Shows an operation until it ends.

    :param followed: the operation.
    :param timeout_s: timeout in seconds; None: no timeout.
    :param clock: returns monotonic seconds.
    """

    def __init__(
        self,
        stack: StackClient,
        followed: Followed,
        display: Display,
        timeout_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stack, self._display, self._timeout_s, self._clock = stack, display, timeout_s, clock
        self._followed, self._known_tag = followed, ''
        self._begun = clock()

    def follow(self, scene: Scene, since: str | None) -> Ending:
        """Show the operation until it ends.

        :raises Unfinished: the timeout is reached.
        :raises Superseded: another operation took over.
        :raises Unreachable: the server does not come back.
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
                        ending, note = None, f'No answer, retrying: {error.message}'
                    if ending is not None:
                        return self._end(progress, ending, since)
                events = feed.take(TICK_S)
                now_s = self._now_s()
                self._display.show(progress, progress.learn(events, now_s), now_s, note)
                look = any(map(progress.is_about_the_stack, events)) or self._clock() - looked > LOOK_S
                if self._timeout_s is not None and now_s > self._timeout_s:
                    raise Unfinished(
                        f'The stack {self._stack.name} is still {progress.stack.state or "in progress"} after '
                        f'{self._timeout_s:g} s; the operation continues. {how_to_go_on(self._stack.name)}'
                    )

    def _look(self) -> Ending | None:
        """Return the result of the operation; None while it is running."""
        try:
            shown, tag = self._stack.show_with_tag()
            if tag and tag == self._known_tag:
                return self._ended(shown)
            standing = Standing.of(self._followed, self._stack.history())
        except NotFound:
            return Ending(DELETED, 'the stack does not exist any more', self._now_s())
        if standing.is_superseded:
            assert standing.successor is not None
            raise Superseded(
                f'{named(standing.successor)} superseded the operation on the stack {self._stack.name}. '
                f'Follow it with "convergence stack wait {self._stack.name}".'
            )
        if standing.successor is not None and standing.entry is not None:  # The stack has another operation by now.
            return Ending(standing.state, str(standing.entry['reason'] or ''), self._now_s())
        if standing.entry is not None and tag == f'"{standing.entry["id"]}"':
            self._known_tag = tag
            return self._ended(shown)
        return None if standing.entry is not None else self._ended(shown)

    def _ended(self, shown: Document) -> Ending | None:
        """Return the result from a stack whose current operation is the followed one."""
        state = str(shown['stack_status'])
        if state.endswith(STARTED):
            return None
        return Ending(state, str(shown.get('stack_status_reason') or ''), self._now_s())

    def _end(self, progress: OperationProgress, ending: Ending, since: str | None) -> Ending:
        """Show the end. The final state is stored together with its events, so all events are available."""
        events: list[Document] = []
        # A failure affects only the display.
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
    """Return the commands that follow and cancel an operation."""
    return f'Follow it with "convergence stack wait {name}", or cancel it with "convergence stack cancel {name}".'


def console() -> Console:
    """Return the console for progress: standard error, so that results can be piped."""
    return Console(stderr=True, highlight=False)
