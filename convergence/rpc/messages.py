"""Messages on the wire: topics, versions, casts and their limits. The calls are in `convergence.rpc.operations`.

Casts are hints: the database row holds the work, and a message only wakes a process up. Casts therefore carry ids only
and are small. Calls of the engine come from a client and may carry a template with its files. Workers answer one call,
`AskWorker`, because only workers can query the services behind resource types; no operation depends on its answer.

A receiver refuses a message with a missing argument. It ignores an unknown argument of a cast, because a newer sender
may extend a hint. It refuses an unknown argument of a call, because otherwise the caller would believe that his request
was carried out. A change that an older receiver would not understand raises a version below.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self

from convergence.errors import Invalid, RequestLimitExceeded

LOG = logging.getLogger(__name__)

WORKER_TOPIC = 'worker'
CANCEL_TOPIC = 'worker_cancel'
ENGINE_TOPIC = 'engine'
QUESTION_TOPIC = 'worker_question'

WORKER_VERSION = '1.0'
CANCEL_VERSION = '1.0'
ENGINE_VERSION = '1.0'
QUESTION_VERSION = '1.0'

CAST_LIMIT_BYTES = 64 * 1024
CALL_LIMIT_BYTES = 64 * 1024 * 1024

_KINDS: dict[str, type] = {'str': str, 'int': int, 'list[int]': list}

MAX_LOGGED = 1000
"""Maximum number of remembered refusals, so that a faulty sender with ever new errors cannot fill the memory."""
_logged: set[tuple[str, str]] = set()


def check_size(method: str, arguments: Mapping[str, object], limit_bytes: int) -> None:
    """Refuse arguments that have more than `limit_bytes` bytes as JSON.

    :raises RequestLimitExceeded: the arguments are too large; nothing was sent.
    :raises Invalid: the arguments are not plain JSON.
    """
    try:
        size = len(json.dumps(arguments).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f'{method}: the arguments cannot be sent, they are not plain JSON: {error}') from None
    if size > limit_bytes:
        only_ids = limit_bytes <= CAST_LIMIT_BYTES
        advice = 'only ids belong in it' if only_ids else 'make the template or its files smaller'
        raise RequestLimitExceeded(
            f'{method}: the message would have {size} bytes, the limit is {limit_bytes} bytes ({advice})'
        )


def refuse(method: str, problem: str) -> Invalid:
    """Return the error for a message that this process cannot understand. Log each problem only the first time."""
    text = f'{method}: {problem}; sender and receiver may be of different versions'
    if (method, problem) not in _logged:
        if len(_logged) >= MAX_LOGGED:
            _logged.clear()
        _logged.add((method, problem))
        LOG.warning('Message refused; check that all processes have the same version: %s', text)
    return Invalid(text)


@dataclass(frozen=True, slots=True)
class Message:
    """Base class of the casts: frozen values whose fields are ids and numbers."""

    METHOD: ClassVar[str]

    def encode(self) -> dict[str, str | int | list[int]]:
        """Return the message as JSON.

        :raises RequestLimitExceeded: the message has more than `CAST_LIMIT_BYTES` bytes.
        """
        document = {each.name: getattr(self, each.name) for each in fields(self)}
        check_size(self.METHOD, document, CAST_LIMIT_BYTES)
        return document

    @classmethod
    def decode(cls, document: Mapping[str, object]) -> Self:
        """Restore the message from `document`; a newer version may have sent it.

        :raises Invalid: a field is missing or of the wrong type.
        """
        values: dict[str, Any] = {}
        for each in fields(cls):
            if each.name not in document:
                if each.default is not MISSING or each.default_factory is not MISSING:
                    continue  # an older sender does not know it
                raise refuse(cls.METHOD, f'{each.name} is missing')
            value, kind = document[each.name], _KINDS[str(each.type)]
            if not isinstance(value, kind) or isinstance(value, bool):
                raise refuse(cls.METHOD, f'{each.name} must be {kind.__name__}, not {type(value).__name__}')
            if isinstance(value, list) and not all(type(member) is int for member in value):
                raise refuse(cls.METHOD, f'{each.name} must be a list of numbers')
            values[each.name] = value
        return cls(**values)


@dataclass(frozen=True, slots=True)
class CheckResource(Message):
    """Notifies one worker that a node may be ready.

    :param hops: number of redeliveries: how many workers without a free thread forwarded the message.
    :param project: id of the project of the stack; empty if the sender does not know it.
    :param more: numbers of other nodes of the traversal that may be ready.
    """

    METHOD: ClassVar[str] = 'check_resource'

    traversal_id: str
    node: int
    hops: int = 0
    project: str = ''
    more: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """Requests that every worker stops its actions for a traversal."""

    METHOD: ClassVar[str] = 'cancel'

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class DriftFound(Message):
    """Notifies one engine that an observer found drift to repair; the engine then starts the repairs that are due.

    :param stack_id: the stack of a drifted object.
    """

    METHOD: ClassVar[str] = 'drifted'

    stack_id: str


@dataclass(frozen=True, slots=True)
class Settle(Message):
    """Notifies one engine that a traversal may have ended, so that the engine settles its stack."""

    METHOD: ClassVar[str] = 'settle'

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class AskWorker:
    """Call to any one worker: questions to resource types. See `convergence.resources.questions`.

    :param questions: the questions as sealed text; the answer is sealed as well.
    :param limit_s: seconds that the caller waits. The worker leaves out the answers that it does not have by then.
    """

    METHOD: ClassVar[str] = 'answer'

    questions: str
    limit_s: float

    def encode(self) -> dict[str, str | float]:
        """Return the message as JSON.

        :raises RequestLimitExceeded: the message has more than `CALL_LIMIT_BYTES` bytes.
        """
        document: dict[str, str | float] = {'questions': self.questions, 'limit_s': self.limit_s}
        check_size(self.METHOD, document, CALL_LIMIT_BYTES)
        return document

    @classmethod
    def decode(cls, document: Mapping[str, object]) -> Self:
        """Restore the message from `document`.

        :raises Invalid: `document` has missing, unknown or malformed arguments.
        """
        questions, limit_s = document.get('questions'), document.get('limit_s')
        if set(document) != {'questions', 'limit_s'} or not isinstance(questions, str):
            raise refuse(cls.METHOD, 'it needs exactly the arguments questions and limit_s')
        if not isinstance(limit_s, int | float) or isinstance(limit_s, bool):
            raise refuse(cls.METHOD, 'limit_s must be a number')
        return cls(questions, float(limit_s))
