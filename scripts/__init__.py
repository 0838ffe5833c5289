"""Tools of the repository that no installation carries: import rules, pins, checks of both."""
