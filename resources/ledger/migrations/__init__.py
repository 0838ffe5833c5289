"""Alembic migrations of the ledger; one file a change, never edited once released."""
