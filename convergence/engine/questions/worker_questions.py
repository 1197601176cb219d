"""Asks workers what only they can find out: all questions of a request in one call, and never for long.

Nobody depends on a reply. Whatever goes wrong on the way makes replies that say "not known", and why.
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
"""How long it may take to read what somebody looks at: what was read before is at hand."""
MOST_AT_ONCE = 4
"""Requests of an engine that wait for workers at the same time: the threads of the others are for what needs none."""
MOST_QUESTIONS = 500
"""Of one request."""
SILENT_S = 15.0
"""After a call that no worker has answered, how long none is asked: who asks then is told at once."""
WANTS_CREDENTIALS = 'wants_credentials'
"""In an answer: types could not be asked for want of credentials, and the same request may be made with some."""
UNASKED = TypeReply(reason='it was not asked')


class QuestionsPort(Protocol):
    """Where questions go to."""

    def __call__(
        self, context: Caller, questions: Sequence[TypeQuestion], limit_s: float | None = None
    ) -> list[TypeReply]:
        """A reply to each question, in order. Raises nothing. Not for a transaction: it may take its time.

        :param limit_s: None: `LIMIT_S`, unless less is configured.
        """


def ask_nobody(context: Caller, questions: Sequence[TypeQuestion], limit_s: float | None = None) -> list[TypeReply]:
    """An engine without workers that could be asked."""
    return [UNASKED] * len(questions)


class WorkerQuestions:
    """Asks any one worker.

    :param send: hands sealed questions to a worker, with the seconds that it has, and gives the sealed answer.
    :param close: seals a text for the processes that have the keys of the database; `opened` opens such a one.
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
            why = 'no worker has answered a moment ago' if silent else 'workers are being asked too much at the moment'
            return [TypeReply(reason=why)] * len(questions)
        try:
            replies = replies_of(self._opened(self._send(context, self._close(told([*questions])), limit_s)))
        except ConvergenceError as error:
            if isinstance(error, MessagingUnavailable):
                self._silent_until = self._clock() + SILENT_S
            return _unanswered(error, questions)
        except Exception as error:  # noqa: BLE001 - what a worker of another version says may be anything
            return _unanswered(error, questions)
        finally:
            with self._lock:
                self._asking -= 1
        if len(replies) != len(questions):
            return _unanswered(ValueError('another number of replies than of questions'), questions)
        return replies


def _unanswered(error: Exception, questions: Sequence[TypeQuestion]) -> list[TypeReply]:
    LOG.warning('%d questions to workers have no answer: %s: %s', len(questions), type(error).__name__, error)
    text = str(error) if isinstance(error, ConvergenceError) else 'the answer of the worker cannot be read'
    return [TypeReply(reason=text)] * len(questions)


def _masked(reply: TypeReply) -> TypeReply:
    """Without what is masked while the request is served."""
    return TypeReply(reply.is_known, logs.masked(reply.reason), reply.change, reply.attributes, reply.wants_credentials)
