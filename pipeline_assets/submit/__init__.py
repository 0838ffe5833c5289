"""Stage submit: hands batches to a provider; a thin adapter that can be swapped."""
