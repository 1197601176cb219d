"""What is told of a stack to those outside: on a message bus, in the field's own form, and to webhooks. Pure.

One payload serves both. On the bus it is an ordinary notification; to a webhook it goes as the data of a CloudEvent
1.0, signed as the specification Standard Webhooks has it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from convergence.core.model import Action, Status

SERVICE = 'orchestration'
"""How the field calls a service of this kind: event types and publishers begin with it."""
KEY_BEGINNING = 'whsec_'
"""How every key of a webhook begins; the rest is base64."""
KEY_BYTES = 32
CONTENT_TYPE = 'application/cloudevents+json; charset=utf-8'
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 3600.0


class NoticeKind(StrEnum):
    """Which part of an operation a notice is about. The value is the end of its event type."""

    START = 'start'
    PROGRESS = 'progress'
    END = 'end'
    ERROR = 'error'
    SUPPRESSED = 'suppressed'

    @classmethod
    def of(cls, status: Status, *, begins: bool) -> NoticeKind:
        """That of a stack's event.

        :param begins: whether an operation begins with it.
        """
        if status is Status.IN_PROGRESS:
            return cls.START if begins else cls.PROGRESS
        return cls.END if status is Status.COMPLETE else cls.ERROR


class NoticeSubject(StrEnum):
    """What a notice is about. The value stands in its event type."""

    STACK = 'stack'
    AUTOSCALING = 'autoscaling'
    DRIFT = 'drift'


@dataclass(frozen=True, slots=True)
class StackNotice:
    """Something that happened to a stack as a whole, and the stack as it was then.

    :param event_id: of the event of the stack; receivers recognise by it what they were told before.
    :param root_id: the stack that it is nested in at the outside, or itself.
    :param at: seconds since the epoch, and so are `created_at` and `updated_at`.
    :param description: of its template; None: it cannot be read.
    :param user_id: for whom the stack acts after a request; None: for nobody.
    :param about: the operation of the stack, a group in it that gets other members, or an object of it that changed
        outside of the stack.
    :param details: what is told besides, under keys of its own.
    """

    event_id: str
    kind: NoticeKind
    stack_id: str
    root_id: str
    project_id: str
    stack_name: str
    action: Action
    status: Status
    reason: str
    at: float
    created_at: float
    updated_at: float | None
    tags: Sequence[str]
    description: str | None
    user_id: str | None
    about: NoticeSubject = NoticeSubject.STACK
    details: Mapping[str, Any] | None = None
    sequence: int = field(default=0, compare=False)

    @property
    def event_type(self) -> str:
        """Of the notification and of the CloudEvent."""
        what = f'stack.{self.action.lower()}' if self.about is NoticeSubject.STACK else self.about
        return f'{SERVICE}.{what}.{self.kind}'

    def payload(self) -> dict[str, Any]:
        """What is told, under the field's keys."""
        return {
            'tenant_id': self.project_id,
            'user_id': self.user_id,
            'user_identity': self.user_id,
            'stack_identity': self.stack_id,
            'stack_name': self.stack_name,
            'state': f'{self.action}_{self.status}',
            'state_reason': self.reason,
            'create_at': instant(self.created_at),
            'updated_at': None if self.updated_at is None else instant(self.updated_at),
            'tags': list(self.tags),
            'description': self.description,
            **(self.details or {}),
        }

    def cloud_event(self) -> dict[str, Any]:
        """The CloudEvent for webhooks."""
        path = (self.project_id, 'stacks', self.stack_name, self.stack_id)
        source = '/v1/' + '/'.join(quote(part, safe='') for part in path)
        return cloud_event(self.event_id, self.event_type, source, self.stack_name, self.at, self.payload())


def cloud_event(
    event_id: str, event_type: str, source: str, subject: str, at: float, data: Mapping[str, Any]
) -> dict[str, Any]:
    """A CloudEvent 1.0, in its structured form.

    :param at: seconds since the epoch.
    """
    return {
        'specversion': '1.0',
        'id': event_id,
        'type': event_type,
        'source': source,
        'subject': subject,
        'time': instant(at),
        'datacontenttype': 'application/json',
        'data': dict(data),
    }


def instant(at: float) -> str:
    """A moment in seconds since the epoch, as RFC 3339 has it, in whole seconds."""
    return datetime.fromtimestamp(int(at), UTC).strftime('%Y-%m-%dT%H:%M:%SZ')


def webhook_key(random: bytes) -> str:
    """The key of a webhook in the form in which its owner is shown it.

    :param random: `KEY_BYTES` bytes that nobody can guess.
    """
    return KEY_BEGINNING + base64.b64encode(random).decode()


def signed(event: Mapping[str, Any], key: str, at: float) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of the request by which a webhook is told.

    :param key: as `webhook_key` makes it.
    :param at: when it is sent, in seconds since the epoch: receivers refuse what is old.
    """
    body = json.dumps(event, ensure_ascii=False, separators=(',', ':')).encode(errors='replace')
    message_id, sent = str(event['id']), str(int(at))
    secret = base64.b64decode(key.removeprefix(KEY_BEGINNING))
    made = hmac.new(secret, b'.'.join((message_id.encode(), sent.encode(), body)), hashlib.sha256).digest()
    return body, {
        'Content-Type': CONTENT_TYPE,
        'webhook-id': message_id,
        'webhook-timestamp': sent,
        'webhook-signature': f'v1,{base64.b64encode(made).decode()}',
    }


def pause_s(attempts: int) -> float:
    """How long a webhook is left alone after so many failures in a row: twice as long each time, up to an hour."""
    return min(FIRST_PAUSE_S * 2.0 ** min(max(attempts - 1, 0), 20), LONGEST_PAUSE_S)
