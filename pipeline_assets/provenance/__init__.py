"""What is told of every materialisation: which code, version and inputs made what."""
