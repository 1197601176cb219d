"""Signals of users and programs to a resource, also to clear its hooks.

A signal disturbs neither the worker that has claimed the resource nor the values that this worker writes. So a signal
can arrive at any time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Protocol

from convergence import errors, logs
from convergence.core.effects import Decision
from convergence.core.model import Action, Hook, Json
from convergence.core.rows import Resource, Stack
from convergence.core.signals import clear, receive
from convergence.core.views import SignalView
from convergence.db.ports import Ports
from convergence.db.repositories.reads.stacks import in_service
from convergence.db.scopes import SignalledResource
from convergence.dispatch import Dispatcher
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.reads.resource_metadata import with_signals
from convergence.engine.signals.scaling import GroupScaling
from convergence.resources.contract import PluginFailure, ResourceType
from convergence.resources.invocation import Subject, build_call, heard_by
from convergence.resources.reading import Strictness, did_you_mean
from convergence.resources.registry import Registry
from convergence.resources.scaling import PolicyType
from convergence.resources.secrets import known_secrets
from convergence.resources.software import ProjectSoftware
from convergence.values import replace

LOG = logging.getLogger(__name__)

UNSET_HOOK = 'unset_hook'
MOST_BYTES = 1_048_576
"""Default limit in bytes for the stored signals of one resource."""


def _anybody(row: Resource) -> None:
    """Lets every sender signal a row."""


class Finder(Protocol):
    """Finds the living stack that an identity means, in the caller's project."""

    def find(self, context: Caller, stack_identity: Document) -> Stack:
        """The stack.

        :raises EntityNotFound: there is none.
        """


