"""The part of a request's context that travels with its messages: the caller and the rules for him."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import oslo_messaging
from oslo_context.context import RequestContext

_FIELDS = ('request_id', 'user_id', 'project_id')


class CallerContext(RequestContext):
    """The caller of a request, and the resource types that the policy lets him use.

    :param type_rules: True or False by name or prefix (``A::B::*``) of a resource type: the caller may use it or not.
        None: no policy was applied. See `convergence.engine.callers.permits`.
    """

    def __init__(self, *, type_rules: Mapping[str, bool] | None = None, **values: Any) -> None:
        super().__init__(**values)
        self.type_rules = type_rules


class ContextSerializer(oslo_messaging.Serializer):  # type: ignore[misc]
    """Serializes a `RequestContext`: request id, user, project, roles and the rules about resource types.

    It leaves out the caller's token, because a broker may store and log messages. Arguments and results are plain JSON
    already and pass unchanged.
    """

    def serialize_entity(self, context: object, entity: object) -> object:
        """Return the argument or result unchanged."""
        return entity

    def deserialize_entity(self, context: object, entity: object) -> object:
        """Return the argument or result unchanged."""
        return entity

    def serialize_context(self, context: RequestContext | None) -> dict[str, Any]:
        """Return the context as JSON; empty for None, the context of messages that processes send on their own."""
        if context is None:
            return {}
        document = {name: getattr(context, name) for name in _FIELDS} | {'roles': list(context.roles or ())}
        rules = getattr(context, 'type_rules', None)
        return document if rules is None else document | {'type_rules': dict(rules)}

    def deserialize_context(self, document: Mapping[str, Any]) -> CallerContext:
        """Restore the context from `document`. It becomes the current context, so log lines name the request."""
        return CallerContext(
            type_rules=document.get('type_rules'),
            request_id=document.get('request_id'),
            user_id=document.get('user_id'),
            project_id=document.get('project_id'),
            roles=list(document.get('roles') or ()),
        )
