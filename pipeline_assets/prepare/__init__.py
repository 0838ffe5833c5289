"""Stage prepare: records, request files and the frozen manifest; knows nothing of submission."""
