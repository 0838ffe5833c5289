"""An archive of made-up values, written straight into a ledger: no stage runs, nothing is parsed.

What a reader of the archive needs is there (documents, records, entries, heads, deliveries,
changes), so that tests of outlets, exports and comparisons are quick and say in one line what the
archive shows. How the real stages write it is the business of their own tests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, insert, text

from resources.context import Context
from resources.ledger.archive_changes import record_change
from resources.ledger.schema import (
    archive_entries,
    archive_heads,
    deliveries,
    documents,
    processing_versions,
    records,
    sources,
)
from tests.support.clock import FrozenClock

FIRST, SECOND = "made-up-1", "made-up-2"
_PARSER = {"parser": {"version": "p1", "max_pages": 10, "ocr_pages": 0}}


def digest(text_: str) -> str:
    return hashlib.sha256(text_.encode()).hexdigest()


def content(
    title: str | None,
    identifiers: tuple[str, ...] = (),
    language: str | None = "en",
    description: str | None = None,
    quote: str = "as printed",
) -> dict[str, Any]:
    """Values in the shape that the workload publishes."""

    def one(value: str | None) -> dict[str, Any]:
        if value is None:
            return {"value": None, "status": "absent", "evidence": []}
        return {"value": value, "status": "found", "evidence": [{"page": 1, "quote": quote}]}

    return {
        "title": one(title),
        "product_identifiers": [one(identifier) for identifier in identifiers],
        "language": one(language),
        "description": one(description),
    }


@dataclass
class Shelf:
    """Publishes, corrects and removes as the archive's own transactions do."""

    context: Context
    clock: FrozenClock
    promotions: dict[int, int] = field(default_factory=dict)

    def put(
        self,
        document: str,
        values: Mapping[str, Any] | str,
        version: str = FIRST,
        kind: str = "publish",
        workload: str = "equipment_manuals",
    ) -> int:
        """Show values for a document; give the number of the entry. The search is not told."""
        shown = content(values) if isinstance(values, str) else values
        body = json.dumps(shown)
        with self.context.ledger.write() as connection:
            at = self._tick()
            document_no = self._document(connection, document)
            version_no = self._version(connection, version, workload)
            record_no = self._record(connection, document, document_no, version, version_no)
            change_no = self._change(connection, kind, at)
            entry_no = self._next(connection, "archive_entries", "entry_no")
            newest = connection.execute(
                text("SELECT MAX(archive_version) FROM archive_entries WHERE document_no = :d"),
                {"d": document_no},
            ).scalar()
            promotion = self.promotions.get(record_no, 0) + 1
            self.promotions[record_no] = promotion
            self._close(connection, document_no, change_no, at)
            connection.execute(
                insert(archive_entries).values(
                    entry_no=entry_no,
                    document_no=document_no,
                    record_no=record_no,
                    version_no=version_no,
                    archive_version=(newest or 0) + 1,
                    promotion=promotion,
                    content=body,
                    content_digest=digest(body),
                    thumbnail=digest(document),
                    valid_from=at,
                    change_no=change_no,
                )
            )
            connection.execute(
                insert(archive_heads).values(document_no=document_no, entry_no=entry_no)
            )
            connection.execute(
                insert(deliveries).values(
                    record_no=record_no,
                    operation="publish",
                    request_digest=digest(f"request {record_no}"),
                    accepted_digest=digest(body),
                    promotion=promotion,
                    disposition="published",
                    entry_no=entry_no,
                    delivered_at=at,
                )
            )
        return entry_no

    def remove(self, document: str) -> None:
        """Take a document out of the archive."""
        with self.context.ledger.write() as connection:
            at = self._tick()
            change_no = self._change(connection, "removal", at)
            self._close(connection, self._document(connection, document), change_no, at)

    def visible(self) -> dict[str, tuple[int, str | None]]:
        """What the archive shows: document_id → archive version and title."""
        with self.context.ledger.read() as connection:
            rows = connection.execute(
                text(
                    "SELECT d.document_id, e.archive_version, e.content FROM archive_heads h "
                    "JOIN archive_entries e ON e.entry_no = h.entry_no "
                    "JOIN documents d ON d.document_no = h.document_no"
                )
            )
            return {
                row.document_id: (row.archive_version, json.loads(row.content)["title"]["value"])
                for row in rows
            }

    def rows(self) -> list[tuple[str, int, str, str, int]]:
        """Every delivery: document_id, archive version, effect, state, tries."""
        with self.context.ledger.read() as connection:
            found = connection.execute(
                text(
                    "SELECT d.document_id, e.archive_version, o.effect, o.state, o.tries "
                    "FROM outlet_deliveries o JOIN archive_entries e ON e.entry_no = o.entry_no "
                    "JOIN documents d ON d.document_no = o.document_no "
                    "ORDER BY o.outlet, o.entry_no, o.effect"
                )
            )
            return [tuple(row) for row in found]

    def _tick(self) -> str:
        self.clock.advance(timedelta(seconds=1))
        return self.context.ledger.now()

    def _close(self, connection: Connection, document_no: int, change_no: int, at: str) -> None:
        connection.execute(
            text("DELETE FROM archive_heads WHERE document_no = :d"), {"d": document_no}
        )
        connection.execute(
            text(
                "UPDATE archive_entries SET valid_to = :at, closed_by = :c "
                "WHERE document_no = :d AND valid_to IS NULL"
            ),
            {"at": at, "c": change_no, "d": document_no},
        )

    def _change(self, connection: Connection, kind: Any, at: str) -> int:
        return record_change(connection, kind, None, "a test", "a test", at, 0, 0)

    def _document(self, connection: Connection, document: str) -> int:
        found = self._find(connection, "documents", "document_no", "document_id", document)
        if found is not None:
            return found
        if self._find(connection, "sources", "source_no", "name", "made-up") is None:
            connection.execute(
                insert(sources).values(
                    source_no=1,
                    name="made-up",
                    kind="test",
                    location="",
                    registered_at=self.context.ledger.now(),
                )
            )
        number = self._next(connection, "documents", "document_no")
        connection.execute(
            insert(documents).values(
                document_no=number,
                document_id=document,
                source_no=1,
                first_seen_at=self.context.ledger.now(),
            )
        )
        return number

    def _version(self, connection: Connection, key: str, workload: str) -> int:
        found = self._find(connection, "processing_versions", "version_no", "key", key)
        if found is not None:
            return found
        number = self._next(connection, "processing_versions", "version_no")
        connection.execute(
            insert(processing_versions).values(
                version_no=number,
                key=key,
                workload=workload,
                digest=digest(key),
                spec=json.dumps(_PARSER),
                state="active",
                state_reason="",
                frozen_at=self.context.ledger.now(),
            )
        )
        return number

    def _record(
        self, connection: Connection, document: str, document_no: int, version: str, version_no: int
    ) -> int:
        checksum = digest(document)
        record_id = f"equipment_manuals:{document}@{checksum[:12]}:{version}"
        found = self._find(connection, "records", "record_no", "record_id", record_id)
        if found is not None:
            return found
        number = self._next(connection, "records", "record_no")
        connection.execute(
            insert(records).values(
                record_no=number,
                record_id=record_id,
                version_no=version_no,
                document_no=document_no,
                source_version_no=document_no,
                checksum=checksum,
                operation="extract",
                replay_reason="new_source",
                manifest_no=1,
            )
        )
        return number

    @staticmethod
    def _find(
        connection: Connection, table: str, number: str, column: str, value: str
    ) -> int | None:
        found = connection.execute(
            text(f"SELECT {number} FROM {table} WHERE {column} = :value"), {"value": value}
        ).scalar()
        return None if found is None else int(found)

    @staticmethod
    def _next(connection: Connection, table: str, number: str) -> int:
        newest = connection.execute(text(f"SELECT MAX({number}) FROM {table}")).scalar()
        return int(newest or 0) + 1


def clear(context: Context, *tables: Any) -> None:
    """Empty some tables of a ledger that tests share."""
    with context.ledger.write() as connection:
        for table in tables:
            connection.execute(table.delete())
