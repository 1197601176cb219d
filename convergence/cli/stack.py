"""One stack, as somebody at a terminal deals with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from oslo_context.context import RequestContext

from convergence.rpc.operations import EventQuery

Document = dict[str, Any]


class Client(Protocol):
    """The part of `convergence.rpc.client.EngineClient` that is needed to look at a stack."""

    def show_stack(
        self, context: RequestContext, stack_identity: Document, resolve_outputs: bool = True
    ) -> list[Document]:
        """Everything about one stack, as a list of one."""

    def get_template(self, context: RequestContext, stack_identity: Document) -> Document:
        """The stack's template."""

    def list_stack_resources(self, context: RequestContext, stack_identity: Document) -> list[Document]:
        """The stack's resources."""

    def list_events(
        self, context: RequestContext, stack_identity: Document, query: EventQuery | None = None
    ) -> list[Document]:
        """What happened to the stack."""


@dataclass(frozen=True, slots=True)
class StackHandle:
    """A stack and the way to ask about it. Every method asks the engine.

    :param identity: as `create_stack` gives it.
    """

    client: Client
    context: RequestContext
    identity: Document

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.identity['stack_name'])

    def state(self) -> tuple[str, str]:
        """State, for example ``CREATE_COMPLETE``, and the reason for it."""
        (shown,) = self.client.show_stack(self.context, self.identity, resolve_outputs=False)
        return f'{shown["stack_action"]}_{shown["stack_status"]}', str(shown['stack_status_reason'])

    def outputs(self) -> list[Document]:
        """The outputs with their values, in the order of the template."""
        (shown,) = self.client.show_stack(self.context, self.identity)
        return list(shown.get('outputs', ()))

    def resources(self) -> list[Document]:
        """For each name the resource that is in service."""
        return self.client.list_stack_resources(self.context, self.identity)

    def wanted(self) -> dict[str, str]:
        """The type of each resource that the stack's template names, in the order of the template."""
        template = self.client.get_template(self.context, self.identity)
        return {name: str(one['type']) for name, one in (template.get('resources') or {}).items()}

    def events(self, since: str | None = None) -> list[Document]:
        """What happened, oldest first.

        :param since: id of an event; only what happened after it.
        """
        return self.client.list_events(self.context, self.identity, EventQuery(marker=since))

    def last_event(self) -> str | None:
        """The id of the newest event; None where nothing has happened yet."""
        newest = self.client.list_events(self.context, self.identity, EventQuery(limit=1, sort_dir='desc'))
        return event_id(newest[0]) if newest else None


def event_id(event: Document) -> str:
    """The id of an event."""
    return str(event['event_identity']['path']).rpartition('/')[2]


def is_about_a_resource(event: Document) -> bool:
    """Whether an event is about a resource, and not about the stack itself."""
    return bool(event['resource_type'] != 'OS::Heat::Stack' or event['resource_name'] != event['stack_name'])
