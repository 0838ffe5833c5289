"""Comparing two processing versions on the documents that both have values for."""
