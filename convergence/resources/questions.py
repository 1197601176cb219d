"""Questions that an engine sends to a worker about a resource type, their replies, and both as documents.

Only workers import the classes of types and can act for a user, so only they can query services. A question changes
nothing, and nothing depends on a reply: a missing reply means "not known".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from convergence.core.model import Change, Json
from convergence.values import replace


class QuestionKind(StrEnum):
    """The kinds of questions.

    * VALIDATE: can there be an object with these properties? See `ResourceType.validate`.
    * PLAN: what would an update of the object to these properties do? See `ResourceType.plan`.
    * READ: the present values of attributes of the object. See `ResourceType.attribute`.
    """

    VALIDATE = 'VALIDATE'
    PLAN = 'PLAN'
    READ = 'READ'


@dataclass(frozen=True, slots=True)
class TypeQuestion:
    """One question about one resource.

    :param name: of the resource in its template.
    :param stack_id: of the stack of the resource; the stack may not exist yet.
    :param acts_as: the stack whose credentials are used; empty: there is none yet.
    :param credentials_id: the credentials of a stack that does not exist yet; empty: there are none.
    :param resource_id: its row; empty if there is none. The worker that answers reads the row.
    :param properties: the desired properties, all values known.
    :param attributes: names of the attributes to read.
    :param secrets: texts that are masked in log lines and in the reply.
    """

    asked: QuestionKind
    type: str
    name: str
    stack_id: str
    stack_name: str
    project_id: str
    acts_as: str = ''
    credentials_id: str = ''
    resource_id: str = ''
    properties: Mapping[str, Json] = field(default_factory=dict, repr=False)
    metadata: Json = field(default_factory=dict, repr=False)
    attributes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def key(self) -> str:
        """The same for two questions that are the same."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class TypeReply:
    """The answer to one question.

    :param is_known: True if the type has answered.
    :param reason: the reason why there can be no such object, why the update would fail, or why the answer is not
        known. Empty without a problem.
    :param change: the effect of an update.
    :param attributes: those that could be read, by name.
    :param wants_credentials: True if the answer is not known because there are no credentials.
    """

    is_known: bool = False
    reason: str = ''
    change: Change | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict, repr=False)
    wants_credentials: bool = False

    @property
    def refusal(self) -> str:
        """Return the reason why the request is impossible; empty if it is possible, or not known."""
        return self.reason if self.is_known else ''


def told(parts: list[TypeQuestion] | list[TypeReply]) -> str:
    """Questions or replies as a text."""
    return json.dumps([asdict(each) for each in parts])


def questions_of(text: str) -> list[TypeQuestion | None]:
    """The questions that a text holds; None for each that only a newer version understands.

    :raises ValueError: it holds none.
    """
    return [_question(each) for each in _documents(text)]


def replies_of(text: str) -> list[TypeReply]:
    """The replies that a text holds.

    :raises ValueError: it holds none.
    """
    try:
        return [_reply(each) for each in _documents(text)]
    except (KeyError, TypeError) as error:
        raise ValueError(f'it is no reply: {type(error).__name__}') from None


def _documents(text: str) -> list[dict[str, Any]]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError('it is no list of maps')
    return found


def _question(document: Mapping[str, Any]) -> TypeQuestion | None:
    try:
        # An unknown field means a newer engine: a question that is only half understood must not get an answer.
        asked, attributes, secrets = (
            QuestionKind(document['asked']),
            tuple(document['attributes']),
            tuple(document['secrets']),
        )
        return TypeQuestion(**{**document, 'asked': asked, 'attributes': attributes, 'secrets': secrets})
    except (KeyError, TypeError, ValueError):
        return None


def _reply(document: Mapping[str, Any]) -> TypeReply:
    known = {each.name for each in fields(TypeReply)}
    reply = TypeReply(**{name: value for name, value in document.items() if name in known})
    return reply if reply.change is None else replace(reply, change=Change(reply.change))
