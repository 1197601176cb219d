"""Sends questions to workers: all questions of a request in one call, with a time limit.

The engine needs no reply: every failure on the way yields replies that say "not known", with the reason.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from convergence import logs
from convergence.concurrency import Lock
from convergence.engine.callers.caller import Caller
from convergence.errors import ConvergenceError, MessagingUnavailable
from convergence.resources.questions import TypeQuestion, TypeReply, replies_of, told

LOG = logging.getLogger(__name__)

LIMIT_S = 20.0
"""How long the questions of a preview may take; the API waits for an engine three times as long."""
LOOK_S = 5.0
"""Time limit for reading the attributes that a user is shown. Short, because the values read earlier are a substitute.
"""
MOST_AT_ONCE = 4
"""Maximum number of requests of an engine that wait for workers at a time, so that other requests find a free thread.
"""
MOST_QUESTIONS = 500
"""Of one request."""
SILENT_S = 15.0
"""Pause in seconds after a call that no worker answered: questions in that time fail at once."""
WANTS_CREDENTIALS = 'wants_credentials'
"""Key in an answer: types had no credentials to query their services; the same request with credentials tells more."""
UNASKED = TypeReply(reason='the question was not sent')


class QuestionsPort(Protocol):
    """Answers questions."""

    def __call__(
        self, context: Caller, questions: Sequence[TypeQuestion], limit_s: float | None = None
    ) -> list[TypeReply]:
        """A reply to each question, in order. Raises nothing. It may block; do not call it in a transaction.

        :param limit_s: None: `LIMIT_S`, unless less is configured.
        """


class WorkerQuestions:
    """Sends questions to any one worker.

    :param send: sends sealed questions to a worker, with the time limit in seconds; returns the sealed answer.
    :param close: seals a text for the processes that have the keys of the database; `opened` opens such a text.
    :param limit_s: see `LIMIT_S`.
    :param most_at_once: see `MOST_AT_ONCE`.
    """

    def __init__(
        self,
        send: Callable[[Any, str, float], str],
        close: Callable[[str], str],
        opened: Callable[[str], str],
        limit_s: float = LIMIT_S,
        most_at_once: int = MOST_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._close = close
        self._opened = opened
        self._limit_s = limit_s
        self._most = most_at_once
        self._clock = clock
        self._lock = Lock()
        self._asking = 0
        self._silent_until = 0.0

    def __call__(
        self, context: Caller, questions: Sequence[TypeQuestion], limit_s: float | None = None
    ) -> list[TypeReply]:
        """See `QuestionsPort`."""
        if not questions:
            return []
        asked = questions[:MOST_QUESTIONS]
        replies = self._answered(context, asked, min(limit_s or self._limit_s, self._limit_s))
        return [_masked(each) for each in replies] + [UNASKED] * (len(questions) - len(asked))

    def _answered(self, context: Caller, questions: Sequence[TypeQuestion], limit_s: float) -> list[TypeReply]:
        with self._lock:
            silent, crowded = self._clock() < self._silent_until, self._asking >= self._most
            if not (silent or crowded):
                self._asking += 1
        if silent or crowded:
            why = 'no worker answered a moment ago' if silent else 'too many questions wait for workers at the moment'
            return [TypeReply(reason=why)] * len(questions)
        try:
            replies = replies_of(self._opened(self._send(context, self._close(told([*questions])), limit_s)))
        except ConvergenceError as error:
            if isinstance(error, MessagingUnavailable):
                self._silent_until = self._clock() + SILENT_S
            return _unanswered(error, questions)
        except Exception as error:  # noqa: BLE001 - the answer of a worker of another version may have any form
            return _unanswered(error, questions)
        finally:
            with self._lock:
                self._asking -= 1
        if len(replies) != len(questions):
            return _unanswered(ValueError('the number of replies differs from the number of questions'), questions)
        return replies


def _unanswered(error: Exception, questions: Sequence[TypeQuestion]) -> list[TypeReply]:
    LOG.warning(
        'No worker answered %d questions, the request continues without the answers: %s: %s',
        len(questions),
        type(error).__name__,
        error,
    )
    text = str(error) if isinstance(error, ConvergenceError) else 'the answer of the worker is unreadable'
    return [TypeReply(reason=text)] * len(questions)


def _masked(reply: TypeReply) -> TypeReply:
    """The reply without the secrets that the log masks for this request."""
    return TypeReply(reply.is_known, logs.masked(reply.reason), reply.change, reply.attributes, reply.wants_credentials)
