"""Changes the drift policy of a stack without an update."""

from __future__ import annotations

from convergence import errors
from convergence.core.effects import Decision, UpdateStack
from convergence.core.views import PlanView
from convergence.db.scopes import StackAlone
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.operations.options import drift_policy
from convergence.engine.operations.stacks import Stacks
from convergence.engine.traversals.traversals import Traversals


class DriftPolicyChanges:
    """Changes the drift policy of stacks, at any time, even while an operation is in progress."""

    def __init__(self, stacks: Stacks, traversals: Traversals) -> None:
        self._stacks = stacks
        self._traversals = traversals

    def set_drift_policy(self, context: Caller, stack_identity: Document, policy: str) -> Document:
        """Change the drift policy of a stack; the policy.

        Repairs that were given up are tried again. The policy applies to all nested stacks.

        :raises Invalid: there is no such policy.
        :raises NotSupported: the stack is nested in another one, whose policy applies.
        """
        wanted = drift_policy(policy)
        if wanted is None:
            raise errors.Invalid('drift_policy: the name of a policy is missing')
        stack = self._stacks.find(context, stack_identity)
        if stack.root_id is not None:
            raise errors.NotSupported(f'Stack {stack.name} is nested; the policy of the stack at the top holds for it.')

        def decide(view: PlanView) -> Decision[None]:
            if view.stack is None:
                return Decision(None)
            return Decision(None, (UpdateStack(stack.id, view.stack.traversal_id, {'drift_policy': wanted}),))

        self._traversals.decide(StackAlone(stack.id), decide)
        return {'drift_policy': wanted.value}
