"""The stored credentials of a stack, and the interface to them that resource types use."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from convergence.errors import CredentialsRefused

KeystoneSession: TypeAlias = Any
"""A `keystoneauth1.session.Session`. The library is installed only with the extra for credentials."""


class Method(StrEnum):
    """The kind of credentials with which a stack acts for its user: a value of the option, stored in the row."""

    NONE = 'none'
    TRUSTS = 'trusts'
    APPLICATION_CREDENTIALS = 'application_credentials'


class CredentialsStatus(StrEnum):
    """The stage of credentials. A row only moves forward through the stages.

    * PLANNED: the credentials may exist in Keystone; the row identifies them.
    * MADE: the credentials exist, and a stack may refer to them.
    * REMOVING: no stack refers to the credentials, now or later; an engine removes them.
    """

    PLANNED = 'PLANNED'
    MADE = 'MADE'
    REMOVING = 'REMOVING'


@dataclass(frozen=True, slots=True)
class StoredCredentials:
    """A row of the table ``credentials``. Its representation contains no secret.

    :param user_id: the user that a stack acts for, in the project `project_id`.
    :param content: `roles`: names of the roles that the user passes on; `trust_id` of a created trust; `secret` of an
        application credential. None: no key of this process can decrypt the content.
    :param stack_id: the first stack that referred to the row; None if no stack has.
    :param created_at: seconds since the epoch.
    :param attempts: number of failed attempts to remove the credentials.
    :param reason: the reason why Keystone refused the credentials or their removal; empty if neither has happened.
    """

    id: str
    project_id: str
    user_id: str
    method: Method
    status: CredentialsStatus
    content: Mapping[str, Any] | None = field(repr=False)
    stack_id: str | None = None
    created_at: float = 0.0
    attempts: int = 0
    reason: str = ''

    @property
    def readable(self) -> Mapping[str, Any]:
        """The stored content.

        :raises CredentialsRefused: no key of this process can decrypt the content.
        """
        if self.content is None:
            raise CredentialsRefused(
                f'The credentials {self.id} cannot be read: [secrets] lacks the key that encrypted them, or they are '
                'damaged. Update the stack to create new ones.'
            )
        return self.content


def name_of(credentials_id: str) -> str:
    """Return the name of an application credential: unique among those of its user, and known before its creation."""
    return f'convergence-{credentials_id}'


def expiry_of(credentials_id: str) -> str:
    """Return the expiry of a trust, which identifies it among the trusts of its trustee: a trust has no name.

    The expiry is a second in some thousand years, derived from the id, so that two trusts hardly ever share it.
    """
    chosen = int.from_bytes(hashlib.sha256(credentials_id.encode()).digest()[:8], 'big')
    first, last = datetime(3000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
    moment = first + timedelta(seconds=chosen % int((last - first).total_seconds()))
    return moment.strftime('%Y-%m-%dT%H:%M:%S.000000Z')


def roles_to_pass_on(held: Sequence[str], configured: Sequence[str]) -> list[str]:
    """Return the sorted names of the roles for a stack: the configured roles, or all roles of the user.

    :raises CredentialsRefused: the user lacks a configured role, or has no role at all.
    """
    missing = sorted(set(configured) - set(held))
    if missing or not held:
        raise CredentialsRefused(
            f'A stack acts for you after your request with the roles {", ".join(configured) or "you have"} '
            f'([credentials] delegated_roles); you do not have {", ".join(missing) or "any"} in this project.'
        )
    return sorted(set(configured or held))


class Credentials(Protocol):
    """The access of a resource type to services in the name of the user of its stack. See `Call.credentials`.

    :ivar auth_url: address of Keystone, with the version of its API.
    :ivar project_id: the project in which the stack acts.
    :ivar user_id: the user that the stack acts for.
    :ivar region: region of the services that the operator has configured; empty: any region.
    :ivar interface: kind of the endpoints to use from the catalog: ``public``, ``internal`` or ``admin``.
    """

    auth_url: str
    project_id: str
    user_id: str
    region: str
    interface: str

    def token(self) -> str:
        """Return a token that does not expire soon.

        :raises TransientFailure: Keystone does not answer.
        :raises FinalFailure: Keystone refuses a token; the text contains the remedy.
        """

    def session(self) -> KeystoneSession:
        """Return a session with a valid token and a time limit for each request. Raises the same errors as `token`.

        The session gets another token when its token expires or a service answers 401. If it then gets none, the
        request raises `OutcomeUnknown`. Its other errors are those of keystoneauth1.
        """

    def renew(self) -> None:
        """Drop the token after a service answered 401: the next call of `token` returns another one.

        A `session` does this by itself.
        """
