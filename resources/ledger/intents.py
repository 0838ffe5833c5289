"""Intents: every deliberate call that may create a job, on record before it is made.

Belongs here: writing, settling and reading them. Does not belong here: deciding what a found or
missing job means (`pipeline_assets/provider_jobs/adoption.py`).
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.jobs import JobRow
from resources.ledger.schema import intents

FINGERPRINT_DIGITS = 32


@dataclass(frozen=True)
class IntentRow:
    """An intent: where it goes, and what became of it.

    Attributes:
        outcome: open, accepted, refused, absent, quarantined or discarded.
    """

    intent_id: str
    account_fingerprint: str
    recorded_at: str
    called_at: str | None
    outcome: str
    provider_job_id: str | None
    detail: str
    settled_at: str | None


def fingerprint(ledger: Ledger, account: str) -> str:
    """An account as the ledger keeps it: a digest keyed with the ledger's id.

    The same account has another fingerprint in another ledger, so that fingerprints cannot be
    looked up in a table of known keys.
    """
    mark = hmac.new(ledger.ledger_id.encode(), account.encode(), hashlib.sha256)
    return mark.hexdigest()[:FINGERPRINT_DIGITS]


def record_intent(
    connection: Connection, job: JobRow, intent_id: str, account: str, at: str
) -> None:
    """Write an intent; one that was written before is open again (an idempotent create)."""
    values = {
        "account_fingerprint": account,
        "recorded_at": at,
        "called_at": None,
        "outcome": "open",
        "detail": "",
        "settled_at": None,
    }
    known = connection.execute(
        update(intents).where(intents.c.intent_id == intent_id).values(**values)
    ).rowcount
    if not known:
        connection.execute(
            insert(intents).values(
                intent_id=intent_id, machine=job.machine, subject_no=job.no, **values
            )
        )


def stamp_intent(connection: Connection, intent_id: str | None, at: str) -> None:
    """The call goes out now, or has just ended: whoever looks for its job counts from here."""
    connection.execute(update(intents).where(intents.c.intent_id == intent_id).values(called_at=at))


def settle_intent(
    connection: Connection,
    intent_id: str | None,
    outcome: str,
    at: str,
    detail: str = "",
    job_id: str | None = None,
) -> None:
    """Write what became of an intent."""
    connection.execute(
        update(intents)
        .where(intents.c.intent_id == intent_id)
        .values(outcome=outcome, provider_job_id=job_id, detail=detail, settled_at=at)
    )


def intents_of(ledger: Ledger, job: JobRow) -> list[IntentRow]:
    """The intents of a batch or canary, oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(intents)
            .where(intents.c.machine == job.machine, intents.c.subject_no == job.no)
            .order_by(intents.c.intent_no)
        )
        return [
            IntentRow(*(getattr(row, name) for name in IntentRow.__dataclass_fields__))
            for row in rows
        ]
