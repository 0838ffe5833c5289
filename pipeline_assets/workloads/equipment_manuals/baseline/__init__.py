"""The baseline: deterministic rules that answer from page text alone.

It is the default provider, which needs no network, and the yardstick that a model must beat. It
knows page texts only: no fonts, no layout, no file names, no metadata.
"""
