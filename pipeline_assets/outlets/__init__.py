"""Outlets: other systems that are told of every change of what the archive shows."""
