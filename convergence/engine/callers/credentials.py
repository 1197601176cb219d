"""Credentials of stacks: planned before an operation, supplied with it, and discarded if the operation is refused.

The API creates them between two calls: `plan_credentials` stores a row by which they can be recognized, and the
operation refers its stack to that row. An API that dies in between leaves a row that no stack refers to;
`convergence.engine.sweeper.credentials` removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from convergence import errors
from convergence.core.rows import Stack
from convergence.credentials.model import CredentialsStatus, Method, StoredCredentials
from convergence.db.ports import CredentialsPort
from convergence.documents import Document
from convergence.engine.callers.caller import Caller


class UserCaller(Caller, Protocol):
    """A caller with a Keystone user.

    :ivar user_id: the user for whom a stack will act.
    """

    user_id: str


@dataclass(frozen=True, slots=True)
class SuppliedCredentials:
    """The credentials that an operation supplies for its stack.

    :param is_new: True if the stack did not have them before.
    """

    id: str
    is_new: bool

    @classmethod
    def of(
        cls, rows: CredentialsPort, project_id: str, credentials: Mapping[str, Any] | None
    ) -> SuppliedCredentials | None:
        """Read the credentials of a request; None if it supplies none.

        :param project_id: project of the caller, and so of the credentials.
        :param credentials: ``id``; of new ones also ``made``: the values that became known at their creation.
        :raises ActionInProgress: the request took so long that the credentials are being removed.
        """
        if credentials is None:
            return None
        made = credentials.get('made')
        if made is None:
            return cls(str(credentials['id']), is_new=False)
        row = rows.one(str(credentials['id']))
        is_ours = row is not None and row.project_id == project_id
        if row is None or not is_ours or not rows.made(row.id, {**row.readable, **made}):
            raise errors.ActionInProgress(
                'The request has taken so long that the credentials made for it are being removed; repeat it.'
            )
        return cls(row.id, is_new=True)

    def require(self, stack: Stack) -> None:
        """Check that a stack which keeps its credentials did not get others in the meantime.

        :raises ActionInProgress: it has.
        """
        if not self.is_new and stack.credentials_id not in (None, self.id):
            raise errors.ActionInProgress(
                f'Another request has updated stack {stack.name} at the same time; check it, and repeat the update.'
            )


class StackCredentials:
    """Plans credentials, and discards unneeded ones.

    :param find: the stack that an identity means.
    :param opened: opens the secret of an application credential, which the API has sealed.
    :param new_id: makes ids.
    """

    def __init__(
        self,
        rows: CredentialsPort,
        find: Callable[[Caller, Document], Stack],
        opened: Callable[[str], str],
        new_id: Callable[[], str],
    ) -> None:
        self._rows = rows
        self._find = find
        self._opened = opened
        self._new_id = new_id

    def plan_credentials(
        self,
        context: UserCaller,
        kind: str,
        roles: Sequence[str],
        secret: str | None = None,
        stack_identity: Document | None = None,
        repair: bool | None = None,
    ) -> Document:
        """Plan credentials for an operation of the caller, unless the stack has suitable ones.

        :param kind: a `Method`: the way in which they will be created.
        :param roles: roles that the stack needs.
        :param secret: of an application credential, sealed.
        :param stack_identity: the stack, if it exists.
        :param repair: replace the stack's credentials only if the stack cannot act with them.
        :returns: ``id``, and ``exists``: True if the stack has them already.
        """
        present = None
        if stack_identity is not None:
            stack = self._find(context, stack_identity)
            present = self._rows.one(self._rows.of_stack(stack.id) or '')
        if present is not None and _is_of_use(present) and (repair or self._are_those(present, context, kind, roles)):
            return {'id': present.id, 'exists': True}
        content: Document = {'roles': sorted(roles)}
        if secret is not None:
            content['secret'] = self._opened(secret)
        planned = StoredCredentials(
            self._new_id(), context.project_id, context.user_id, Method(kind), CredentialsStatus.PLANNED, content
        )
        self._rows.plan(planned)
        return {'id': planned.id, 'exists': False}

    def discard_credentials(self, context: Caller, credentials_id: str) -> None:
        """Discard the credentials of an operation that was refused; the sweeper removes them soon."""
        row = self._rows.one(credentials_id)
        if row is not None and row.project_id == context.project_id:
            self._rows.drop_unwanted(0.0, 1, credentials_id)

    @staticmethod
    def _are_those(present: StoredCredentials, context: UserCaller, kind: str, roles: Sequence[str]) -> bool:
        """Return True if credentials equal those that would be created for the caller now."""
        return (
            (present.user_id, present.method) == (context.user_id, kind)
            and present.readable.get('roles') == sorted(roles)
        )  # fmt: skip


def _is_of_use(present: StoredCredentials) -> bool:
    return present.status is CredentialsStatus.MADE and present.content is not None and not present.reason
