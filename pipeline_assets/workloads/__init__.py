"""Workloads: what is extracted from documents, one folder each.

A workload holds its prompt, output schema, thresholds, acceptance rules and baseline, and nothing
that knows of providers, ledgers or stages.
"""
