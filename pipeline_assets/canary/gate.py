"""May records be sent? The pure decision on what the ledger knows of a combination's canary.

Belongs here: the decision. Does not belong here: making, sending and judging a canary.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import rfc8785

from resources.clock import from_text
from resources.ledger.canaries import CanaryRow

OPEN_STATES = frozenset(
    {"prepared", "submitting", "quarantined", "submitted", "running", "results_available"}
)

Gate = Literal["open", "needed", "waiting", "closed"]


@dataclass(frozen=True)
class GateDecision:
    """Whether records may be sent, and why not.

    Attributes:
        gate: `open`: send; `needed`: a new canary goes first; `waiting`: one is under way;
            `closed`: the last one failed, and a person has to look.
        reason: a sentence for people.
    """

    gate: Gate
    reason: str


@dataclass(frozen=True)
class Combination:
    """What a canary vouches for; another value anywhere needs a canary of its own."""

    provider: str
    mode: str
    model: str
    endpoint: str
    sdk_version: str
    schema_digest: str
    prompt_digest: str
    parameters: dict[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over its canonical JSON."""
        return hashlib.sha256(rfc8785.dumps(dict(vars(self)))).hexdigest()


def decide_gate(newest: CanaryRow | None, now: datetime) -> GateDecision:
    """The gate for a combination, by its newest canary."""
    if newest is None:
        return GateDecision("needed", "nothing was ever sent with this combination")
    if newest.state in OPEN_STATES:
        return GateDecision("waiting", f"{newest.canary_id} is {newest.state}")
    if newest.state == "failed":
        return GateDecision(
            "closed",
            f"{newest.canary_id} failed; see `tallybook canary show {newest.canary_id}`, and "
            "`tallybook canary drop` once the cause is gone",
        )
    if newest.state == "passed":
        if newest.expires_at is not None and now < from_text(newest.expires_at):
            return GateDecision("open", f"{newest.canary_id} passed at {newest.judged_at}")
        return GateDecision("needed", f"{newest.canary_id} is too old to vouch for it")
    return GateDecision("needed", f"{newest.canary_id} is {newest.state}")
