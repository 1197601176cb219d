"""Who asks: the part of a request's context that travels with its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import oslo_messaging
from oslo_context.context import RequestContext

_FIELDS = ('request_id', 'user_id', 'project_id')


class CallerContext(RequestContext):
    """Who asks, and what the policy says about it.

    :param type_rules: whether the caller may use resource types, by name or beginning (``A::B::*``); None: the policy
        was not asked. See `convergence.engine.callers.permits`.
    """

    def __init__(self, *, type_rules: Mapping[str, bool] | None = None, **values: Any) -> None:
        super().__init__(**values)
        self.type_rules = type_rules


class ContextSerializer(oslo_messaging.Serializer):  # type: ignore[misc]
    """Carries a `RequestContext` as request id, user, project, roles and the rules about resource types.

    Never a token: messages are no place for one.

    Arguments and results are plain JSON already and pass unchanged.
    """

    def serialize_entity(self, context: object, entity: object) -> object:
        """The argument or result as it is."""
        return entity

    def deserialize_entity(self, context: object, entity: object) -> object:
        """The argument or result as it is."""
        return entity

    def serialize_context(self, context: RequestContext | None) -> dict[str, Any]:
        """The context as JSON; empty for None, which is how the engine speaks to itself."""
        if context is None:
            return {}
        document = {name: getattr(context, name) for name in _FIELDS} | {'roles': list(context.roles or ())}
        rules = getattr(context, 'type_rules', None)
        return document if rules is None else document | {'type_rules': dict(rules)}

    def deserialize_context(self, document: Mapping[str, Any]) -> CallerContext:
        """The context that `document` was made from. It becomes the current one, so log lines name the request."""
        return CallerContext(
            type_rules=document.get('type_rules'),
            request_id=document.get('request_id'),
            user_id=document.get('user_id'),
            project_id=document.get('project_id'),
            roles=list(document.get('roles') or ()),
        )
