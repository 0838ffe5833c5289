"""Stage account: reports, and every question that is asked of the ledger."""
