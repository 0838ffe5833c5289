"""Pilots: versions tried on a sample of the archive, before anybody pays for all of it."""
