"""Backups of ledger and artifacts to one point in time, and a working place made of one."""
