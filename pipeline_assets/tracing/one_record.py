"""The trace of one record that a person names, sampled or not.

Belongs here: finding the record and reading its spans, from the ledger or from the file of spans.
Does not belong here: showing them (`waterfall.py`, `cli/trace.py`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import polars as pl
from sqlalchemy import select

from pipeline_assets.account.documents import find_document
from pipeline_assets.known_version import known_version
from pipeline_assets.tracing.life import microseconds
from pipeline_assets.tracing.lives import lives_of
from pipeline_assets.tracing.spans import Span, spans_of, trace_id_of
from pipeline_assets.tracing.trace_file import read_trace
from resources.context import Context
from resources.ledger.schema import records


class NoRecordYet(LookupError):
    """A document that was never processed under this version has no trace."""

    def __init__(self, document_id: str, key: str) -> None:
        super().__init__(
            f"{document_id} has no record under version {key}: nothing was asked for it. "
            f"`tallybook explain {shlex.quote(document_id)} --version {key}` tells why."
        )


class NotInFile(LookupError):
    """The file of spans does not have the record's trace."""

    def __init__(self, record_id: str) -> None:
        super().__init__(
            f"the file of spans has no trace of {record_id}: it has not ended, it was not chosen, "
            "its file was dropped for room, or TALLYBOOK_TRACES is not `file`. Without --file the "
            "trace is made from the ledger."
        )


@dataclass(frozen=True)
class Trace:
    """A record's spans.

    Attributes:
        record_id: whose.
        trace_id: 32 hexadecimal digits.
        spans: each after the one that it lies in.
    """

    record_id: str
    trace_id: str
    spans: list[Span]


def trace_of(context: Context, given: str, key: str) -> Trace:
    """The trace of a record, from the ledger; what is open is told up to now.

    Args:
        context: the open resources.
        given: a record's id, or a document's, or an ending that no other document's id has.
        key: the version, where a document was given: its newest record of that version.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        UnknownDocument, AmbiguousDocument, NoRecordYet: no record, or it is not clear which.
    """
    record_no, record_id = _record_of(context, given, key)
    numbers = pl.Series([record_no], dtype=pl.Int64)
    now = microseconds(context.ledger.now())
    with context.ledger.read() as connection:
        (life,) = lives_of(connection, context.ledger.dialect, numbers)
    return Trace(record_id, trace_id_of(record_id), spans_of(life, until=now))


def trace_in_file(context: Context, given: str, key: str) -> Trace:
    """The trace of a record as the file exporter wrote it.

    Raises:
        NotInFile: it did not, or not any more.
        And as `trace_of`.
    """
    _, record_id = _record_of(context, given, key)
    spans = read_trace(context.settings.state_folder, trace_id_of(record_id))
    if not spans:
        raise NotInFile(record_id)
    return Trace(record_id, trace_id_of(record_id), spans)


def _record_of(context: Context, given: str, key: str) -> tuple[int, str]:
    with context.ledger.read() as connection:
        row = connection.execute(
            select(records.c.record_no, records.c.record_id).where(records.c.record_id == given)
        ).first()
    if row is not None:
        return int(row.record_no), row.record_id
    version = known_version(context, key)
    document = find_document(context, given)
    with context.ledger.read() as connection:
        newest = connection.execute(
            select(records.c.record_no, records.c.record_id)
            .where(
                records.c.document_no == document.document_no,
                records.c.version_no == version.version_no,
            )
            .order_by(records.c.record_no.desc())
            .limit(1)
        ).first()
    if newest is None:
        raise NoRecordYet(document.document_id, version.key)
    return int(newest.record_no), newest.record_id
