"""Review: what waits for a person, what they see of it, and what their decisions do."""
