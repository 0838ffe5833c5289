"""Acceptance rules of this workload alone; one module a rule."""
