"""Acceptance rules that any workload with evidence can use; one module a rule."""
