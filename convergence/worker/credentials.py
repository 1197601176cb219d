"""The credentials of stacks as a worker uses them: sessions are kept, and with them their tokens until they run out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from convergence.concurrency import Lock
from convergence.credentials.model import Credentials, StoredCredentials
from convergence.errors import ConfigurationError, CredentialsRefused, KeystoneUnavailable
from convergence.resources.contract import FinalFailure, TransientFailure

MOST = 500
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
        """Where Keystone is, with the version."""

    def session(self, stored: StoredCredentials) -> Any:
        """A session that acts with credentials."""

    def token(self, session: Any) -> str:
        """A token of a session that is valid for some time to come."""


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
        """Those with which a stack acts now: after an update by another user they are others.

        :raises FinalFailure: it has none.
        """
        if self._keystone is None:
            raise FinalFailure(NO_KEYSTONE)
        credentials_id = self._rows.of_stack(stack_id)
        if credentials_id is None:
            raise FinalFailure(NONE_MADE)
        with self._lock:
            kept = self._kept.get(credentials_id)
            if kept is not None:
                self._kept.move_to_end(credentials_id)
                return kept
        stored = self._rows.one(credentials_id)
        if stored is None:
            raise FinalFailure(NONE_MADE)
        with _failing(lambda reason: None):
            session = self._keystone.session(stored)
            made = _KeptCredentials(self._keystone, stored, session, self._refused)
        made.region, made.interface = self._region, self._interface
        with self._lock:
            # Another thread may have been quicker; one session of the two is as good as the other.
            self._kept[credentials_id] = made
            while len(self._kept) > MOST:
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

    def __init__(
        self, keystone: Sessions, stored: StoredCredentials, session: Any, refused: Callable[[str, str], None]
    ) -> None:
        self._keystone = keystone
        self._id = stored.id
        self._session = session
        self._refused = refused
        self.auth_url = keystone.auth_url
        self.project_id, self.user_id = stored.project_id, stored.user_id

    def token(self) -> str:
        """A token that is valid for some time to come."""
        with _failing(lambda reason: self._refused(self._id, reason)):
            return self._keystone.token(self._session)

    def session(self) -> Any:
        """A session with a token that is valid now."""
        self.token()
        return self._session

    def renew(self) -> None:
        """The next `token` is another one."""
        self._session.invalidate()


@contextmanager
def _failing(refused: Callable[[str], None]) -> Iterator[None]:
    """Say what goes wrong as resource types do.

    :raises TransientFailure: it may be better soon.
    :raises FinalFailure: it will not.
    """
    try:
        yield
    except CredentialsRefused as error:
        refused(str(error))
        raise FinalFailure(str(error)) from None
    except ConfigurationError as error:
        raise FinalFailure(str(error)) from None
    except KeystoneUnavailable as error:
        raise TransientFailure(str(error)) from None
