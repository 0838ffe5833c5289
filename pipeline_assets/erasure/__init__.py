"""Taking a document out of everything that holds its bytes, text or values, for good."""
