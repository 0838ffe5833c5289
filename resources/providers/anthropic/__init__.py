"""Anthropic: Message Batches, and the Messages endpoint one call at a time."""
