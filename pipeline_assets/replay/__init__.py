"""Deliberate replays: what is selected, why, and what it would cost. Nothing is imported here."""
