"""Credentials for a stack: whether an operation needs new ones, and what becomes of those that were made for it.

The API makes them, between two calls: `plan_credentials` stores a row that says how they can be recognized, and the
operation itself refers its stack to that row. Whoever dies in between leaves a row that no stack has; see
`convergence.engine.sweeper.credentials`.
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
    """A caller who is known to Keystone.

    :ivar user_id: for whom a stack will act.
    """

    user_id: str


@dataclass(frozen=True, slots=True)
class SuppliedCredentials:
    """The credentials that an operation brings for its stack.

    :param is_new: whether the stack has not had them before.
    """

    id: str
    is_new: bool

    @classmethod
    def of(
        cls, rows: CredentialsPort, project_id: str, credentials: Mapping[str, Any] | None
    ) -> SuppliedCredentials | None:
        """What a request carries; None where it brings none.

        :param project_id: of the caller, and so of the credentials.
        :param credentials: ``id``; of new ones also ``made``: what has become known when they were made.
        :raises ActionInProgress: they are being removed already, because the request has taken so long.
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
        """Make sure that a stack which is to keep its credentials has not got others in the meantime.

        :raises ActionInProgress: it has.
        """
        if not self.is_new and stack.credentials_id not in (None, self.id):
            raise errors.ActionInProgress(
                f'Somebody else has updated stack {stack.name} at the same time; look at it, and repeat the update.'
            )


class StackCredentials:
    """Plans credentials, and has them removed again.

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
        """Keep in mind that credentials are about to be made for an operation of the caller, unless it has some.

        :param kind: a `Method`: how they are made.
        :param roles: that the stack is to have.
        :param secret: of an application credential, sealed.
        :param stack_identity: the stack that there is already.
        :param repair: whether only those of the stack are to be replaced with which it cannot act.
        :returns: ``id``, and ``exists``: whether the stack has them already.
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
        """The operation for which credentials were made was refused: they are removed as soon as may be."""
        row = self._rows.one(credentials_id)
        if row is not None and row.project_id == context.project_id:
            self._rows.drop_unwanted(0.0, 1, credentials_id)

    @staticmethod
    def _are_those(present: StoredCredentials, context: UserCaller, kind: str, roles: Sequence[str]) -> bool:
        """Whether credentials are what would be made for a caller now."""
        return (
            (present.user_id, present.method) == (context.user_id, kind)
            and present.readable.get('roles') == sorted(roles)
        )  # fmt: skip


def _is_of_use(present: StoredCredentials) -> bool:
    return present.status is CredentialsStatus.MADE and present.content is not None and not present.reason
