"""Deciding on documents of sources that demand approval: an explicit selection, then one decision.

Belongs here: which documents are meant, the digest that names a selection, refusing one that is
out of date, and writing the decision. Does not belong here: the rows
(`resources/ledger/approvals.py`), and leaving undecided documents out of manifests (`prepare`).

A decision is on bytes. Whoever decides names documents; the selection says which version of each
was looked at, and the transaction that writes the decision asks whether that is still the present
one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.approval.errors import (
    ApprovalNotAsked,
    ListUnreadable,
    NotHeld,
    NothingWaits,
    NotReadable,
    OutOfDate,
    SelectionChanged,
)
from pipeline_assets.approval.said import require_actor, require_reason
from pipeline_assets.barred_documents import demanding_sources
from resources.context import Context
from resources.ledger import approvals
from resources.ledger.approvals import Decision
from resources.ledger.engine import Ledger
from resources.ledger.frames import member_bytes
from resources.settings import Settings
from resources.sources.declared import declared_sources, source_named

DIGEST_LENGTH = 12
EXAMPLES = 5
"""So many documents of a selection are shown before it is confirmed."""

_OF_BYTES = re.compile(r"(?P<name>.+)@(?P<checksum>[0-9a-f]{12,64})", re.DOTALL)


@dataclass(frozen=True)
class Selection:
    """Documents as they were when they were chosen.

    Attributes:
        documents: `approvals.STANDING_SCHEMA`, by id.
        digest: names exactly these versions of these documents.
    """

    documents: pl.DataFrame
    digest: str


@dataclass(frozen=True)
class Decided:
    """What was decided.

    Attributes:
        decision: approved or refused.
        documents: how many.
        examples: the first few of their ids.
        with_records: documents of which these very bytes have a record already: a refusal does
            not take that away.
    """

    decision: Decision
    documents: int
    examples: tuple[str, ...]
    with_records: int


def approval_sources(settings: Settings) -> tuple[str, ...]:
    """Names of the sources that demand approval, sorted.

    Raises:
        InvalidSources: the file of sources cannot be used.
    """
    return tuple(source.name for source in declared_sources(settings) if source.approval)


def waiting_for_approval(ledger: Ledger, settings: Settings) -> dict[str, int]:
    """How many documents of each source that demands approval wait for it; 0 where none does.

    Raises:
        InvalidSources: the file of sources cannot be used.
    """
    names = approval_sources(settings)
    with ledger.read() as connection:
        return approvals.count_waiting(connection, ledger, names)


def waiting_documents(
    context: Context, source: str | None = None, limit: int | None = None
) -> pl.DataFrame:
    """Documents that wait for approval (`approvals.STANDING_SCHEMA`), the longest waiting first.

    Args:
        context: the open resources.
        source: of this source alone.
        limit: at most so many.

    Raises:
        InvalidSources, UnknownSource: the declarations cannot be used, or lack the source.
        ApprovalNotAsked: the source does not demand approval.
    """
    names = approval_sources(context.settings) if source is None else (source,)
    if source is not None:
        _require_asked(context.settings, source)
    with context.ledger.read() as connection:
        return approvals.waiting(connection, context.ledger, names, limit)


def select_all(context: Context, source: str) -> Selection:
    """Every document of a source that waits.

    Raises:
        NothingWaits: none does.
        see `waiting_documents`.
    """
    documents = waiting_documents(context, source)
    if documents.is_empty():
        raise NothingWaits(source)
    return _selection(documents)


def select_documents(context: Context, names: Sequence[str]) -> Selection:
    """Documents by their ids, decided on or not: a later decision takes the place of an earlier.

    Args:
        context: the open resources.
        names: ids; `ID@CHECKSUM` (12 digits at least) means exactly these bytes.

    Raises:
        NotHeld: no source holds some of them.
        ApprovalNotAsked: the source of some does not demand approval.
        NotReadable: some are excluded for another reason.
        OutOfDate: the bytes of some are others than those named.
    """
    asked = dict(split_name(name) for name in names)
    with context.ledger.read() as connection:
        found = approvals.standing_of(connection, context.ledger, list(asked))
    known = set(found["document_id"])
    absent = [name for name in asked if name not in known]
    if absent:
        raise NotHeld(absent)
    demanding = demanding_sources(context)
    strange = found.filter(~pl.col("source").is_in(demanding))["document_id"].to_list()
    if strange:
        raise ApprovalNotAsked(strange)
    excluded = found.filter(
        pl.col("excluded").is_not_null() | pl.col("source_version_no").is_null()
    )
    if not excluded.is_empty():
        raise NotReadable(excluded["document_id"].to_list(), str(excluded["excluded"][0]))
    changed = [
        name
        for name, checksum in found.select("document_id", "checksum").iter_rows()
        if not checksum.startswith(asked[name])
    ]
    if changed:
        raise OutOfDate(changed)
    return _selection(found)


def read_list(file: Path) -> list[str]:
    """The document ids in a file, one a line; empty lines are passed over.

    Raises:
        ListUnreadable: it cannot be read, is no UTF-8 text, or names nothing.
    """
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ListUnreadable(file.name, f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ListUnreadable(file.name, "is not UTF-8 text") from error
    names = [line.rstrip("\r") for line in lines if line.strip()]
    if not names:
        raise ListUnreadable(file.name, "names no document")
    return names


def split_name(name: str) -> tuple[str, str]:
    """A name as document id and the beginning of a checksum, empty where none is given.

    An `@` of an id itself is written `%40`, so it cannot be mistaken.
    """
    found = _OF_BYTES.fullmatch(name)
    return (name, "") if found is None else (found["name"], found["checksum"])


def decide(
    context: Context,
    selection: Selection,
    decision: Decision,
    *,
    reason: str,
    actor: str,
    confirmed: str | None = None,
) -> Decided:
    """Write the same decision on every document of a selection, or on none.

    Args:
        context: the open resources.
        selection: what was looked at.
        decision: approved or refused.
        reason: why.
        actor: who decides.
        confirmed: the digest of what was looked at, where the selection was made again since.

    Raises:
        Unsaid: nobody decides, or for no reason.
        SelectionChanged: the selection is another one than that which was confirmed.
        OutOfDate: some bytes are not the present ones any more.
    """
    why, who = require_reason(reason), require_actor(actor)
    documents = selection.documents
    if confirmed is not None and confirmed != selection.digest:
        raise SelectionChanged(confirmed, selection.digest, documents.height)
    with context.ledger.write() as connection:
        _require_present(connection, context.ledger, documents)
        approvals.record(
            connection, context.ledger, documents["source_version_no"], decision, why, who
        )
    return Decided(
        decision,
        documents.height,
        tuple(documents["document_id"].head(EXAMPLES)),
        documents.filter(pl.col("records") > 0).height,
    )


def selection_digest(source_versions: pl.Series) -> str:
    """Twelve hexadecimal digits over a set of source versions, whatever their order."""
    hashed = hashlib.sha256(member_bytes(source_versions.sort()))
    return hashed.hexdigest()[:DIGEST_LENGTH]


def _selection(documents: pl.DataFrame) -> Selection:
    return Selection(documents, selection_digest(documents["source_version_no"]))


def _require_asked(settings: Settings, source: str) -> None:
    if not source_named(settings, source).approval:
        raise ApprovalNotAsked([source])


def _require_present(connection: Connection, ledger: Ledger, documents: pl.DataFrame) -> None:
    changed = approvals.out_of_date(connection, ledger, documents["source_version_no"])
    if not changed.is_empty():
        raise OutOfDate(changed.to_list())
