"""Two versions over one folder of documents, and what the archive shows after each step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import Connection, insert, select, update

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.completeness import incomplete_entries
from pipeline_assets.publish.promote import PromoteReport, promote
from pipeline_assets.publish.publish_accepted import PublishReport, publish_accepted
from pipeline_assets.publish.rollback import (
    RollbackReport,
    rollback_document,
    rollback_version,
)
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.ledger.archive_changes import record_change
from resources.ledger.archive_visibility import hide_records
from resources.ledger.journal import verify_all
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.schema import (
    archive_changes,
    archive_entries,
    attempts,
    judgements,
    reviews,
)
from tests.integration.stages.support import manual
from tests.support.clock import FrozenClock

ONE, TWO = "manuals-one-1", "manuals-two-1"
PUMP, FAN = "pump.txt", "fan.txt"
BOTH: tuple[str, ...] = (f"shop/{FAN}", f"shop/{PUMP}")
_SEED = "manuals-baseline-1"


def write_specs(folder: Path) -> None:
    """Write the specs of both versions into a new folder."""
    folder.mkdir()
    text = (PACKAGED_SPECS / f"{_SEED}.yaml").read_text(encoding="utf-8")
    for key in (ONE, TWO):
        (folder / f"{key}.yaml").write_text(text.replace(f"key: {_SEED}", f"key: {key}"))


@dataclass(frozen=True)
class Stall:
    """A folder of documents, processed by whichever version a test names."""

    folder: Path
    context: Context
    clock: FrozenClock

    def fill(self) -> Stall:
        """Put two documents into the folder."""
        self.write(PUMP, manual("Circulation Pump", "WP-100"))
        self.write(FAN, manual("Ventilator", "VF-20"))
        return self

    def write(self, name: str, text: str) -> None:
        """Put a document into the folder."""
        (self.folder / name).write_text(text)

    def version(self, key: str) -> OpenVersion:
        """A version, open for work."""
        return open_version(self.context, key)

    def accept(self, key: str = ONE) -> OpenVersion:
        """Everything up to judged records, none of them published."""
        self.clock.advance(1)
        scan_declared(self.context)
        version = self.version(key)
        parse_documents(self.context, parser_settings(version.spec), version.spec.workload)
        freeze_manifest(self.context, version)
        submit_batches(self.context, version)
        collect_batches(self.context, version)
        judge_batches(self.context, version)
        return version

    def publish(self, key: str = ONE) -> PublishReport:
        """Publish what the version accepted."""
        self.clock.advance(1)
        return publish_accepted(self.context, self.version(key))

    def run(self, key: str = ONE) -> PublishReport:
        """Every stage, in order."""
        self.accept(key)
        return self.publish(key)

    def promote(self, key: str = ONE, **wish: Any) -> PromoteReport:
        """Promote the version by command."""
        self.clock.advance(1)
        return promote(self.context, self.version(key), "for the test", **wish)

    def rollback(self, key: str = ONE, **wish: Any) -> RollbackReport:
        """Roll the version back."""
        self.clock.advance(1)
        return rollback_version(self.context, self.version(key).version_no, "for the test", **wish)

    def rollback_document(self, document_id: str, **wish: Any) -> RollbackReport:
        """Roll one document back."""
        self.clock.advance(1)
        number = self.document_no(document_id)
        return rollback_document(self.context, number, document_id, "for the test", **wish)

    def document_no(self, document_id: str) -> int:
        """The number of a document."""
        return self.query(
            f"SELECT document_no FROM documents WHERE document_id = '{document_id}'",
            {"document_no": pl.Int64},
        ).item()

    def query(self, sql: str, schema: dict[str, Any]) -> pl.DataFrame:
        """The rows of a query."""
        with self.context.ledger.read() as connection:
            return self.context.ledger.dialect.fetch(connection, sql, schema)

    def shown(self) -> dict[str, str]:
        """The version that each document shows, by document; whole and searchable, or it fails."""
        with self.context.ledger.read() as connection:
            return shown(connection, self.context)

    def sequence(self, document_id: str) -> list[tuple[str, int, str | None]]:
        """Of each entry of a document: version, promotion, kind of the change that showed it."""
        return list(
            self.query(
                "SELECT v.key, e.promotion, c.kind FROM archive_entries e "
                "JOIN processing_versions v ON v.version_no = e.version_no "
                "LEFT JOIN archive_changes c ON c.change_no = e.change_no "
                f"WHERE e.document_no = {self.document_no(document_id)} "
                "ORDER BY e.archive_version",
                {"key": pl.String, "promotion": pl.Int64, "kind": pl.String},
            ).iter_rows()
        )

    def changes(self) -> list[tuple[str, int, int]]:
        """Kind, shown and hidden of every change, in order."""
        return self.query(
            "SELECT kind, shown, hidden FROM archive_changes ORDER BY change_no",
            {"kind": pl.String, "shown": pl.Int64, "hidden": pl.Int64},
        ).rows()

    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that publication writes, for comparing before with after."""
        tables = ("archive_entries", "archive_heads", "archive_changes", "deliveries", "moves")
        with self.context.ledger.read() as connection:
            found = {
                name: sorted(
                    tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")
                )
                if name != "archive_entries"
                else sorted(
                    tuple(row)
                    for row in connection.execute(
                        select(
                            archive_entries.c.entry_no,
                            archive_entries.c.valid_to.is_(None),
                            archive_entries.c.change_no,
                        )
                    )
                )
                for name in tables
            }
            states = connection.exec_driver_sql(
                "SELECT record_no, state FROM record_state ORDER BY record_no"
            )
            searchable = self.context.ledger.dialect.search_entries(connection)["entry_no"]
            return found | {
                "record_state": [tuple(row) for row in states],
                "search": [(number,) for number in sorted(searchable)],
                "settings": [
                    tuple(row)
                    for row in connection.exec_driver_sql(
                        "SELECT name, value FROM operating_settings"
                    )
                ],
            }

    def require_whole(self) -> None:
        """Fail where a document is incomplete, an interval has a gap or the journal is broken."""
        assert incomplete_entries(self.context).is_empty()
        with self.context.ledger.read() as connection:
            assert verify_all(connection, self.context.ledger.dialect).holds
            entries = connection.execute(
                select(archive_entries).order_by(
                    archive_entries.c.document_no, archive_entries.c.archive_version
                )
            ).all()
            kinds = {row.change_no: row for row in connection.execute(select(archive_changes))}
        for earlier, later in pairwise(entries):
            if earlier.document_no == later.document_no:
                assert later.archive_version == earlier.archive_version + 1
                assert earlier.valid_to is not None
                assert earlier.valid_to <= later.valid_from
                if earlier.closed_by == later.change_no:
                    assert earlier.valid_to == later.valid_from
                else:
                    assert kinds[earlier.closed_by].kind == "removal"
        for number, change in kinds.items():
            assert change.shown == sum(entry.change_no == number for entry in entries)
            assert change.hidden == sum(entry.closed_by == number for entry in entries)

    def record_of(self, document_id: str, key: str = ONE) -> int:
        """The newest record of a document under a version."""
        return self.query(
            "SELECT MAX(r.record_no) FROM records r "
            "JOIN processing_versions v ON v.version_no = r.version_no "
            f"WHERE v.key = '{key}' AND r.document_no = {self.document_no(document_id)}",
            {"record_no": pl.Int64},
        ).item()

    def move(self, record_no: int, from_state: str, to_state: str) -> None:
        """Move a record, as a reviewer's decision does."""
        with self.context.ledger.write() as connection:
            self._move(connection, record_no, from_state, to_state)

    def reject(self, records: Sequence[int]) -> int:
        """What a reviewer's rejection of published records does; returns what was hidden."""
        self.clock.advance(1)
        ledger = self.context.ledger
        with ledger.write() as connection:
            change = record_change(
                connection, "removal", None, "wrong", "a reviewer", ledger.now(), 0, 0
            )
            hidden = hide_records(
                connection,
                ledger,
                pl.Series(records),
                change,
                searched_of(self.context.settings),
            )
            for record in records:
                self._move(connection, record, "published", "rejected")
            return hidden

    def decide(
        self, record_no: int, decision: str | None, *, title: str | None = None, kind: str
    ) -> None:
        """Write a review of a record's newest attempt; `title` is the corrected one."""
        self.clock.advance(1)
        ledger = self.context.ledger
        with ledger.write() as connection:
            attempt = connection.execute(
                select(judgements.c.attempt_no, judgements.c.values_digest)
                .where(judgements.c.record_no == record_no)
                .order_by(judgements.c.attempt_no.desc())
            ).first()
            assert attempt is not None
            number = connection.execute(select(reviews.c.review_no)).scalars().all()
            content = None if title is None else _titled(title)
            version = connection.exec_driver_sql(
                f"SELECT version_no FROM records WHERE record_no = {record_no}"
            ).scalar()
            connection.execute(
                insert(reviews).values(
                    review_no=max(number, default=0) + 1,
                    record_no=record_no,
                    attempt_no=attempt.attempt_no,
                    version_no=version,
                    kind=kind,
                    sample_no=len(number),
                    slice="",
                    priority=0,
                    opened_at=ledger.now(),
                    revision=1,
                    decision=decision,
                    decided_at=None if decision is None else ledger.now(),
                    values_digest=attempt.values_digest,
                    corrected_content=content,
                    corrected_digest=None
                    if content is None
                    else hashlib.sha256(content.encode()).hexdigest(),
                )
            )

    def doubt(self, record_no: int) -> None:
        """Judge an accepted record's newest answer as one for a reviewer."""
        with self.context.ledger.write() as connection:
            newest = (
                select(attempts.c.attempt_no)
                .where(attempts.c.record_no == record_no)
                .scalar_subquery()
            )
            connection.execute(
                update(judgements)
                .where(judgements.c.attempt_no == newest)
                .values(outcome="awaiting_review")
            )

    def titles(self) -> dict[str, str]:
        """The title that each document shows."""
        return {
            document: json.loads(content)["title"]["value"]
            for document, content in self.query(
                "SELECT d.document_id, e.content FROM archive_heads h "
                "JOIN archive_entries e ON e.entry_no = h.entry_no "
                "JOIN documents d ON d.document_no = h.document_no",
                {"document_id": pl.String, "content": pl.String},
            ).iter_rows()
        }

    def _move(self, connection: Connection, record_no: int, from_state: str, to_state: str) -> None:
        move_records(
            connection,
            self.context.ledger.dialect,
            pl.Series([record_no]),
            from_state,
            to_state,
            self.context.cause("for the test", "test"),
            batch_chain(1),
        )


