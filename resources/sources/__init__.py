"""Where documents come from: one port (`port`), and one module for each kind of source."""
