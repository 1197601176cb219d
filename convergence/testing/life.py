"""Plays one resource's life as the engine does: a fresh type for each call, everything through JSON in between.

`Life` keeps what the engine's row would keep. An answer can be lost: the call was made, its effect may be real, but
nothing of the answer was stored; then the engine's rules for taking over apply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from convergence.core.model import Action, Json
from convergence.resources.attributes import attribute_names
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    InProgress,
    ObjectNotFound,
    PluginFailure,
    ResourceType,
    Signal,
)
from convergence.resources.invocation import Subject, build_call
from convergence.resources.reading import Strictness
from convergence.testing.fixture import Fixture

DEFAULT_PAUSE_S = 0.05
VALUE_LIMIT_BYTES = 1024 * 1024


class AnswerLost(Exception):
    """The worker died after it made the call and before it stored the answer."""


class Life:
    """One resource.

    :param token: idempotency token; another life needs another one.
    :param lose: number of the call, counted from 1, whose answer is lost once; None loses none.
    """

    def __init__(self, fixture: Fixture, token: str, lose: int | None = None) -> None:
        self.fixture = fixture
        self.calls = 0
        self._lose = lose
        self.received: list[Signal] = []
        self._subject = Subject('thing', 'conformance', 'stack-id', 'project-id', 'resource-id', token)

    @property
    def physical_id(self) -> str | None:
        """The id that is stored."""
        return self._subject.physical_id

    def create(self) -> None:
        """Create, resuming after a lost answer as the engine does."""
        self._act(Action.CREATE, self.fixture.properties, self._take_over_create)

    def update(self, properties: Mapping[str, Json]) -> None:
        """Update in place to `properties`; repeated when its answer is lost."""
        self._act(Action.UPDATE, properties, lambda: self._begin(Action.UPDATE, properties))

    def delete(self) -> None:
        """Delete; repeated when its answer is lost. An object that is gone is a success."""
        wanted = self.fixture.properties
        try:
            self._act(Action.DELETE, wanted, lambda: self._begin(Action.DELETE, wanted))
        except ObjectNotFound:
            pass

    def forget_physical_id(self) -> None:
        """Be a row that never came to know its object."""
        self._subject = replace(self._subject, physical_id=None, data={})

    def find(self) -> Answer | None:
        """Look for the object by its token; what is found is stored."""
        answer = self.kind().find(self.call(self.fixture.properties))
        if answer is not None:
            self._store(answer)
        return answer

    def attributes(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        """All attributes, each checked to be JSON of a sane size."""
        read = {name: self.kind().attribute(self.call(properties), name) for name in attribute_names(self.kind())}
        return {name: carried(value, f'attribute {name}') for name, value in read.items()}

    def kind(self) -> ResourceType[Any]:
        """The type, as a process that has never seen it before would have it."""
        return self.fixture.make()

    def call(
        self, properties: Mapping[str, Json], previous: Mapping[str, Json] | None = None,
        strictness: Strictness = Strictness.STRICT,
    ) -> Call[Any]:
        """What a method is told."""
        signals = {**self.fixture.heard, self._subject.name: tuple(self.received)}
        return build_call(
            self.kind(), self._subject, properties, previous=previous, strictness=strictness, signals=lambda: signals
        )

    def _act(self, action: Action, properties: Mapping[str, Json], take_over: Callable[[], Answer]) -> None:
        try:
            answer = self._begin(action, properties)
        except AnswerLost:
            answer = take_over()
        previous = self.fixture.properties if action is Action.UPDATE else None
        for _ in range(self.fixture.poll_limit):
            if isinstance(answer, Done):
                return
            self.fixture.wait(answer.poll_after_s if answer.poll_after_s is not None else DEFAULT_PAUSE_S)
            poll = partial(self.kind().poll, self.call(properties, previous), action, answer.progress)
            try:
                answer = self._made(poll)
            except AnswerLost:
                answer = self._made(poll)
        raise AssertionError(f'{action} is not done after {self.fixture.poll_limit} polls')

    def _begin(self, action: Action, properties: Mapping[str, Json]) -> Answer:
        kind = self.kind()
        if action is Action.CREATE:
            return self._made(lambda: kind.create(self.call(properties)))
        if action is Action.DELETE:
            return self._made(lambda: kind.delete(self.call(properties, strictness=Strictness.LENIENT)))
        return self._made(lambda: kind.update(self.call(properties, previous=self.fixture.properties)))

    def _made(self, call: Callable[[], Answer]) -> Answer:
        self.calls += 1
        number = self.calls
        try:
            answer = call()
        except PluginFailure as error:
            if error.physical_id is not None:
                self._subject = replace(self._subject, physical_id=error.physical_id)
            raise
        if number == self._lose:
            raise AnswerLost
        return self._store(answer)

    def _store(self, answer: Answer) -> Answer:
        if not isinstance(answer, (Done, InProgress)):
            raise AssertionError(  # noqa: TRY004 - the verdict of a test
                f'a call must answer Done or InProgress, not {answer!r}'
            )
        if answer.physical_id is not None:
            if not isinstance(answer.physical_id, str) or not answer.physical_id:
                raise AssertionError('a physical id must be a text that is not empty')
            self._subject = replace(self._subject, physical_id=answer.physical_id)
        if answer.data is not None:
            self._subject = replace(self._subject, data=carried(answer.data, 'data'))
        if isinstance(answer, InProgress):
            return replace(answer, progress=carried(answer.progress, 'progress'))
        return answer

    def _take_over_create(self) -> Answer:
        answer = self.find()
        if answer is not None:
            return answer
        if not self.kind().token_enforced:
            raise AssertionError(
                'after a lost answer find() did not find the object, and token_enforced does not promise that a '
                'second create is harmless; write find(), or declare Recovery.NONE'
            )
        return self._begin(Action.CREATE, self.fixture.properties)


def carried(value: Any, what: str) -> Any:
    """`value` after a trip through JSON.

    :raises AssertionError: it does not survive the trip, or is too large for a row.
    """
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AssertionError(f'{what} is not JSON: {error}') from error
    if len(text) > VALUE_LIMIT_BYTES:
        raise AssertionError(f'{what} is larger than {VALUE_LIMIT_BYTES} bytes')
    back = json.loads(text)
    if json.dumps(back, sort_keys=True) != json.dumps(value, sort_keys=True):
        raise AssertionError(f'{what} changes on its way through JSON')
    return back
