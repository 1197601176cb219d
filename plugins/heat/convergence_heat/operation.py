"""One call of one resource: an instance of Heat's class, and what it has done when it is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from heat.engine.rsrc_defn import ResourceDefinition
from oslo_config import cfg

from convergence.core.model import Action
from convergence.resources.contract import Call
from convergence.resources.values import named
from convergence_heat.errors import failure_of
from convergence_heat.finders import Seeker
from convergence_heat.lookups import KeptAnswers, Lookups, RecentReads
from convergence_heat.session import CallSession, Doings
from convergence_heat.stack import ActingContext, SeenStack

KEPT = KeptAnswers()
RECENT = RecentReads(KEPT)
NOT_YET = Doings()
"""The doings of a call without requests."""


@dataclass
class Operation:
    """An instance of a class of Heat at work. Made with `operation`, inside of whose block it is used.

    :ivar one: the instance.
    """

    name: str
    call: Call[Any]
    one: Any
    acting: ActingContext
    stack: SeenStack

    @property
    def doings(self) -> Doings:
        """Return the requests that it has made so far."""
        return self.acting.opened.doings if self.acting.opened is not None else NOT_YET

    def seeker(self) -> Seeker:
        """Return a seeker that queries services as the same user."""
        session = self.acting.keystone_session
        credentials = self.call.credentials()
        return Seeker(session, credentials.region, credentials.interface)

    def definition(self, properties: Any) -> ResourceDefinition:
        """The resource as a template of Heat has it, with these properties."""
        return _definition(self.name, self.call, properties)


@contextmanager
def operation(
    plugin: type[Any],
    name: str,
    call: Call[Any],
    action: Action,
    properties: Any = None,
    *,
    looks: bool = False,
) -> Iterator[Operation]:
    """Run an instance of a class of Heat; its errors become failures of the contract.

    :param plugin: the class, bridged.
    :param name: of the type.
    :param properties: the properties of the object, if they are not the desired ones.
    :param looks: True if it only reads attributes: one answer of a service serves several of them.
    """

    def open_session() -> tuple[CallSession, str, str]:
        credentials = call.credentials()
        scope = f'{credentials.project_id}:{credentials.user_id}:{call.stack_id}'
        if cfg.CONF.clients.endpoint_type != credentials.interface:
            cfg.CONF.set_override('endpoint_type', credentials.interface, group='clients')
        lookups = RECENT.of(call.token, scope) if looks else Lookups(KEPT, scope)
        opened = CallSession(credentials.session(), call.token, call.cancelled, lookups, action)
        call.on_cancel(opened.waiting.close)
        return opened, credentials.auth_url, credentials.region

    if not looks:
        RECENT.drop(call.token)
    acting = ActingContext(call.project_id, open_session)
    stack = SeenStack(call, acting, action.value)
    definition = _definition(name, call, call.properties if properties is None else properties)
    one = plugin(call.name, definition, stack)
    one.begin(call, action.value)
    at_work = Operation(name, call, one, acting, stack)
    try:
        one.translate_properties(one.properties, True, ignore_resolve_error=action is Action.DELETE)
        yield at_work
        if acting.opened is not None and not looks:
            RECENT.put(call.token, acting.opened.lookups)
    except Exception as error:
        client = one._default_client_plugin()
        ids = (call.physical_id, one.resource_id)
        raise failure_of(error, action, ids, at_work.doings, client) from error


def _definition(name: str, call: Call[Any], properties: Any) -> ResourceDefinition:
    # What the template says, without defaults: those are Heat's own, and null means "not given" to it.
    values: Mapping[str, Any] = named(properties, given=True)
    return ResourceDefinition(call.name, name, values, metadata=call.metadata or {})
