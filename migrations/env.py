"""Run by Alembic: brings the database of the given connection to a revision."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Text

from convergence.db.schema.columns import Word
from convergence.db.schema.models import METADATA


def plain_type(kind: str, item: Any, autogenerate: Any) -> str | Literal[False]:
    """Write a revision in plain column types: it must mean the same when the code's own types have moved on."""
    if kind != 'type':
        return False
    if isinstance(item, Word):
        return f'sa.String({item.impl.length})'
    inner = getattr(item, 'impl', item)
    return 'LONG_TEXT' if isinstance(inner, Text) else False


context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=METADATA,
    compare_type=True,
    render_item=plain_type,
)
with context.begin_transaction():
    context.run_migrations()
