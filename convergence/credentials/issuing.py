"""What the API does to have credentials made: what they are to be, and what Keystone is asked for."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from convergence.credentials.model import Method, roles_to_pass_on

SECRET_BYTES = 48


class Maker(Protocol):
    """Makes credentials: the part of `convergence.credentials.keystone.Keystone` that the API needs."""

    def make(
        self,
        method: Method,
        credentials_id: str,
        user: Mapping[str, str],
        roles: Sequence[str],
        secret: str | None = None,
    ) -> dict[str, Any]:
        """Make credentials with the token of their user."""


@dataclass(frozen=True, slots=True)
class UnmadeCredentials:
    """Credentials that are not made yet.

    :param secret: of an application credential.
    """

    method: Method
    roles: Sequence[str]
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Issuer:
    """Has credentials made.

    :param roles: those that are passed on; empty: all that a user has.
    :param seal: closes what nobody but an engine is to read.
    """

    keystone: Maker
    method: Method
    roles: Sequence[str] = ()
    seal: Callable[[str], str] = field(default=str, repr=False)

    def draft(self, held: Sequence[str]) -> UnmadeCredentials:
        """What is to be made for a user who has some roles.

        :raises CredentialsRefused: the user lacks one that is to be passed on.
        """
        needs_secret = self.method is Method.APPLICATION_CREDENTIALS
        secret = secrets.token_urlsafe(SECRET_BYTES) if needs_secret else None
        return UnmadeCredentials(self.method, roles_to_pass_on(held, self.roles), secret)

    def sealed(self, draft: UnmadeCredentials) -> str | None:
        """The secret of a draft, as it may travel."""
        return None if draft.secret is None else self.seal(draft.secret)

    def make(self, draft: UnmadeCredentials, credentials_id: str, user: Mapping[str, str]) -> dict[str, Any]:
        """Make what was drafted, with the token of its user.

        :param user: `user_id`, `project_id` and `token`.
        :returns: what has become known; nothing in it is secret.
        :raises CredentialsRefused: Keystone does not allow it.
        :raises KeystoneUnavailable: it does not answer.
        """
        return self.keystone.make(draft.method, credentials_id, user, draft.roles, draft.secret)
