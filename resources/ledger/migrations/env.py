"""Alembic's entry: runs the migrations on the connection that `engine.open_ledger` hands over.

Belongs here: only that. A migration never opens a connection of its own, so that the
upgrade is part of the opener's transaction.
"""

from __future__ import annotations

from alembic import context

from resources.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
