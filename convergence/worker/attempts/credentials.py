"""The credentials of stacks as a worker uses them: sessions are kept, and with them their tokens until they run out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from convergence.concurrency import Lock
from convergence.credentials.model import Credentials, KeystoneSession, StoredCredentials
from convergence.errors import ConfigurationError, ConvergenceError, CredentialsRefused
from convergence.resources.contract import FinalFailure, OutcomeUnknown, TransientFailure

MOST_SESSIONS = 500
"""Sessions that a worker keeps; of more, those that were not used for longest go."""
NO_KEYSTONE = (
    'This deployment runs without Keystone, or gives stacks no credentials, so nothing can be done for a user after '
    'his request. (Whoever runs it: [credentials] method, of workers too.)'
)
NONE_MADE = (
    'The stack has no credentials with which to act for its user: it was last updated when this deployment gave none. '
    'Update it, with the same template if you like.'
)


class CredentialsReader(Protocol):
    """Reads the rows of credentials, and notes what Keystone says of them."""

    def of_stack(self, stack_id: str) -> str | None:
        """The id of those with which a stack acts."""

    def one(self, credentials_id: str) -> StoredCredentials | None:
        """One row."""

    def refused(self, credentials_id: str, reason: str) -> None:
        """Keystone does not accept them any more."""


class Sessions(Protocol):
    """Opens sessions: the part of `convergence.credentials.keystone.Keystone` that workers need."""

    @property
    def auth_url(self) -> str:
        """URL of Keystone, with the version."""

    def session(self, stored: StoredCredentials, failed: Callable[[ConvergenceError], Exception]) -> KeystoneSession:
        """A session that acts with credentials."""


class NoToken(OutcomeUnknown):
    """A session has got no other token when it needed one: in the middle of its use, something may have been done.

    :param cause: why.
    """

    def __init__(self, cause: ConvergenceError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class CredentialsOfStacks:
    """Finds the credentials of a stack, and keeps what was got with them.

    :param keystone: None: there is none.
    :param region: as in `Credentials`, and `interface` too.
    """

    def __init__(self, rows: CredentialsReader, keystone: Sessions | None, region: str, interface: str) -> None:
        self._rows = rows
        self._keystone = keystone
        self._region = region
        self._interface = interface
        self._lock = Lock()
        self._kept: OrderedDict[str, _KeptCredentials] = OrderedDict()

    def __call__(self, stack_id: str) -> Credentials:
        """The credentials with which a stack acts now; an update by another user replaces them.

        :raises FinalFailure: it has none.
        """
        if self._keystone is None:
            raise FinalFailure(NO_KEYSTONE)
        credentials_id = self._rows.of_stack(stack_id)
        if credentials_id is None:
            raise FinalFailure(NONE_MADE)
        return self._of(credentials_id)

    def lent(self, credentials_id: str, project_id: str) -> Credentials:
        """The credentials that came with a request for a stack that does not exist yet.

        :raises FinalFailure: there are none.
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
            # Another thread may have been quicker; one session of the two is as good as the other.
            self._kept[credentials_id] = made
            while len(self._kept) > MOST_SESSIONS:
                self._kept.popitem(last=False)
        return made

    def _refused(self, credentials_id: str, reason: str) -> None:
        with self._lock:
            self._kept.pop(credentials_id, None)
        self._rows.refused(credentials_id, reason)


class _KeptCredentials:
    """See `convergence.credentials.model.Credentials`."""

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
        """A token that is valid for some time to come."""
        try:
            return str(self._session.get_token())
        except NoToken as error:
            kind = FinalFailure if isinstance(error.cause, CredentialsRefused) else TransientFailure
            raise kind(str(error)) from None

    def session(self) -> KeystoneSession:
        """A session with a token that is valid now."""
        self.token()
        return self._session

    def renew(self) -> None:
        """The next `token` is another one."""
        self._session.invalidate()
