"""Stage collect: raw results stored, reconciled against the manifest, given a disposition."""
