"""${message}.

Revision: ${up_revision}. Follows: ${down_revision or 'nothing'}.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql
${imports if imports else ''}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}

LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    """Forwards."""
    ${upgrades if upgrades else 'pass'}


def downgrade() -> None:
    """Back."""
    ${downgrades if downgrades else 'pass'}
