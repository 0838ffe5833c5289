"""The reconciliation report in full: facts, outcomes, page, baseline, keeping and closing."""