class SignalOperations:
    """Accepts signals. An accepted signal is in the database before a method returns.

    :param most_bytes: limit for the stored signals of one resource.
    """

    def __init__(
        self,
        ports: Ports,
        stacks: Finder,
        types: Registry,
        dispatcher: Dispatcher,
        scaling: GroupScaling,
        new_id: Callable[[], str],
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._scaling = scaling
        self._most_bytes = most_bytes
        self._store = ports.store
        self._reader = ports.reader
        self._software = ports.software
        self._stacks = stacks
        self._types = types
        self._dispatcher = dispatcher
        self._new_id = new_id

    def resource_signal(
        self,
        context: Caller,
        stack_identity: Document,
        resource_name: str,
        details: Json = None,
        sync_call: bool = False,
    ) -> Json:
        """Pass a signal to a resource, or clear a hook of it with ``{"unset_hook": …}``.

        :param details: the content, in a form that the resource's type accepts.
        :param sync_call: return the resource's metadata.
        :returns: the metadata, or None.
        :raises ResourceNotFound: the stack has no such resource.
        :raises ResourceNotAvailable: it has no object yet.
        :raises ResourceActionNotSupported: its type takes no signals.
        :raises NotSupported: it is suspended or deleted, or that is in progress.
        :raises InvalidBreakPointHook: it does not wait at such a hook.
        :raises Invalid: the type refuses the content.
        """
        stack, row = self.named(context, stack_identity, resource_name)
        if isinstance(details, dict) and UNSET_HOOK in details:
            self._clear(stack, row, details[UNSET_HOOK])
            return None
        self.receive(stack, row, details)
        return with_signals(stack, row, {}, self._reader, self._types, self._software) if sync_call else None

    def named(self, context: Caller, stack_identity: Document, resource_name: str) -> tuple[Stack, Resource]:
        """A stack, and the row of one of its resources that is, or will be, in service.

        :raises EntityNotFound: there is no such stack, or, as `ResourceNotFound`, no such resource in it.
        """
        stack = self._stacks.find(context, stack_identity)
        rows = self._reader.resources_named(stack.id, [resource_name])
        row = in_service(rows, stack.template_id).get(resource_name)
        if row is None:
            raise errors.ResourceNotFound(f'The Resource ({resource_name}) could not be found in Stack {stack.name}.')
        return stack, row

    # --- signals ----------------------------------------------------------------------------------------------

    def receive(self, stack: Stack, row: Resource, details: Json, may: Callable[[Resource], None] = _anybody) -> None:
        """Accept a signal to a row, from any sender.

        :param may: raises an error for the sender if it may not signal the row in its state when the signal is stored.
        :raises ConvergenceError: see `resource_signal`.
        """
        kind = self.listening(row)
        if isinstance(kind, PolicyType):
            self._scaling.signal(stack, row, kind, details, may)
            return
        reason = self._looked_at(stack, row, kind, details)
        self._receive(stack, row, details, reason, may)

    def listening(self, row: Resource) -> ResourceType[Any]:
        """The type of a row that takes signals now.

        :raises ConvergenceError: it takes none; see `resource_signal`.
        """
        kind = self._types.get(row.type)
        if not kind.takes_signals:
            raise errors.ResourceActionNotSupported(
                f'signal is not supported for resource. ({row.name} is a {row.shown_type})'
            )
        if row.action in kind.deaf_in:
            raise errors.NotSupported(f'Signal resource during {row.action} is not supported.')
        if row.action is Action.INIT:
            raise errors.ResourceNotAvailable(f'The Resource ({row.name}) is not available.')
        return kind

    def is_going(self, row: Resource) -> bool:
        """Return True if a row is being deleted, so that it takes no signals any more."""
        deaf = row.type not in self._types or Action.DELETE in self._types.get(row.type).deaf_in
        return row.action is Action.DELETE and deaf

    def _looked_at(self, stack: Stack, row: Resource, kind: ResourceType[Any], details: Json) -> str:
        """The reaction of the resource's type to a signal."""
        call = build_call(
            kind,
            Subject.of(stack, row),
            row.properties,
            strictness=Strictness.LENIENT,
            signals=lambda: heard_by(row, row.pending, self._reader.signals),
        )
        call = replace(
            call,
            signal_count=lambda: self._reader.count_signals(row.id),
            software=ProjectSoftware(self._software, stack.project_id),
        )
        with logs.masking(known_secrets(row, self._types)):
            try:
                return logs.masked(str(kind.signal(call, details)))
            except PluginFailure as error:
                text = logs.masked(str(error))
                raise errors.Invalid(f'The signal to {row.name} makes no sense: {text}') from error

    def _receive(
        self, stack: Stack, row: Resource, details: Json, reason: str, may: Callable[[Resource], None]
    ) -> None:
        signal_id = self._new_id() if self._types.get(row.type).keeps_signals else None
        tried = False

        def decide(view: SignalView) -> Decision[bool]:
            nonlocal tried
            if tried and signal_id is not None and self._reader.has_signal(row.id, signal_id):
                return Decision(True)  # the answer to the commit was lost
            if view.resource is not None:
                self.listening(view.resource)
                may(view.resource)
                if signal_id is not None:
                    self._require_room(view, row, details)
            tried = True
            return receive(view, signal_id, details, reason, self._new_id)

        if not self._decide(stack, row, decide):
            raise errors.ResourceNotFound(f'The Resource ({row.name}) could not be found in Stack {stack.name}.')

    def _require_room(self, view: SignalView, row: Resource, details: Json) -> None:
        """Refuse a signal for which a resource has no room, because readers load all signals of a resource at once.

        :raises Invalid: the limit is reached.
        """
        said = 0 if details is None else len(json.dumps(details))
        if view.received_bytes + said > self._most_bytes:
            raise errors.Invalid(
                f'{row.name} has received {view.received_bytes} bytes with its signals, and takes no more; the limit '
                f'[limits] max_signal_bytes is {self._most_bytes}'
            )

    def _decide(self, stack: Stack, row: Resource, decide: Callable[[SignalView], Decision[bool]]) -> bool:
        committed = self._store.transact(SignalledResource(stack.id, row.id), decide)
        if committed is None:
            return False
        self._dispatcher.attend(committed)
        return committed.verdict

    # --- hooks ------------------------------------------------------------------------------------------------

    def _clear(self, stack: Stack, row: Resource, wanted: Json) -> None:
        if not isinstance(wanted, str) or wanted not in tuple(Hook):
            hint = did_you_mean(wanted, tuple(Hook)) if isinstance(wanted, str) else ''
            raise errors.InvalidBreakPointHook(f'Invalid hook type "{wanted}" for {row.name}{hint or "."}')
        hook, traversal_id, cleared = Hook(wanted), stack.traversal_id or '', []

        def decide(view: SignalView) -> Decision[bool]:
            present = view.traversal.id if view.traversal is not None else ''
            if view.resource is not None and present in cleared and view.resource.has_passed(hook, present):
                return Decision(True)  # the answer to the commit was lost
            cleared.append(present)
            return clear(view, hook, self._new_id)

        # A name may have several rows: the one that waits is meant.
        rows = self._reader.resources_named(stack.id, [row.name])
        waiting = [each for each in rows if each.waits_at(traversal_id) is hook]
        if not self._decide(stack, (waiting or [row])[0], decide):
            raise errors.InvalidBreakPointHook(f'The "{hook}" hook is not defined on {row.name}')
        LOG.info('User cleared hook %s of resource %s, its node continues', hook, row.name)
