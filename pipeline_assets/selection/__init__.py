"""Choosing records by what is recorded of them, and finding what a flawed configuration made."""
