"""Operations on webhooks, for the members of the project that owns them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from convergence import errors
from convergence.core.rows import Stack
from convergence.db.repositories.webhooks import Webhook, WebhookRows
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.notifications.addresses import AddressRefused, Destination, checked, destination
from convergence.engine.notifications.sending import HttpSender
from convergence.engine.reads.formats import moment
from convergence.notices import KEY_BYTES, SERVICE, cloud_event, webhook_key

LONGEST_NAME = 255


class FindsStacks(Protocol):
    """The part of `convergence.engine.operations.stacks.Stacks` that webhooks need."""

    def find(self, context: Caller, stack_identity: Document) -> Stack:
        """The living stack that an identity means. Raises `EntityNotFound`."""


@dataclass(frozen=True, slots=True)
class WebhookLimits:
    """Limits of webhooks.

    :param enabled: True if webhooks may be created.
    :param most: maximum number of webhooks of a project.
    """

    enabled: bool = True
    most: int = 20


class Webhooks:
    """Stores webhooks for the callers' projects.

    :param random: returns as many unpredictable bytes.
    """

    def __init__(
        self,
        rows: WebhookRows,
        stacks: FindsStacks,
        sender: HttpSender,
        limits: WebhookLimits,
        new_id: Callable[[], str],
        random: Callable[[int], bytes],
    ) -> None:
        self._rows = rows
        self._stacks = stacks
        self._sender = sender
        self._limits = limits
        self._new_id = new_id
        self._random = random

    def create_webhook(
        self, context: Caller, url: str, name: str | None = None, stack_identity: Document | None = None
    ) -> Document:
        """Create a webhook; it, with its key, which is never shown again.

        :param stack_identity: send the events of this stack and its nested stacks; None: of all stacks of the project.
        :raises Invalid: the address is malformed or refused.
        :raises EntityNotFound: there is no such stack.
        :raises NotOffered: the installation has no webhooks.
        :raises RequestLimitExceeded: the project has the maximum number of webhooks.
        """
        if not self._limits.enabled:
            raise errors.NotOffered('This installation has no webhooks ([notifications] webhooks).')
        to = destination(url)
        self._check(to)
        if len(name or '') > LONGEST_NAME:
            raise errors.Invalid(f'The name of a webhook has at most {LONGEST_NAME} characters.')
        stack_id = None
        if stack_identity is not None:
            stack = self._stacks.find(context, stack_identity)
            if stack.parent_id is not None:
                raise errors.Invalid(f'Stack {stack.name} is nested in another; give the outermost one a webhook.')
            stack_id = stack.id
        content = {'url': url, 'key': webhook_key(self._random(KEY_BYTES))}
        wanted = Webhook(self._new_id(), context.project_id, stack_id, name or '', content, to.authority)
        made = self._rows.add(wanted, self._limits.most)
        if made is None:
            raise errors.RequestLimitExceeded(
                f'The project has {self._limits.most} webhooks, as many as it may have ([notifications] '
                'max_webhooks_per_project); delete one first.'
            )
        return {**self._document(made), 'key': content['key']}

    def list_webhooks(self, context: Caller, stack_identity: Document | None = None) -> list[Document]:
        """The webhooks of the caller's project, or those of one stack, oldest first.

        :raises EntityNotFound: there is no such stack.
        """
        stack_id = None if stack_identity is None else self._stacks.find(context, stack_identity).id
        return [self._document(each) for each in self._rows.of_project(context.project_id, stack_id)]

    def show_webhook(self, context: Caller, webhook_id: str) -> Document:
        """One webhook, with the state of its delivery.

        :raises EntityNotFound: the project has no such webhook.
        """
        return self._document(self._one(context, webhook_id))

    def delete_webhook(self, context: Caller, webhook_id: str) -> None:
        """Delete a webhook, and discard its pending events.

        :raises EntityNotFound: the project has no such webhook.
        """
        if not self._rows.remove(context.project_id, webhook_id):
            raise errors.EntityNotFound('Webhook', webhook_id)

    def test_webhook(self, context: Caller, webhook_id: str) -> Document:
        """Send a test event to a webhook now; the result.

        :raises EntityNotFound: the project has no such webhook.
        """
        webhook = self._one(context, webhook_id)
        content = webhook.content
        if content is None:
            return {'delivered': False, 'status': None, 'error': 'the stored webhook is unreadable'}
        source = f'/v1/{webhook.project_id}/webhooks/{webhook.id}'
        event = cloud_event(self._new_id(), f'{SERVICE}.webhook.test', source, webhook.name, time.time(), {})
        try:
            status = self._sender.send(content['url'], content['key'], event)
        except errors.ConvergenceError as error:
            return {'delivered': False, 'status': None, 'error': str(error)}
        return {'delivered': True, 'status': status, 'error': ''}

    def _check(self, to: Destination) -> None:
        try:
            checked(to, self._sender.allowed, self._sender.resolve)
        except AddressRefused as error:
            raise errors.Invalid(str(error)) from None

    def _one(self, context: Caller, webhook_id: str) -> Webhook:
        found = self._rows.one(context.project_id, webhook_id)
        if found is None:
            raise errors.EntityNotFound('Webhook', webhook_id)
        return found

    def _document(self, webhook: Webhook) -> Document:
        return {
            'id': webhook.id,
            'name': webhook.name,
            'url': (webhook.content or {}).get('url'),
            'stack_id': webhook.stack_id,
            'creation_time': moment(webhook.created_at),
            'last_delivery_time': None if webhook.delivered_at is None else moment(webhook.delivered_at),
            'waiting': self._rows.waiting(webhook.id),
            'failed_attempts': webhook.attempts,
            'given_up': webhook.given_up,
            'error': webhook.reason,
        }
