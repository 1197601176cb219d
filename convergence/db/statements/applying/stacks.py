"""Store and change stacks and their templates."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Delete, bindparam, delete, func, insert, not_, select, update

from convergence.core import effects
from convergence.core.rows import Stack, Template
from convergence.credentials.model import CredentialsStatus
from convergence.db.schema.models import CREDENTIALS, STACK, TEMPLATE
from convergence.db.schema.row_columns import stored_names, stored_values
from convergence.db.statements.applying.changing import new, update_by_id
from convergence.db.statements.applying.traversals import ENROL_AGAIN
from convergence.db.statements.applying.trees import recount, take_room
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.statement import FewRowsInsert, PreparedListStatement, PreparedStatement, among
from convergence.errors import ActionInProgress, StackExists

INSERT_STACK = PreparedStatement(insert(STACK), (*stored_names(Stack), 'live_name'))
# The remover of credentials locks their row first and checks for references afterwards.
REFER_TO_CREDENTIALS = (
    update(CREDENTIALS)
    .where(CREDENTIALS.c.id == bindparam('key'), CREDENTIALS.c.status == CredentialsStatus.MADE)
    .values(stack_id=func.coalesce(CREDENTIALS.c.stack_id, bindparam('of_stack')))
)
# These can check that the statement before has found its row: the stack that they belong to.
INSERT_TEMPLATE = FewRowsInsert(TEMPLATE, stored_names(Template))


def _purge_all_but(length: int) -> Delete:
    # Rows may still name the equivalent of a kept template. Without DISTINCT, MySQL refuses to read the
    # table from which it deletes.
    kept = among(TEMPLATE.c.id, 'keep', length)
    equivalent = (
        select(TEMPLATE.c.equivalent_template_id)
        .where(kept, TEMPLATE.c.equivalent_template_id.is_not(None))
        .distinct()
        .subquery()
    )
    return delete(TEMPLATE).where(
        TEMPLATE.c.stack_id == bindparam('stack'),
        not_(kept),
        TEMPLATE.c.id.not_in(select(equivalent.c.equivalent_template_id)),
    )


PURGE_TEMPLATES = PreparedListStatement('keep', _purge_all_but)


def insert_stack(batch: StatementBatch, effect: effects.InsertStack) -> None:
    """See the effect."""
    stack = effect.stack
    # The duplicate key may be the name, or the id of a nested stack, which is known beforehand.
    refusal = StackExists(f'The Stack ({stack.name}) already exists.')
    batch.add(INSERT_STACK.call({**stored_values(stack), 'live_name': stack.name}), refusal=refusal)
    _refer_to_credentials(batch, stack.credentials_id, stack.id)


def update_stack(batch: StatementBatch, effect: effects.UpdateStack) -> None:
    """See the effect."""
    changes: dict[str, object] = {**effect.changes}
    if changes.get('deleted_at') is not None:
        changes['live_name'] = None
    if 'drift_policy' in changes:
        changes['policy_propagated'] = False
    if changes.get('root_id') is not None:
        batch.send()
        recount(batch.connection, str(changes['root_id']))
    statement = _update_stack_of(frozenset(changes), effect.traversal_id is None)
    values = {**new(changes), 'key': effect.stack_id}
    if effect.traversal_id is not None:
        values['present'] = effect.traversal_id
    batch.add_one(statement.call(values), f'stack {effect.stack_id}')
    if 'drift_policy' in changes:
        batch.send()
        batch.connection.execute(ENROL_AGAIN, {'keys': [effect.traversal_id]})
    _refer_to_credentials(batch, effect.changes.get('credentials_id'), effect.stack_id)


@cache
def _update_stack_of(names: frozenset[str], is_first: bool) -> PreparedStatement:
    present = STACK.c.traversal_id.is_(None) if is_first else STACK.c.traversal_id == bindparam('present')
    return PreparedStatement(update_by_id(STACK, names).where(present))


def _refer_to_credentials(batch: StatementBatch, credentials_id: str | None, stack_id: str) -> None:
    """Refer a stack to its credentials, unless their removal has begun because no stack used them for long."""
    if credentials_id is None:
        return
    batch.send()
    referred = batch.connection.execute(REFER_TO_CREDENTIALS, {'key': credentials_id, 'of_stack': stack_id})
    if referred.rowcount != 1:
        raise ActionInProgress('The request has taken so long that its credentials are being removed; repeat it.')


def require_room(batch: StatementBatch, effect: effects.RequireRoom) -> None:
    """See the effect."""
    take_room(batch, effect)


def insert_template(batch: StatementBatch, effect: effects.InsertTemplate) -> None:
    """See the effect."""
    batch.add(INSERT_TEMPLATE.call([stored_values(effect.template)]))


def purge_templates(batch: StatementBatch, effect: effects.PurgeTemplates) -> None:
    """See the effect."""
    batch.add(PURGE_TEMPLATES.call({'stack': effect.stack_id, 'keep': effect.keep or ('',)}))
