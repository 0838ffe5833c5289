"""The times that keep two workers from creating one batch's job twice fit together."""

from __future__ import annotations

from pipeline_assets.provider_jobs.adoption import GRACE
from resources.ledger.leases import LEASE_SECONDS
from resources.providers.registry import CALL_SECONDS


def test_a_call_has_ended_and_is_listed_before_its_lease_runs_out() -> None:
    """Whoever takes the batch over looks for the job only when it must be there or never will."""
    assert CALL_SECONDS + GRACE.total_seconds() <= LEASE_SECONDS
