"""Nested stacks that outlive the resources that they were the objects of: they become roots of trees of their own."""

from __future__ import annotations

from collections.abc import Callable

from convergence.core.changes import StackChange
from convergence.core.effects import Decision, UpdateStack
from convergence.core.rows import Stack
from convergence.core.views import PlanView
from convergence.credentials.model import CredentialsStatus
from convergence.db.ports import Ports
from convergence.db.scopes import StackAlone
from convergence.engine.traversals.traversals import Traversals
from convergence.resources.registry import Registry


class Releases:
    """Makes nested stacks independent."""

    def __init__(self, ports: Ports, types: Registry, traversals: Traversals) -> None:
        self._reader = ports.reader
        self._credentials = ports.credentials
        self._types = types
        self._traversals = traversals

    def release(self, stack_id: str, resource_id: str) -> None:
        """Make a nested stack independent: its resource is gone and the stack stays.

        The stack keeps the credentials of its former parent stack, and becomes the root of the stacks nested in it. The
        link to the parent stack is removed last: until then the sweeper finds an unfinished release.
        """
        held = self._credentials.one(self._credentials.of_stack(stack_id) or '')
        own: StackChange = {'root_id': None, 'nested_depth': 0}
        if held is not None and held.status is CredentialsStatus.MADE:
            own['credentials_id'] = held.id

        def is_ours(stack: Stack) -> bool:
            return stack.parent_resource_id == resource_id and stack.deleted_at is None

        self._change(stack_id, is_ours, own, resource_id)
        self._root(stack_id, stack_id, 1)
        self._change(stack_id, is_ours, {'parent_id': None, 'parent_resource_id': None}, resource_id)

    def _root(self, stack_id: str, root_id: str, depth: int) -> None:
        """Move nested stacks to the tree of their new root."""
        for row in self._reader.resources(stack_id):
            child = self._reader.stack(row.token) if row.token is not None and self._types.nests(row.type) else None
            if child is not None and child.parent_id == stack_id:
                self._change(child.id, lambda stack: True, {'root_id': root_id, 'nested_depth': depth})
                self._root(child.id, root_id, depth + 1)

    def _change(
        self, stack_id: str, may: Callable[[Stack], bool], changes: StackChange, resource_id: str | None = None
    ) -> None:
        def decide(view: PlanView) -> Decision[None]:
            stack = view.stack
            if stack is None or not may(stack):
                return Decision(None)
            return Decision(None, (UpdateStack(stack.id, stack.traversal_id, changes),))

        self._traversals.decide(StackAlone(stack_id, resource_id), decide)
