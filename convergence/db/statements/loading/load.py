"""Lock and read what a scope says: which function does so for which scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from convergence.db.scopes import (
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    Scope,
    SeveralStacks,
    SignalledResource,
    StackAlone,
    ViewT,
    WholeStack,
)
from convergence.db.statements.loading.last_nodes import last_node
from convergence.db.statements.loading.nodes import one_node, one_replacement
from convergence.db.statements.loading.plans import new_stack, several_stacks, stack_alone, whole_stack
from convergence.db.statements.loading.resources import held_resource
from convergence.db.statements.loading.signals import signalled_resource

_LOADERS: dict[type, Callable[[Connection, Any], Any]] = {
    NewStack: new_stack,
    WholeStack: whole_stack,
    SeveralStacks: several_stacks,
    StackAlone: stack_alone,
    OneNode: one_node,
    OneReplacement: one_replacement,
    LastNode: last_node,
    HeldResource: held_resource,
    SignalledResource: signalled_resource,
}


def load(connection: Connection, scope: Scope[ViewT]) -> ViewT:
    """Lock and read what the scope says.

    :returns: the scope's view.
    :raises Missing: what the scope names is not there.
    :raises Conflict: it changed between the look and the lock.
    """
    view: ViewT = _LOADERS[type(scope)](connection, scope)
    return view
