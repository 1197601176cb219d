"""Answers questions of engines to resource types: can an object be created, what would an update do, attribute values.

Each question has a thread of its own, and all questions of a request have one time limit. A question without an answer
by then gets the reply "not known". Its thread is stopped like that of an action that takes too long: the type is
cancelled and its connection is closed. A thread that still does not return is given up. After `THREADS` of these the
worker answers no further question.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from convergence import logs
from convergence.concurrency import Group, Pool, Task, TaskKilled
from convergence.core.model import Change, Json
from convergence.core.rows import Resource, Stack
from convergence.core.software import Holder
from convergence.credentials.model import Credentials
from convergence.errors import EntityNotFound, StackValidationFailed
from convergence.resources.attributes import read_attribute
from convergence.resources.calls import record_nothing
from convergence.resources.contract import Call, FinalFailure, ResourceType
from convergence.resources.invocation import CallAccess, Subject, build_call
from convergence.resources.manifest import CannotImport
from convergence.resources.questions import QuestionKind, TypeQuestion, TypeReply, questions_of, told
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets, secret_properties
from convergence.resources.software import ProjectSoftware
from convergence.resources.storable import carried, text_of
from convergence.values import replace
from convergence.worker.attempts.attempt import MOST_SHOWN_BYTES
from convergence.worker.attempts.port import none_of_stack

LOG = logging.getLogger(__name__)

THREADS = 8
"""Maximum number of questions that a worker answers at the same time, and of threads given up in calls that do not end.
"""
GRACE_S = 5.0
"""Seconds for a call to return after its time limit, before its thread is given up."""
NOBODY_YET = Holder('', 0)
"""The owner in calls that only answer questions: no row has this owner, so every write is refused."""
NEWER = TypeReply(reason='the worker is too old for this question')
UNREACHED = TypeReply(reason='the resource type did not answer in time')


class RowReader(Protocol):
    """Reads the rows that a question is about."""

    def resource(self, resource_id: str) -> Resource | None:
        """One row."""

    def stack(self, stack_id: str) -> Stack | None:
        """One stack."""


@dataclass
class _Acting:
    """The credentials of one question.

    :ivar missed: True if the type requested credentials and there were none.
    :ivar recorded: True if the type called `record`, although a question must create nothing.
    """

    find: Callable[[], Credentials]
    missed: bool = field(default=False, init=False)
    recorded: bool = field(default=False, init=False)

    def __call__(self) -> Credentials:
        try:
            return self.find()
        except BaseException:
            self.missed = True
            raise

    def record(self, physical_id: str | None = None, data: Mapping[str, Json] | None = None) -> None:
        """Refuse `Call.record`, which is for actions.

        :raises FinalFailure: always.
        """
        self.recorded = True
        record_nothing(physical_id, data)


class Answering:
    """Answers questions with the resource types of this process.

    :param lent: returns credentials by id and project, for a stack that does not exist yet.
    :param access: signals, software and credentials for the calls.
    """

    def __init__(
        self,
        registry: Registry,
        reader: RowReader,
        access: CallAccess,
        lent: Callable[[str, str], Credentials] = lambda credentials_id, project_id: none_of_stack(credentials_id),
        threads: int = THREADS,
        grace_s: float = GRACE_S,
    ) -> None:
        self._registry = registry
        self._reader = reader
        self._access = access
        self._lent = lent
        self._grace_s = grace_s
        self._pool = Pool(threads, 'questions')

    def answer(self, questions: Sequence[TypeQuestion | None], limit_s: float) -> list[TypeReply]:
        """A reply to each question, in order, after `limit_s` seconds at the latest. Raises nothing."""
        if self._pool.lost >= self._pool.threads:
            busy = TypeReply(reason='the worker has too many calls that do not end')
            return [busy] * len(questions)
        ends = time.monotonic() + limit_s
        group, replies = Group('questions', self._pool), [UNREACHED if each else NEWER for each in questions]

        def work(task: Task, place: int, question: TypeQuestion) -> None:
            if not task.cancelled.is_set():
                reply = self._reply(question, task)
                if not task.cancelled.is_set():
                    replies[place] = reply

        tasks = [group.spawn(work, place, question) for place, question in enumerate(questions) if question is not None]
        for task in tasks:
            assert task.job is not None
            task.job.over.wait(max(0.0, ends - time.monotonic()))
        group.stop(self._grace_s)
        return list(replies)

    def _reply(self, question: TypeQuestion, task: Task) -> TypeReply:
        acting = _Acting(partial(self._credentials, question))
        secrets = {*question.secrets, *secret_properties(self._registry, question.type, question.properties)}
        with logs.masking(secrets):
            try:
                return self._asked(question, task, acting)
            except TaskKilled:
                raise
            except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the worker
                is_final = isinstance(error, FinalFailure | StackValidationFailed) and not isinstance(
                    error, CannotImport
                )
                refused = (
                    is_final and question.asked is not QuestionKind.READ and not (acting.missed or acting.recorded)
                )
                if not refused:
                    LOG.info(
                        'Question %s about %s (%s) failed, the engine continues without an answer: %s',
                        question.asked, question.name, question.type, ' '.join(text_of(error).split()),
                    )  # fmt: skip
                needs = acting.missed and not question.acts_as and not question.credentials_id
                return TypeReply(refused, text_of(error), wants_credentials=needs)

    def _asked(self, question: TypeQuestion, task: Task, acting: _Acting) -> TypeReply:
        try:
            kind = self._registry.get(question.type)
        except EntityNotFound:
            return TypeReply(reason=f'the worker has no resource type {question.type}')
        row = self._reader.resource(question.resource_id) if question.resource_id else None
        stack = self._reader.stack(row.stack_id) if row is not None else None
        if question.asked is QuestionKind.VALIDATE:
            call = self._with_access(self._call_before(kind, question), task, acting)
            with task.killable():
                kind.validate(call)
            return TypeReply(is_known=True)
        if row is None or stack is None or stack.project_id != question.project_id:
            return TypeReply(reason='the resource does not exist any more')
        with logs.masking(known_secrets(row, self._registry)):
            if question.asked is QuestionKind.READ:
                call = build_call(kind, Subject.of(stack, row), row.properties, strictness=Strictness.LENIENT)
                return self._read(kind, self._with_access(call, task, acting, row), question.attributes, task)
            subject = replace(Subject.of(stack, row), metadata=question.metadata)
            call = build_call(kind, subject, question.properties, previous=row.properties)
            return _planned(kind, self._with_access(call, task, acting, row), task)

    @staticmethod
    def _call_before(kind: ResourceType[Any], question: TypeQuestion) -> Call[Any]:
        """Make the call for a resource that does not exist yet: it has no row and no token."""
        subject = Subject(
            name=question.name,
            stack_name=question.stack_name,
            stack_id=question.stack_id,
            project_id=question.project_id,
            resource_id='',
            token='',
            metadata=question.metadata,
            type_name=question.type,
        )
        return build_call(kind, subject, question.properties)

    def _with_access(self, call: Call[Any], task: Task, acting: _Acting, row: Resource | None = None) -> Call[Any]:
        given = self._access.given_to(call, row) if row is not None else call
        return replace(
            given,
            software=ProjectSoftware(self._access.software, call.project_id, NOBODY_YET),
            credentials=acting,
            record=acting.record,
            cancelled=task.cancelled.is_set,
            on_cancel=task.on_cancel,
        )

    def _credentials(self, question: TypeQuestion) -> Credentials:
        """The credentials for calls of services: those of the stack, or those that came with the request.

        :raises FinalFailure: there are none.
        """
        if question.credentials_id:
            return self._lent(question.credentials_id, question.project_id)
        if question.acts_as:
            return self._access.credentials(question.acts_as)
        raise FinalFailure('the stack does not exist yet, so there are no credentials of its user')

    @staticmethod
    def _read(kind: ResourceType[Any], call: Call[Any], names: Iterable[str], task: Task) -> TypeReply:
        """Read attributes. An attribute that cannot be read is left out; the reply has the first reason."""
        found: dict[str, Json] = {}
        reason = ''
        for name in names:
            try:
                with task.killable():
                    value = read_attribute(kind, call, name)
                found[name] = carried(value, f'attribute {name}', MOST_SHOWN_BYTES)
            except TaskKilled:
                raise
            except BaseException as error:  # noqa: BLE001 - as above
                reason = reason or text_of(error)
            if task.cancelled.is_set():
                break
        return TypeReply(not reason, reason, attributes=found)


class SealedAnswers:
    """Answers questions that come sealed through a broker, so that the broker can read neither them nor the replies.

    :param close: seals a text for the processes that have the keys of the database.
    :param opened: opens a text that one of these processes has sealed.
    """

    def __init__(self, answering: Answering, close: Callable[[str], str], opened: Callable[[str], str]) -> None:
        self._answering = answering
        self._close = close
        self._opened = opened

    def answer(self, context: object, questions: str, limit_s: float) -> str:
        """Return sealed replies to sealed questions.

        :raises SealedWithAnotherKey: this process lacks the key of the questions.
        :raises ValueError: the text contains no questions.
        """
        return self._close(told(self._answering.answer(questions_of(self._opened(questions)), limit_s)))


def _planned(kind: ResourceType[Any], call: Call[Any], task: Task) -> TypeReply:
    with task.killable():
        change = kind.plan(call)
    if change is None:
        return TypeReply(reason='its type does not know before the update runs')
    return TypeReply(is_known=True, change=Change(change))
