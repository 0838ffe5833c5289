"""Planted tampering and loss, each on a fresh copy of a real state: the audit must name it."""
