"""Creates, uses and removes credentials of stacks in Keystone. Only this module of the package uses keystoneauth1.

A process can find credentials in Keystone even if it never got their id: a trust by its trustee and its expiry, an
application credential by its user and its name. Expiry and name are derived from the id of a row that exists before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from convergence.concurrency import Lock
from convergence.credentials.model import Method, StoredCredentials, expiry_of, name_of
from convergence.errors import ConfigurationError, CredentialsRefused, KeystoneUnavailable

Open = Callable[..., Session]
"""Opens a session with the authentication plugin `auth`, or as the trustee with further arguments of its plugin."""

AsFailure = Callable[[CredentialsRefused | KeystoneUnavailable], Exception]
"""Converts the reason why Keystone issued no token into the error to raise."""

_UNSCOPED = {
    'project_id': None,
    'project_name': None,
    'project_domain_id': None,
    'project_domain_name': None,
    'domain_id': None,
    'domain_name': None,
    'system_scope': None,
}
_DENIED = (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound)


class Keystone:
    """Client of Keystone for credentials of stacks. Opens its session with the first request.

    :param open_session: opens sessions; see `Open`.
    """

    def __init__(self, open_session: Open) -> None:
        self._open = open_session
        self._lock = Lock()
        self._made: Session | None = None

    @property
    def auth_url(self) -> str:
        """The address of Keystone, with the version of its API.

        :raises ConfigurationError: the address is not configured.
        """
        url = str(getattr(self._trustee.auth, 'auth_url', '') or '').rstrip('/')
        if not url:
            raise ConfigurationError('[trustee] auth_url is not set; set it to the address of Keystone.')
        return url if url.endswith('/v3') else f'{url}/v3'

    # --- making -----------------------------------------------------------------------------------------------

    def make(
        self,
        method: Method,
        credentials_id: str,
        user: Mapping[str, str],
        roles: Sequence[str],
        secret: str | None = None,
    ) -> dict[str, Any]:
        """Create credentials with the token of their user.

        :param credentials_id: id of the row of the credentials.
        :param user: a map with `user_id`, `project_id` and `token`.
        :param roles: names of the roles that the user passes on.
        :param secret: secret of an application credential; None for a trust.
        :returns: the data that Keystone added, for `StoredCredentials.content`. Nothing in it is secret.
        :raises CredentialsRefused: Keystone does not allow the user to create them.
        :raises KeystoneUnavailable: Keystone does not answer; the credentials may exist.
        """
        named = [{'name': role} for role in roles]
        if method is Method.TRUSTS:
            trust = {
                'impersonation': True,
                'project_id': user['project_id'],
                'trustor_user_id': user['user_id'],
                'trustee_user_id': self._trustee_id(),
                'expires_at': expiry_of(credentials_id),
                'roles': named,
            }
            answer = self._post('OS-TRUST/trusts', {'trust': trust}, user['token'])
            return {'trust_id': answer['trust']['id']}
        application_credential = {
            'name': name_of(credentials_id),
            'description': 'Made by Convergence to act for a stack of yours; removed with the stack.',
            'secret': secret,
            'roles': named,
            # A restricted application credential could not remove itself after the stack was deleted.
            'unrestricted': True,
        }
        path = f'users/{user["user_id"]}/application_credentials'
        self._post(path, {'application_credential': application_credential}, user['token'])
        return {}

    def _post(self, path: str, body: Mapping[str, Any], token: str) -> Mapping[str, Any]:
        with _told('make credentials for the stack with your token', _UNTRUSTED):
            answer = self._trustee.post(
                f'{self.auth_url}/{path}',
                json=body,
                headers={'X-Auth-Token': token},
                authenticated=False,
                log=False,
            )
        found: Mapping[str, Any] = answer.json()
        return found

    # --- using ------------------------------------------------------------------------------------------------

    def session(self, stored: StoredCredentials, failed: AsFailure) -> Session:
        """Return a session that acts with the credentials. Sends no request yet.

        :param failed: makes the error that the session raises if Keystone gives it no token, at first or later.
        :raises CredentialsRefused: the row cannot be read, or the credentials were never created.
        """
        session: Any = self._acting(stored)
        get = session.auth.get_auth_ref

        def get_auth_ref(*arguments: Any, **more: Any) -> Any:
            try:
                with _told('let the stack act for its user', _REFUSED):
                    return get(*arguments, **more)
            except (CredentialsRefused, KeystoneUnavailable) as error:
                raise failed(error) from None

        session.auth.get_auth_ref = get_auth_ref
        opened: Session = session
        return opened

    def _acting(self, stored: StoredCredentials) -> Session:
        content = stored.readable
        if stored.method is Method.TRUSTS:
            if not content.get('trust_id'):
                raise CredentialsRefused(f'The credentials {stored.id} were never made. Update the stack.')
            return self._as_trustee(content['trust_id'])
        auth = v3.ApplicationCredential(
            self.auth_url,
            application_credential_name=name_of(stored.id),
            application_credential_secret=content['secret'],
            user_id=stored.user_id,
        )
        return self._open(auth=auth)

    # --- removing ---------------------------------------------------------------------------------------------

    def remove(self, stored: StoredCredentials) -> None:
        """Remove credentials from Keystone. Succeeds also if they do not exist there.

        :raises CredentialsRefused: Keystone does not allow it, or the row does not identify the credentials.
        :raises KeystoneUnavailable: Keystone does not answer.
        """
        with _told('remove credentials of a stack', ''):
            if stored.method is Method.TRUSTS:
                self._remove_trust(stored)
            else:
                self._remove_application_credential(stored)

    def _remove_trust(self, stored: StoredCredentials) -> None:
        known = (stored.content or {}).get('trust_id')
        for trust_id in [known] if known else self._trusts_of(stored):
            url = f'{self.auth_url}/OS-TRUST/trusts/{trust_id}'
            try:
                self._as_trustee(trust_id).delete(url)
            except exceptions.NotFound:
                continue
            except (exceptions.Unauthorized, exceptions.Forbidden):
                # The user has lost a role or was deleted, so a token for him is refused. The trustee itself may still
                # read the trust, and delete it if it has the rights of an administrator.
                with suppress(exceptions.NotFound):
                    self._trustee.get(url)
                    self._trustee.delete(url)

    def _trusts_of(self, stored: StoredCredentials) -> list[str]:
        """Return the ids of the trusts that belong to a row without a trust id: the answer to its creation was lost."""
        found = self._trustee.get(
            f'{self.auth_url}/OS-TRUST/trusts', params={'trustee_user_id': self._trustee_id()}
        ).json()
        marked = (stored.user_id, stored.project_id, expiry_of(stored.id))
        return [
            each['id']
            for each in found['trusts']
            if (each['trustor_user_id'], each['project_id'], each['expires_at']) == marked
        ]

    def _remove_application_credential(self, stored: StoredCredentials) -> None:
        session: Any = self._acting(stored)
        with suppress(exceptions.Unauthorized, exceptions.NotFound):
            # Keystone gives the same answer for a deleted application credential and for a deleted user. In both cases
            # the credential is useless.
            held = session.auth.get_access(session)
            session.delete(
                f'{self.auth_url}/users/{stored.user_id}/application_credentials/{held.application_credential_id}'
            )

    # --- the trustee ------------------------------------------------------------------------------------------

    @property
    def _trustee(self) -> Session:
        with self._lock:
            if self._made is None:
                self._made = self._open()
            return self._made

    def _as_trustee(self, trust_id: str) -> Session:
        return self._open(**_UNSCOPED, trust_id=trust_id)

    def _trustee_id(self) -> str:
        with _told('tell who the account of [trustee] is', ''):
            try:
                return str(self._trustee.get_user_id())
            except _DENIED as error:
                raise ConfigurationError(f'[trustee]: Keystone does not accept the account: {_said(error)}') from None


_UNTRUSTED = (
    ' A token from a trust or an application credential cannot create credentials: use a token from a password or '
    'another login of your own.'
)
_REFUSED = (
    ' The user who created or last updated the stack may have been deleted, or may have lost a role in the project: '
    'update or delete the stack as a user who has the roles.'
)


@contextmanager
def _told(what: str, advice: str) -> Iterator[None]:
    """Convert errors of keystoneauth1 in the block into errors of this program.

    :param what: the request, to follow the words "Keystone does not".
    :param advice: the remedy for a refusal, with a leading space; empty: none.
    :raises CredentialsRefused: Keystone refuses the request.
    :raises KeystoneUnavailable: Keystone does not answer.
    """
    try:
        yield
    except _DENIED as error:
        raise CredentialsRefused(f'Keystone does not {what}: {_said(error)}.{advice}') from None
    except exceptions.ClientException as error:
        raise KeystoneUnavailable(f'Keystone does not {what} at the moment: {_said(error)}') from None


def _said(error: exceptions.ClientException) -> str:
    return f'{type(error).__name__}: {str(error).partition(" (Request-ID")[0].rstrip(".")}'
