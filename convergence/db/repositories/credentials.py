"""Credentials of stacks: a row is stored before the trust is created in Keystone, and removed after it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Delete, Update, and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import Status
from convergence.credentials.model import CredentialsStatus, StoredCredentials
from convergence.db.schema.columns import UNREADABLE, asked_at, database_now
from convergence.db.schema.models import CREDENTIALS, RESOURCE, SNAPSHOT_ITEM, STACK
from convergence.db.schema.row_columns import columns
from convergence.db.statements.store import Store

AGAIN_S = 5.0
"""Seconds after which a removal that has failed is tried again; twice as many each time, up to `LONGEST_S`."""
LONGEST_S = 3600.0
HANDED_OUT_S = 300.0
"""Seconds for which one process removes credentials that no other process takes."""

_COLUMNS = columns(CREDENTIALS, StoredCredentials)
_OWNER = STACK.alias('owner')
_TREE = STACK.alias('tree')
_REFERS = _OWNER.c.credentials_id == CREDENTIALS.c.id


def _of_tree(root_id: Any) -> ColumnElement[bool]:
    return or_(_TREE.c.id == root_id, _TREE.c.root_id == root_id)


def _is_left(table: Any) -> ColumnElement[bool]:
    """Return the condition that a deleted stack with these credentials, or a stack nested in it, still has objects."""
    gone = and_(_TREE.c.deleted_at.is_not(None), _of_tree(_OWNER.c.id))
    return exists().where(_REFERS, gone, table.c.stack_id == _TREE.c.id)


_HAS_ANY = exists().where(_REFERS)
_HAS_LIVING = exists().where(_REFERS, _OWNER.c.deleted_at.is_(None))
# A nested stack that outlives its parent has credentials of its own only after it was released.
_HAS_LIVING_BELOW = exists().where(_REFERS, _TREE.c.deleted_at.is_(None), _of_tree(_OWNER.c.id))
_IS_BUSY = or_(
    exists().where(_of_tree(CREDENTIALS.c.stack_id), _TREE.c.status == Status.IN_PROGRESS),
    exists().where(_of_tree(CREDENTIALS.c.stack_id), RESOURCE.c.stack_id == _TREE.c.id, RESOURCE.c.owner.is_not(None)),
)


def _unwanted(settles_s: float) -> ColumnElement[bool]:
    """Return the condition that no living stack, no leftover object and no operation needs the credentials.

    The condition is final: no stack refers again to credentials that were replaced or made for a finished request.
    """
    never_had = and_(CREDENTIALS.c.stack_id.is_(None), CREDENTIALS.c.created_at < asked_at() - settles_s)
    replaced = and_(CREDENTIALS.c.stack_id.is_not(None), ~_IS_BUSY)
    return and_(
        CREDENTIALS.c.status != CredentialsStatus.REMOVING,
        ~_HAS_LIVING,
        ~_HAS_LIVING_BELOW,
        ~_is_left(RESOURCE),
        ~_is_left(SNAPSHOT_ITEM),
        or_(_HAS_ANY, never_had, replaced),
    )


class CredentialRows:
    """Reads and writes the rows of credentials. None of it is part of a decision of the core.

    :param again_s: pause before a removal that has failed is tried for the second time, in seconds.
    """

    def __init__(self, store: Store, again_s: float = AGAIN_S) -> None:
        self._store = store
        self._again_s = again_s

    # --- making -----------------------------------------------------------------------------------------------

    def plan(self, planned: StoredCredentials) -> None:
        """They are about to be made. From now on they are removed unless a stack gets them."""
        row = {each.name: getattr(planned, each.name) for each in _COLUMNS}

        def write(connection: Connection) -> None:
            connection.execute(insert(CREDENTIALS), {**row, 'created_at': _now(connection)})

        self._store.write(write, self.plan)

    def made(self, credentials_id: str, content: Mapping[str, Any]) -> bool:
        """They have been made. False: they are being removed already."""
        return self._change(credentials_id, CredentialsStatus.PLANNED, status=CredentialsStatus.MADE, content=content)

    def refused(self, credentials_id: str, reason: str) -> None:
        """Keystone does not accept them any more: the next operation of a user makes others."""
        self._change(credentials_id, CredentialsStatus.MADE, reason=reason)

    # --- reading ----------------------------------------------------------------------------------------------

    def one(self, credentials_id: str) -> StoredCredentials | None:
        """One row."""
        statement = select(*_COLUMNS).where(CREDENTIALS.c.id == credentials_id)
        with self._store.reading() as connection:
            row = connection.execute(statement).first()
        return _read(row) if row is not None else None

    def of_stack(self, stack_id: str) -> str | None:
        """The id of those with which a stack acts: its own, or those of the nearest stack that it is nested in.

        Asked of one stack: at most as many rows are read as stacks may be nested.
        """
        with self._store.reading() as connection:
            above: str | None = stack_id
            while above is not None:
                row = connection.execute(
                    select(STACK.c.credentials_id, STACK.c.parent_id).where(STACK.c.id == above)
                ).first()
                if row is None or row.credentials_id is not None:
                    return row.credentials_id if row is not None else None
                above = row.parent_id
        return None

    # --- removing ---------------------------------------------------------------------------------------------

    def drop_unwanted(self, settles_s: float, limit: int, credentials_id: str | None = None) -> int:
        """Mark credentials that are not needed any more for removal; return their number.

        :param settles_s: seconds for which credentials without a stack may still get one.
        :param credentials_id: check this row only.
        """
        found = select(CREDENTIALS.c.id).where(_unwanted(settles_s)).limit(limit)
        if credentials_id is not None:
            found = found.where(CREDENTIALS.c.id == credentials_id)
        with self._store.reading() as connection:
            ids = list(connection.execute(found).scalars())
        return sum(self._store.write(partial(_drop, each, settles_s), self.drop_unwanted) for each in ids)

    def take_unwanted(self, limit: int) -> list[StoredCredentials]:
        """Return credentials to remove now. Each is handed to one caller for `HANDED_OUT_S` seconds."""
        due = and_(
            CREDENTIALS.c.status == CredentialsStatus.REMOVING,
            or_(CREDENTIALS.c.next_attempt_at.is_(None), CREDENTIALS.c.next_attempt_at < asked_at()),
        )
        with self._store.reading() as connection:
            found = [_read(row) for row in connection.execute(select(*_COLUMNS).where(due).limit(limit))]
        claim = update(CREDENTIALS).values(next_attempt_at=database_now() + HANDED_OUT_S)
        return [
            each
            for each in found
            if self._store.write(
                partial(_changed, claim.where(CREDENTIALS.c.id == each.id, due)), CredentialRows.take_unwanted
            )
        ]

    def forget(self, credentials_id: str) -> bool:
        """They do not exist any more. False: there are none such that are being removed."""
        gone = delete(CREDENTIALS).where(
            CREDENTIALS.c.id == credentials_id, CREDENTIALS.c.status == CredentialsStatus.REMOVING
        )
        return self._store.write(partial(_changed, gone), CredentialRows.forget) > 0

    def not_yet(self, taken: StoredCredentials, reason: str) -> None:
        """They could not be removed; it will be tried again."""
        pause_s = min(self._again_s * 2 ** min(taken.attempts, 20), LONGEST_S)
        next_attempt_at = database_now() + pause_s
        values: dict[str, Any] = {'attempts': taken.attempts + 1, 'reason': reason, 'next_attempt_at': next_attempt_at}
        self._change(taken.id, CredentialsStatus.REMOVING, **values)

    def troubled(self) -> list[StoredCredentials]:
        """Return credentials that Keystone refused or that are being removed; the oldest first."""
        said = or_(CREDENTIALS.c.reason != '', CREDENTIALS.c.status == CredentialsStatus.REMOVING)
        statement = select(*_COLUMNS).where(said).order_by(CREDENTIALS.c.created_at, CREDENTIALS.c.id)
        with self._store.reading() as connection:
            return [_read(row) for row in connection.execute(statement)]

    def _change(self, credentials_id: str, present: CredentialsStatus, **values: Any) -> bool:
        statement = (
            update(CREDENTIALS)
            .where(CREDENTIALS.c.id == credentials_id, CREDENTIALS.c.status == present)
            .values(**values)
        )
        return self._store.write(partial(_changed, statement), CredentialRows._change) > 0


def _drop(credentials_id: str, settles_s: float, connection: Connection) -> int:
    """Lock the row, then check again: a transaction that gives the credentials to a stack writes to the row as well."""
    this = CREDENTIALS.c.id == credentials_id
    if connection.execute(select(CREDENTIALS.c.id).where(this).with_for_update()).first() is None:
        return 0
    if connection.execute(select(func.count()).where(this, _unwanted(settles_s))).scalar_one() == 0:
        return 0
    removing = update(CREDENTIALS).where(this).values(status=CredentialsStatus.REMOVING, next_attempt_at=None)
    return connection.execute(removing).rowcount


def _changed(statement: Update | Delete, connection: Connection) -> int:
    return connection.execute(statement).rowcount


def _now(connection: Connection) -> float:
    return float(connection.execute(select(database_now())).scalar_one())


def _read(row: Any) -> StoredCredentials:
    values = dict(row._mapping)
    return StoredCredentials(**{**values, 'content': None if values['content'] is UNREADABLE else values['content']})
