"""Canaries: a few documents of our own that a provider must answer well before the rest is sent.

Belongs here: choosing, sending and judging a canary. Does not belong here: its documents, which
are the workload's (`workloads/*/canary.py`).
"""
