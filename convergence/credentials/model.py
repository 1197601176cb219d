"""What is known of the credentials of a stack, and what a resource type is given of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from convergence.errors import CredentialsRefused

KeystoneSession: TypeAlias = Any
"""A `keystoneauth1.session.Session`; the library is there only where credentials are used."""


class Method(StrEnum):
    """How a user lets a stack act for him. The value is that of the option, and stands in the row."""

    NONE = 'none'
    TRUSTS = 'trusts'
    APPLICATION_CREDENTIALS = 'application_credentials'


class CredentialsStatus(StrEnum):
    """How far it is with credentials. There is no way back.

    * PLANNED: they may exist in Keystone; the row says how to recognize them.
    * MADE: they exist, and a stack may refer to them.
    * REMOVING: nothing refers to them, and nothing ever will.
    """

    PLANNED = 'PLANNED'
    MADE = 'MADE'
    REMOVING = 'REMOVING'


@dataclass(frozen=True, slots=True)
class StoredCredentials:
    """A row of the table ``credentials``. The representation shows nothing secret.

    :param user_id: for whom is acted, in `project_id`.
    :param content: `roles`: names of the roles that are passed on; of a trust that was made `trust_id`; of an
        application credential `secret`. None: it cannot be read.
    :param stack_id: the first stack that referred to it; None before.
    :param created_at: seconds since the epoch.
    :param attempts: how often its removal has failed.
    :param reason: why Keystone has refused it, or its removal has failed; empty while neither has happened.
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
        """What is stored.

        :raises CredentialsRefused: it cannot be read.
        """
        if self.content is None:
            raise CredentialsRefused(
                f'The credentials {self.id} cannot be read: they were sealed with a key that is not among those of '
                '[secrets], or are damaged. Update the stack to make new ones.'
            )
        return self.content


def name_of(credentials_id: str) -> str:
    """The name of an application credential: unique among those of its user, and chosen before it is made."""
    return f'convergence-{credentials_id}'


def expiry_of(credentials_id: str) -> str:
    """When a trust expires, by which it is recognized among all those of its trustee: a trust can have no name.

    A second some thousand years from now, chosen by the id: no two trusts of a trustee share one but by a rare chance.
    """
    chosen = int.from_bytes(hashlib.sha256(credentials_id.encode()).digest()[:8], 'big')
    first, last = datetime(3000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
    moment = first + timedelta(seconds=chosen % int((last - first).total_seconds()))
    return moment.strftime('%Y-%m-%dT%H:%M:%S.000000Z')


def roles_to_pass_on(held: Sequence[str], configured: Sequence[str]) -> list[str]:
    """The roles that a stack is to have, by name, in order: those that are configured, or all that the user has.

    :raises CredentialsRefused: the user lacks one that is configured, or has none at all.
    """
    missing = sorted(set(configured) - set(held))
    if missing or not held:
        raise CredentialsRefused(
            f'A stack acts for you after your request, and passes on the roles {", ".join(configured) or "you have"}'
            f' ([credentials] delegated_roles); you do not have {", ".join(missing) or "any"} in this project.'
        )
    return sorted(set(configured or held))


class Credentials(Protocol):
    """What a resource type is given to act for the user of its stack, by `Call.credentials`.

    :ivar auth_url: of Keystone, with its version.
    :ivar project_id: in which is acted, and `user_id` for whom.
    :ivar region: of the services, as the operator has configured it; empty: any.
    :ivar interface: which endpoints of the catalog are meant: ``public``, ``internal`` or ``admin``.
    """

    auth_url: str
    project_id: str
    user_id: str
    region: str
    interface: str

    def token(self) -> str:
        """A token that is valid for some time to come.

        :raises TransientFailure: Keystone does not answer.
        :raises FinalFailure: Keystone refuses; the text says what to do.
        """

    def session(self) -> KeystoneSession:
        """A session with a time limit for each request, and a token that is valid now.

        It gets itself another token when one has run out, or is answered with 401. Raises what `token` does. Where it
        gets none in the middle of its use it raises `OutcomeUnknown`; what else its requests raise is keystoneauth's.
        """

    def renew(self) -> None:
        """A service has answered 401: the next `token` is another one. A `session` does that by itself."""
