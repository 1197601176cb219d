"""What is said on the wire: topics, versions, casts and their limits. The calls are in `convergence.rpc.operations`.

Casts are hints: the row is the work, a message only wakes somebody up. So they carry ids and nothing else, and are
small. Calls of the engine come from a client and may carry a template with its files. There is one call of workers, for
what only they can ask of services (`AskWorker`): nobody depends on its answer.

What is needed and not found is refused. What is not known is ignored in a cast: a newer sender may add to a hint. In a
call it is refused: who asks for something must not be told that it was done. A change that an older reader would not
understand raises a version below.
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
"""So many refusals are remembered: a sender that goes on inventing others must not fill the memory."""
_logged: set[tuple[str, str]] = set()


def check_size(method: str, arguments: Mapping[str, object], limit_bytes: int) -> None:
    """Refuse arguments that would make a message larger than `limit_bytes` bytes of JSON.

    :raises RequestLimitExceeded: they would; nothing was sent.
    :raises Invalid: they are not plain JSON.
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
    """The error for a message that cannot be understood. Logged the first time, not for each of a flood."""
    text = f'{method}: {problem}; sender and receiver may be of different versions'
    if (method, problem) not in _logged:
        if len(_logged) >= MAX_LOGGED:
            _logged.clear()
        _logged.add((method, problem))
        LOG.warning('This process refuses a message. %s', text)
    return Invalid(text)


@dataclass(frozen=True, slots=True)
class Message:
    """Base of the casts: frozen values whose fields are ids."""

    METHOD: ClassVar[str]

    def encode(self) -> dict[str, str | int | list[int]]:
        """The message as JSON.

        :raises RequestLimitExceeded: it has more than `CAST_LIMIT_BYTES`.
        """
        document = {each.name: getattr(self, each.name) for each in fields(self)}
        check_size(self.METHOD, document, CAST_LIMIT_BYTES)
        return document

    @classmethod
    def decode(cls, document: Mapping[str, object]) -> Self:
        """The message that `document` was made from, possibly by a newer version.

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
                raise refuse(cls.METHOD, f'{each.name} must have nothing but numbers in it')
            values[each.name] = value
        return cls(**values)


@dataclass(frozen=True, slots=True)
class CheckResource(Message):
    """To one worker: this node may be ready.

    :param hops: number of redeliveries: how often workers without a free thread have forwarded the nodes.
    :param project: id of the project that it is for; empty where that is not known.
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
    """To every worker: stop what you do for this traversal."""

    METHOD: ClassVar[str] = 'cancel'

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class DriftFound(Message):
    """To one engine: an object that is to be put right was found changed, look which ones may be now.

    :param stack_id: the stack of one of them.
    """

    METHOD: ClassVar[str] = 'drifted'

    stack_id: str


@dataclass(frozen=True, slots=True)
class Settle(Message):
    """To one engine: this traversal may have ended, look what it means for the stack."""

    METHOD: ClassVar[str] = 'settle'

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class AskWorker:
    """To any one worker: answer these questions. A call; see `convergence.resources.questions`.

    :param questions: sealed, as the answer is.
    :param limit_s: for how many seconds the caller waits; what is not known by then is not known.
    """

    METHOD: ClassVar[str] = 'answer'

    questions: str
    limit_s: float

    def encode(self) -> dict[str, str | float]:
        """The message as JSON.

        :raises RequestLimitExceeded: it has more than `CALL_LIMIT_BYTES`.
        """
        document: dict[str, str | float] = {'questions': self.questions, 'limit_s': self.limit_s}
        check_size(self.METHOD, document, CALL_LIMIT_BYTES)
        return document

    @classmethod
    def decode(cls, document: Mapping[str, object]) -> Self:
        """The message that `document` was made from.

        :raises Invalid: it is not just what this version knows.
        """
        questions, limit_s = document.get('questions'), document.get('limit_s')
        if set(document) != {'questions', 'limit_s'} or not isinstance(questions, str):
            raise refuse(cls.METHOD, 'it has other arguments')
        if not isinstance(limit_s, int | float) or isinstance(limit_s, bool):
            raise refuse(cls.METHOD, 'limit_s is no number')
        return cls(questions, float(limit_s))
