"""Has credentials of stacks made, used and removed by Keystone. The only module of this package with keystoneauth1.

Whatever is made can be recognized before its id is known: a trust by its trustee and its expiry, an application
credential by its user and its name. Both are chosen by the id of a row that was stored before.
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
"""Makes a session: with the plugin `auth`, or as the trustee, with further arguments of its plugin."""

AsFailure = Callable[[CredentialsRefused | KeystoneUnavailable], Exception]
"""Says why there is no token, as an error."""

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
    """Keystone, as processes of an installation ask it about credentials of stacks, and not before they need to.

    :param open_session: makes sessions: see `Open`.
    """

    def __init__(self, open_session: Open) -> None:
        self._open = open_session
        self._lock = Lock()
        self._made: Session | None = None

    @property
    def auth_url(self) -> str:
        """Where Keystone is, with the version.

        :raises ConfigurationError: that is not configured.
        """
        url = str(getattr(self._trustee.auth, 'auth_url', '') or '').rstrip('/')
        if not url:
            raise ConfigurationError('[trustee] auth_url is not set; it says where Keystone is.')
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
        """Make credentials with the token of their user.

        :param user: `user_id`, `project_id` and `token`.
        :param secret: of an application credential.
        :returns: what is known of them from now on, for `StoredCredentials.content`. Nothing in it is secret.
        :raises CredentialsRefused: Keystone does not allow it.
        :raises KeystoneUnavailable: it does not answer; perhaps they exist.
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
            # A restricted one could not remove itself when the stack is gone.
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
        """A session that acts with credentials. Nothing is asked yet.

        :param failed: makes what is raised where the session gets no token, now or in the middle of its use.
        :raises CredentialsRefused: they cannot be read, or were never made.
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
        """Remove credentials. That there are none (any more) is success.

        :raises CredentialsRefused: Keystone does not allow it, or it is not known what to remove.
        :raises KeystoneUnavailable: it does not answer.
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
                # The user has lost a role, or is gone, and so cannot be acted for. Then the trustee may look, at least;
                # and an administrator may remove.
                with suppress(exceptions.NotFound):
                    self._trustee.get(url)
                    self._trustee.delete(url)

    def _trusts_of(self, stored: StoredCredentials) -> list[str]:
        """The trusts that were made for a row which does not know what was."""
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
            # Keystone tells nobody whether it is gone or its user is: in both cases it opens nothing.
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
    ' A token that was itself got with a trust or an application credential may not pass anything on: use one that was '
    'got with a password, or in another way of your own.'
)
_REFUSED = (
    ' Perhaps the user who has created or last updated the stack is gone, or has lost a role in the project: update '
    'the stack, as a user who has them, or delete it as one.'
)


@contextmanager
def _told(what: str, advice: str) -> Iterator[None]:
    """Say what keystoneauth1 raises as the rest of the program does.

    :raises CredentialsRefused: Keystone refuses.
    :raises KeystoneUnavailable: it does not answer.
    """
    try:
        yield
    except _DENIED as error:
        raise CredentialsRefused(f'Keystone does not {what}: {_said(error)}.{advice}') from None
    except exceptions.ClientException as error:
        raise KeystoneUnavailable(f'Keystone does not {what} at the moment: {_said(error)}') from None


def _said(error: exceptions.ClientException) -> str:
    return f'{type(error).__name__}: {str(error).partition(" (Request-ID")[0].rstrip(".")}'
