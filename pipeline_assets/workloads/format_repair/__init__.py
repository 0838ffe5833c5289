"""Deterministic repairs of an answer's form; its facts are never touched."""
