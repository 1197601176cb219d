"""Notices about stacks for receivers outside: a message bus, in the form of OpenStack, and webhooks. No I/O.

Both receive the same payload. The bus carries it as an ordinary notification. A webhook receives it as the data of a
CloudEvent 1.0, with a signature as the specification Standard Webhooks defines it.
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
"""The OpenStack name of a service of this kind: event types and publisher ids begin with it."""
KEY_BEGINNING = 'whsec_'
"""The prefix of every key of a webhook; the rest is base64."""
KEY_BYTES = 32
CONTENT_TYPE = 'application/cloudevents+json; charset=utf-8'
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 3600.0


class NoticeKind(StrEnum):
    """The part of an operation that a notice reports. The value is the last part of its event type."""

    START = 'start'
    PROGRESS = 'progress'
    END = 'end'
    ERROR = 'error'
    SUPPRESSED = 'suppressed'

    @classmethod
    def of(cls, status: Status, *, begins: bool) -> NoticeKind:
        """Return the kind of a stack's event.

        :param status: the status of the stack in the event.
        :param begins: True if the event is the first one of an operation.
        """
        if status is Status.IN_PROGRESS:
            return cls.START if begins else cls.PROGRESS
        return cls.END if status is Status.COMPLETE else cls.ERROR


class NoticeSubject(StrEnum):
    """The subject of a notice. The value is a part of its event type."""

    STACK = 'stack'
    AUTOSCALING = 'autoscaling'
    DRIFT = 'drift'


@dataclass(frozen=True, slots=True)
class StackNotice:
    """An event of a stack as a whole, and the state of the stack at that time.

    :param event_id: id of the stack's event; receivers use it to recognise a repeated notice.
    :param root_id: id of the root stack; of the stack itself if it is not nested.
    :param at: time of the event in seconds since the epoch, as are `created_at` and `updated_at`.
    :param description: description in the stack's template; None: the template cannot be read.
    :param user_id: the user that the stack acts for after a request; None: the stack has no credentials.
    :param about: the subject: an operation of the stack, a group whose members change, or an object that was changed
        outside the stack.
    :param details: further keys of the payload; None: no further keys.
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
        """The type of the notification and of the CloudEvent."""
        what = f'stack.{self.action.lower()}' if self.about is NoticeSubject.STACK else self.about
        return f'{SERVICE}.{what}.{self.kind}'

    def payload(self) -> dict[str, Any]:
        """Return the content of the notice under the keys that OpenStack uses."""
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
        """Return the CloudEvent for webhooks."""
        path = (self.project_id, 'stacks', self.stack_name, self.stack_id)
        source = '/v1/' + '/'.join(quote(part, safe='') for part in path)
        return cloud_event(self.event_id, self.event_type, source, self.stack_name, self.at, self.payload())


def cloud_event(
    event_id: str, event_type: str, source: str, subject: str, at: float, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a CloudEvent 1.0 in its structured form.

    :param at: time of the event in seconds since the epoch.
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
    """Format a time in seconds since the epoch as RFC 3339, in whole seconds."""
    return datetime.fromtimestamp(int(at), UTC).strftime('%Y-%m-%dT%H:%M:%SZ')


def webhook_key(random: bytes) -> str:
    """Return the key of a webhook in the form that its owner sees.

    :param random: `KEY_BYTES` random bytes, fit for secrets.
    """
    return KEY_BEGINNING + base64.b64encode(random).decode()


def signed(event: Mapping[str, Any], key: str, at: float) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of the request to a webhook.

    :param key: key of the webhook, as `webhook_key` returns it.
    :param at: time of sending in seconds since the epoch; receivers refuse old requests.
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
    """Return the seconds until the next attempt after `attempts` failures in a row.

    The pause doubles with each failure, up to an hour.
    """
    return min(FIRST_PAUSE_S * 2.0 ** min(max(attempts - 1, 0), 20), LONGEST_PAUSE_S)
