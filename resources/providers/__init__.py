"""Providers behind one port: one module a provider, none of which knows a stage."""
