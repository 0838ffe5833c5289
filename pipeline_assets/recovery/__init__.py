"""Recovery: what becomes of records that failed, of versions that fail, and who has to know."""
