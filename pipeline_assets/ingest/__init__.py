"""Ingest: what the sources hold, and the text of each document. Nothing is imported here."""
