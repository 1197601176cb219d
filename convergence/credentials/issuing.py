"""Creates credentials for the API: drafts their method, roles and secret, and requests them from Keystone."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from convergence.credentials.model import Method, roles_to_pass_on

SECRET_BYTES = 48


class Maker(Protocol):
    """Creates credentials: the part of `convergence.credentials.keystone.Keystone` that the API needs."""

    def make(
        self,
        method: Method,
        credentials_id: str,
        user: Mapping[str, str],
        roles: Sequence[str],
        secret: str | None = None,
    ) -> dict[str, Any]:
        """Create credentials with the token of their user."""


@dataclass(frozen=True, slots=True)
class UnmadeCredentials:
    """A draft of credentials that Keystone has not created yet.

    :param roles: names of the roles that the user passes on.
    :param secret: secret of an application credential; None for a trust.
    """

    method: Method
    roles: Sequence[str]
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Issuer:
    """Drafts credentials and creates them.

    :param roles: names of the roles that a user passes on; empty: all roles of the user.
    :param seal: encrypts a text so that only engines can read it.
    """

    keystone: Maker
    method: Method
    roles: Sequence[str] = ()
    seal: Callable[[str], str] = field(default=str, repr=False)

    def draft(self, held: Sequence[str]) -> UnmadeCredentials:
        """Draft the credentials of a user.

        :param held: names of the roles that the user has.
        :raises CredentialsRefused: the user lacks one of the roles to pass on.
        """
        needs_secret = self.method is Method.APPLICATION_CREDENTIALS
        secret = secrets.token_urlsafe(SECRET_BYTES) if needs_secret else None
        return UnmadeCredentials(self.method, roles_to_pass_on(held, self.roles), secret)

    def sealed(self, draft: UnmadeCredentials) -> str | None:
        """Return the encrypted secret of a draft, which may travel in messages; None if the draft has none."""
        return None if draft.secret is None else self.seal(draft.secret)

    def make(self, draft: UnmadeCredentials, credentials_id: str, user: Mapping[str, str]) -> dict[str, Any]:
        """Create the drafted credentials with the token of their user.

        :param user: a map with `user_id`, `project_id` and `token`.
        :returns: the data that Keystone added, such as the id of a trust; nothing in it is secret.
        :raises CredentialsRefused: Keystone does not allow the user to create them.
        :raises KeystoneUnavailable: Keystone does not answer.
        """
        return self.keystone.make(draft.method, credentials_id, user, draft.roles, draft.secret)
