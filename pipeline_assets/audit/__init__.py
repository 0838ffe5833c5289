"""Audit: proof from stored evidence alone; no provider is asked and nothing is mended."""
