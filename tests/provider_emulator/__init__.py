"""Emulated providers on loopback: the real SDKs talk to them, and faults can be planted."""
