"""Traces: what a record went through, as spans, made from the ledger after the fact.

Belongs here: which records are told, their spans, and where the spans go. Does not belong here:
the command that shows one (`cli/trace.py`), and measuring anything while it runs: every time is
one that the journal has.
"""
