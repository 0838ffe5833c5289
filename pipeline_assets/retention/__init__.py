"""Retention: what may go after a while, by policy, and what never may."""
