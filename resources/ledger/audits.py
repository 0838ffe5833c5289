"""Audits in the ledger: who looked when, at what, what it came to, and the heads seen then.

Belongs here: the rows of `audits`. Does not belong here: what is audited (`pipeline_assets/audit`).

An audit keeps where each hash chain of the journal ended, and digests over other rows that only
grow. A chain that loses its newest rows afterwards is whole in itself; only what somebody saw
earlier tells that it was longer. The digest over all of that is what a person can keep elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select

from resources.ledger.engine import Ledger
from resources.ledger.schema import audits

HEAD_DIGITS = 16
"""Hexadecimal digits of a head that are kept a chain; all of them are in the digest over heads."""


class Scope(msgspec.Struct, frozen=True):
    """What an audit looked at, as its row keeps it.

    Attributes:
        version: the processing version; None for all.
        sample: percent of the bulky artifacts whose bytes were read.
        seed: what decided which.
        left_out: what could not be checked, a sentence each.
        heads: chain → how many moves it had, and the first digits of its head.
        trails: rows that only grow → how many there were, and the first digits of the digest over
            them; empty before audits kept them.
    """

    version: str | None
    sample: float
    seed: int
    left_out: tuple[str, ...]
    heads: dict[str, tuple[int, str]]
    trails: dict[str, tuple[int, str]] = {}


@dataclass(frozen=True)
class EarlierAudit:
    """An audit that was made before."""

    audit_no: int
    made_at: str
    findings: int
    journal_digest: str
    scope: Scope


def heads_digest(heads: Mapping[str, str]) -> str:
    """SHA-256 over heads by name, of chains and trails: `name SP head LF` each, sorted by name."""
    digest = hashlib.sha256()
    for chain in sorted(heads):
        digest.update(f"{chain} {heads[chain]}\n".encode())
    return digest.hexdigest()


def store_audit(
    ledger: Ledger,
    *,
    version_no: int | None,
    scope: Scope,
    checked: int,
    findings: int,
    journal_digest: str,
    actor: str,
) -> int:
    """Keep what an audit came to; returns its number."""
    with ledger.write() as connection:
        key = connection.execute(
            insert(audits).values(
                version_no=version_no,
                scope=msgspec.json.encode(scope).decode(),
                checked=checked,
                findings=findings,
                journal_digest=journal_digest,
                actor=actor,
                made_at=ledger.now(),
            )
        ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    return int(key[0])


def newest_audit(connection: Connection) -> EarlierAudit | None:
    """The audit that was made last; None where none was.

    One is enough: an audit that finds a chain shorter than an earlier one did says so, and keeps
    the longer of the two.
    """
    row = connection.execute(select(audits).order_by(audits.c.audit_no.desc()).limit(1)).first()
    return None if row is None else _earlier(row)


def audit_with_digest(connection: Connection, digest: str) -> EarlierAudit | None:
    """The newest audit that ended with this digest over heads; None where none did."""
    wanted = select(audits).where(audits.c.journal_digest == digest)
    row = connection.execute(wanted.order_by(audits.c.audit_no.desc()).limit(1)).first()
    return None if row is None else _earlier(row)


def _earlier(row: Row[Any]) -> EarlierAudit:
    scope = msgspec.json.decode(row.scope, type=Scope)
    return EarlierAudit(row.audit_no, row.made_at, row.findings, row.journal_digest, scope)
