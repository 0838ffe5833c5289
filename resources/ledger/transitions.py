"""The one table of allowed transitions for records, batches, versions, canaries and reports.

Belongs here: the tables, the question "is this move legal", and their printed form
(`python -m resources.ledger.transitions` writes docs/transitions.md). Does not belong here:
making a move, which is `moves.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Literal

Machine = Literal["record", "batch", "version", "canary", "report"]

START = ""
"""The from-state of a thing that did not exist before."""

RECORD: Mapping[str, Mapping[str, str]] = {
    START: {"queued": "the record is created when its manifest is frozen"},
    "queued": {
        "prepared": "its request bytes are frozen in a batch",
        "cancelled": "an operator withdrew it before any request",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
    },
    "prepared": {
        "submitted": "its batch was handed to the provider",
        "cancelled": "an operator discarded its batch",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
    },
    "submitted": {
        "collected": "a succeeded result was reconciled, of this attempt or a late one",
        "retry_wait": "the attempt failed in a way that another may mend",
        "dead_letter": "the attempt failed for good, or its limits are used up",
        "cancelled": "the provider job was cancelled and nobody wants a retry",
        "prepared": "the submission is known not to have happened",
    },
    "collected": {
        "accepted": "every rule passed",
        "awaiting_review": "a rule or an uncertain field needs a person",
        "retry_wait": "a recovery path may mend the answer",
        "dead_letter": "the answer cannot be used and no recovery path is left",
    },
    "retry_wait": {
        "prepared": "a retry manifest holds a new attempt",
        "dead_letter": "the work budget is used up, or its bytes are gone",
        "cancelled": "an operator gave it up",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
        "collected": "a late result of an earlier attempt was valid",
    },
    "awaiting_review": {
        "accepted": "a reviewer accepted or corrected it",
        "rejected": "a reviewer rejected it",
        "prepared": "an operator asked for another attempt",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
    },
    "accepted": {
        "published": "metadata, search entry and thumbnail reference were committed together",
        "awaiting_review": "a later check raised a finding",
        "rejected": "a reviewer rejected it in a quality sample",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
        "prepared": "a replay of the same version asked for another attempt",
    },
    "published": {
        "prepared": "a replay of the same version asked for another attempt",
        "rejected": "a reviewer rejected it in a quality sample, and its entry was hidden",
        "withdrawn": "its document was removed or erased",
    },
    "rejected": {
        "prepared": "an operator asked for another attempt",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
    },
    "dead_letter": {
        "prepared": "requeued by its owner, with a reason",
        "discarded": "given up by its owner, with a reason",
        "collected": "a late result of an earlier attempt was valid",
        "withdrawn": "its document was removed or erased",
        "superseded": "its document has a newer published record",
    },
    "discarded": {
        "prepared": "an operator asked for another attempt",
        "withdrawn": "its document was erased",
    },
    "cancelled": {
        "prepared": "an operator asked for another attempt",
        "withdrawn": "its document was erased",
    },
    "superseded": {"withdrawn": "its document was erased"},
    "withdrawn": {
        "queued": "the document came back with the same bytes, before any request",
        "accepted": "the document came back with the same bytes: its answer still stands",
        "awaiting_review": "the document came back with the same bytes",
        "rejected": "the document came back with the same bytes",
        "retry_wait": "the document came back with the same bytes",
        "dead_letter": "the document came back with the same bytes",
    },
}

BATCH: Mapping[str, Mapping[str, str]] = {
    START: {"prepared": "its request file and manifest are frozen"},
    "prepared": {
        "submitting": "the intent is durable; the provider is about to be called",
        "cancelled": "an operator discarded it",
    },
    "submitting": {
        "submitted": "the provider answered with a job",
        "prepared": "no job was made: refused, unreachable, or proven absent in the same account",
        "quarantined": "it is not known whether the provider has the job",
    },
    "quarantined": {
        "submitted": "the provider's job was found, or attached by an operator",
        "prepared": "the job is proven absent in the same account",
        "cancelled": "an operator discarded it",
    },
    "submitted": {
        "running": "the provider reports work, or answers inside the run",
        "results_available": "the provider is done and output can be fetched",
        "reconciling": "the provider ended early and left nothing to fetch",
    },
    "running": {
        "results_available": "the provider is done and output can be fetched",
        "reconciling": "the provider ended early and left nothing to fetch",
    },
    "results_available": {"reconciling": "every result file is stored with its digest"},
    "reconciling": {
        "completed": "every record succeeded",
        "completed_with_errors": "every record has a disposition, some failed for good",
        "retry_required": "every record has a disposition, some can be retried",
        "incident": "the dispositions do not add up to the manifest",
    },
    "incident": {"reconciling": "an operator asked to reconcile again"},
    "completed": {},
    "completed_with_errors": {},
    "retry_required": {
        "completed": "the retries succeeded",
        "completed_with_errors": "the retries are over, some failed for good",
    },
    "cancelled": {},
}

CANARY: Mapping[str, Mapping[str, str]] = {
    START: {"prepared": "its request file of made-up documents is stored"},
    "prepared": {
        "submitting": "the intent is durable; the provider is about to be called",
        "cancelled": "an operator discarded it",
    },
    "submitting": {
        "submitted": "the provider answered with a job",
        "prepared": "no job was made: refused, unreachable, or proven absent in the same account",
        "quarantined": "it is not known whether the provider has the job",
    },
    "quarantined": {
        "submitted": "the provider's job was found, or attached by an operator",
        "prepared": "the job is proven absent in the same account",
        "cancelled": "an operator discarded it",
    },
    "submitted": {
        "running": "the provider reports work, or answers inside the run",
        "results_available": "the provider is done",
    },
    "running": {"results_available": "the provider is done"},
    "results_available": {
        "passed": "every made-up document came back right, and the broken request was refused",
        "failed": "an answer was wrong or missing, or the broken request was taken",
    },
    "passed": {"expired": "it is too old to vouch for the provider, or an operator dropped it"},
    "failed": {"expired": "an operator asked for another one"},
    "expired": {},
    "cancelled": {},
}

VERSION: Mapping[str, Mapping[str, str]] = {
    START: {"active": "the spec's digest is frozen at first use"},
    "active": {
        "held": "breaker, backpressure, budget, authentication or quota",
        "retired": "an operator retired it",
    },
    "held": {
        "active": "the cause is gone, or an operator released it",
        "retired": "an operator retired it",
    },
    "retired": {"active": "an operator took it back into use"},
}

REPORT: Mapping[str, Mapping[str, str]] = {
    START: {"closed": "somebody vouches for the collection that it accounts for"},
    "closed": {},
}

MACHINES: Mapping[Machine, Mapping[str, Mapping[str, str]]] = {
    "record": RECORD,
    "batch": BATCH,
    "version": VERSION,
    "canary": CANARY,
    "report": REPORT,
}


class IllegalTransition(Exception):
    """A move that the transition table does not allow."""

    def __init__(self, machine: Machine, from_state: str, to_state: str) -> None:
        allowed = ", ".join(MACHINES[machine].get(from_state, {})) or "none"
        super().__init__(
            f"a {machine} cannot go from {from_state or 'nothing'!r} to {to_state!r}; "
            f"allowed from there: {allowed}. See docs/transitions.md."
        )


def require_legal(machine: Machine, from_state: str, to_state: str) -> None:
    """Refuse a move that is not in the table.

    Raises:
        IllegalTransition: the table has no such move.
    """
    if to_state not in MACHINES[machine].get(from_state, {}):
        raise IllegalTransition(machine, from_state, to_state)


def as_markdown() -> str:
    """The tables as a page of the documentation."""
    lines = [
        "# Allowed transitions",
        "",
        "Printed from `resources/ledger/transitions.py` by `make docs`; a test compares the two.",
        "Every move is written with time, reason and actor in the transaction that makes it.",
    ]
    for machine, table in MACHINES.items():
        lines += [
            "",
            f"## {machine.capitalize()}",
            "",
            "| from | to | when |",
            "| --- | --- | --- |",
        ]
        for from_state, targets in table.items():
            for to_state, when in targets.items():
                lines.append(f"| {from_state or '–'} | {to_state} | {when} |")
        ends = [state for state, targets in table.items() if not targets]
        if ends:
            lines += ["", "No move leaves " + ", ".join(f"`{state}`" for state in ends) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
