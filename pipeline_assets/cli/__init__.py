"""The `tallybook` command: one module a command, nothing heavy imported before it is needed."""
