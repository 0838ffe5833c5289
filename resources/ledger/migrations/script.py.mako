"""${message}.

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from __future__ import annotations

from alembic import op
import sqlalchemy as sa
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema from ${repr(down_revision)} to ${repr(up_revision)}."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Refused: restore a backup instead."""
    ${downgrades if downgrades else "pass"}
