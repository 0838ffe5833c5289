"""The ledger: the database that is the single source of truth for every state.

One module per aggregate. SQL is the same on SQLite and PostgreSQL; what differs
lives in `sqlite.py` and `postgres.py` alone.
"""
