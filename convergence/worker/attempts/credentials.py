"""The credentials of stacks for the calls of a worker. Sessions are cached, with their tokens until they expire."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from convergence.concurrency import Lock
from convergence.credentials.model import Credentials, KeystoneSession, StoredCredentials
from convergence.errors import ConfigurationError, ConvergenceError, CredentialsRefused
from convergence.resources.contract import FinalFailure, OutcomeUnknown, TransientFailure

MOST_SESSIONS = 500
"""Maximum number of cached sessions in a worker. Beyond it the least recently used one is dropped."""
NO_KEYSTONE = (
    'Stacks have no credentials in this deployment, so no service can be called for their users after the request. '
    'The operator can enable Keystone and set [credentials] method, for workers too.'
)
NONE_MADE = (
    'The stack has no credentials of its user: it was last updated while this deployment stored none. Update the '
    'stack to store them; the template may stay the same.'
)


class CredentialsReader(Protocol):
    """Reads the rows of credentials, and marks credentials that Keystone refuses."""

    def of_stack(self, stack_id: str) -> str | None:
        """The id of the credentials of a stack; None if it has none."""

    def one(self, credentials_id: str) -> StoredCredentials | None:
        """The credentials with an id; None if there are none."""

    def refused(self, credentials_id: str, reason: str) -> None:
        """Store that Keystone refuses the credentials."""


class Sessions(Protocol):
    """Opens sessions: the part of `convergence.credentials.keystone.Keystone` that workers need."""

    @property
    def auth_url(self) -> str:
        """URL of Keystone, with the version."""

    def session(self, stored: StoredCredentials, failed: Callable[[ConvergenceError], Exception]) -> KeystoneSession:
        """Open a session with stored credentials.

        :param failed: turns an error of a request for a token into the exception to raise.
        """


class NoToken(OutcomeUnknown):
    """A session got no new token in the middle of its use. The service may have acted on earlier requests.

    :param cause: the error of the request for the token.
    """

    def __init__(self, cause: ConvergenceError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class CredentialsOfStacks:
    """Finds the credentials of a stack, and caches their sessions.

    :param keystone: opens sessions; None: this deployment has no Keystone.
    :param region: as in `Credentials`; so is `interface`.
    """

    def __init__(self, rows: CredentialsReader, keystone: Sessions | None, region: str, interface: str) -> None:
        self._rows = rows
        self._keystone = keystone
        self._region = region
        self._interface = interface
        self._lock = Lock()
        self._kept: OrderedDict[str, _KeptCredentials] = OrderedDict()

    def __call__(self, stack_id: str) -> Credentials:
        """The present credentials of a stack. An update by another user replaces them.

        :raises FinalFailure: the stack has none.
        """
        if self._keystone is None:
            raise FinalFailure(NO_KEYSTONE)
        credentials_id = self._rows.of_stack(stack_id)
        if credentials_id is None:
            raise FinalFailure(NONE_MADE)
        return self._of(credentials_id)

    def lent(self, credentials_id: str, project_id: str) -> Credentials:
        """The credentials that came with a request for a stack that does not exist yet.

        :raises FinalFailure: there are none with this id in the project.
        """
        found = self._of(credentials_id)
        if found.project_id != project_id:
            raise FinalFailure(NONE_MADE)
        return found

    def _of(self, credentials_id: str) -> _KeptCredentials:
        if self._keystone is None:
            raise FinalFailure(NO_KEYSTONE)
        with self._lock:
            kept = self._kept.get(credentials_id)
            if kept is not None:
                self._kept.move_to_end(credentials_id)
                return kept
        stored = self._rows.one(credentials_id)
        if stored is None:
            raise FinalFailure(NONE_MADE)
        try:
            made = _KeptCredentials(self._keystone, stored, self._refused)
        except (CredentialsRefused, ConfigurationError) as error:
            raise FinalFailure(str(error)) from None
        made.region, made.interface = self._region, self._interface
        with self._lock:
            # Another thread may have stored a session meanwhile; either of the two will do.
            self._kept[credentials_id] = made
            while len(self._kept) > MOST_SESSIONS:
                self._kept.popitem(last=False)
        return made

    def _refused(self, credentials_id: str, reason: str) -> None:
        with self._lock:
            self._kept.pop(credentials_id, None)
        self._rows.refused(credentials_id, reason)


class _KeptCredentials:
    """Credentials with a cached session; see `convergence.credentials.model.Credentials`."""

    region: str
    interface: str

    def __init__(self, keystone: Sessions, stored: StoredCredentials, refused: Callable[[str, str], None]) -> None:
        self._id = stored.id
        self._refused = refused
        self._session = keystone.session(stored, self._failed)
        self.auth_url = keystone.auth_url
        self.project_id, self.user_id = stored.project_id, stored.user_id

    def _failed(self, error: ConvergenceError) -> NoToken:
        if isinstance(error, CredentialsRefused):
            self._refused(self._id, str(error))
        return NoToken(error)

    def token(self) -> str:
        """Return a token that does not expire within the next seconds."""
        try:
            return str(self._session.get_token())
        except NoToken as error:
            kind = FinalFailure if isinstance(error.cause, CredentialsRefused) else TransientFailure
            raise kind(str(error)) from None

    def session(self) -> KeystoneSession:
        """Return a session that has a valid token."""
        self.token()
        return self._session

    def renew(self) -> None:
        """Drop the present token: the next call of `token` requests another one."""
        self._session.invalidate()
