"""A queue of events that name documents, as a source."""