def _titled(title: str) -> str:
    field = {"value": title, "status": "found", "evidence": []}
    absent = {"value": None, "status": "absent", "evidence": []}
    return json.dumps(
        {
            "title": field,
            "product_identifiers": [],
            "language": absent,
            "description": absent,
        }
    )


def shown(connection: Connection, context: Context) -> dict[str, str]:
    """What one read transaction sees: the version that each document shows.

    Every document has one open entry, which is its head, and which alone the search finds.
    """
    dialect = context.ledger.dialect
    heads = dialect.fetch(
        connection,
        "SELECT d.document_id, v.key, h.entry_no FROM archive_heads h "
        "JOIN documents d ON d.document_no = h.document_no "
        "JOIN archive_entries e ON e.entry_no = h.entry_no AND e.valid_to IS NULL "
        "JOIN processing_versions v ON v.version_no = e.version_no ORDER BY d.document_id",
        {"document_id": pl.String, "key": pl.String, "entry_no": pl.Int64},
    )
    visible = sorted(heads["entry_no"])
    opened = dialect.fetch(
        connection,
        "SELECT entry_no FROM archive_entries WHERE valid_to IS NULL ORDER BY entry_no",
        {"entry_no": pl.Int64},
    )["entry_no"].to_list()
    searchable = sorted(dialect.search_entries(connection)["entry_no"])
    assert opened == visible == searchable, (opened, visible, searchable)
    return dict(zip(heads["document_id"], heads["key"], strict=True))
