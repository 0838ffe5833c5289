"""A small folder of documents, and every stage over it on a ledger of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl
import pytest
from sqlalchemy import Table, func, select

from pipeline_assets.accept.judge_batches import JudgeReport, judge_batches
from pipeline_assets.collect.collect_batches import CollectReport, collect_batches
from pipeline_assets.ingest.parse_documents import ParseStageReport, parse_documents
from pipeline_assets.ingest.parsing.document import parse_document
from pipeline_assets.ingest.parsing.model import (
    ParseFailure,
    ParseLimits,
    ParseOutcome,
    ParseReport,
    ParseTask,
)
from pipeline_assets.ingest.parsing.reading import ReadContext
from pipeline_assets.ingest.scan import ScanReport, scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import FreezeReport, freeze_manifest
from pipeline_assets.publish.publish_accepted import PublishReport, publish_accepted
from pipeline_assets.submit.submit_batches import SubmitReport, submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from resources.context import Context
from resources.ledger.schema import metadata
from resources.ledger.search_text import query_terms

KEY = "manuals-baseline-2"
ON_ONE_DATABASE = pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)
"""For tables of cases about files and decisions, where the database makes no difference."""
PUMP, FAN, COPY, EMPTY, GARBAGE = (
    "pump.txt",
    "sub/fan.html",
    "sub/pump copy.txt",
    "empty.txt",
    "noise.pdf",
)
_BODY = """Introduction

The {id} is a {name} for small workshops and gardens. It is driven by an electric motor and
made for continuous use. Read this manual before you switch the machine on for the first time.

Safety

Keep children away from the machine while it is running. Pull the plug of the {id} before you
clean the housing, and use a damp cloth only. Never lift the machine by its cable.

Operation

Place the {id} on a firm and level floor. Switch it on, wait until the motor runs at full speed
and check that nothing is loose. Switch it off again when the work is done.
"""


def manual(name: str, identifier: str) -> str:
    """The text of a manual that the built-in rules read without doubt."""
    return f"{name} {identifier}\nUser Manual\n\n" + _BODY.format(id=identifier, name=name.lower())


def html(text: str) -> str:
    """The same as a web page."""
    title, _, rest = text.partition("\n")
    parts = "".join(f"<p>{part}</p>" for part in rest.strip().split("\n\n"))
    return f"<html><head><title>x</title></head><body><h1>{title}</h1>{parts}</body></html>"


_PARSED: dict[tuple[bytes, str], ParseOutcome] = {}
"""Many tests have the same documents."""


class InProcessPool:
    """Stands in for the pool of worker processes: the same parser, in this process."""

    ocr_available = False

    def __init__(self, _workers: int, limits: ParseLimits) -> None:
        self._context = ReadContext(
            limits=limits,
            render=True,
            before_render=lambda: None,
            ocr=None,
            ocr_seconds_left=lambda: 0.0,
        )

    def __enter__(self) -> InProcessPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to end."""

    def check(self) -> None:
        """It works."""

    def parse_many(self, tasks: Iterable[ParseTask]) -> Iterator[ParseReport]:
        """One report a task."""
        for task in tasks:
            data = task.path.read_bytes()
            claimed = "text/html" if (task.name or "").endswith(".html") else "text/plain"
            if (data, claimed) not in _PARSED:
                _PARSED[data, claimed] = (
                    parse_document(data, self._context, claimed=claimed)
                    if data and not data.startswith(b"\0")
                    else ParseFailure("empty" if not data else "unreadable", "told by the test")
                )
            outcome = _PARSED[data, claimed]
            yield ParseReport(
                task.key, outcome, hashlib.sha256(data).hexdigest(), 0.001, 0.001, 1, cacheable=True
            )


@dataclass(frozen=True)
class Walk:
    """What one pass through all stages reported."""

    scan: ScanReport
    parse: ParseStageReport
    freeze: FreezeReport
    submit: SubmitReport
    collect: CollectReport
    judge: JudgeReport
    publish: PublishReport


@dataclass(frozen=True)
class Shop:
    """A folder of documents and the context to process it in."""

    folder: Path
    context: Context

    def write(self, name: str, text: str | bytes) -> None:
        """Put a document into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def fill(self) -> Shop:
        """Put the five usual documents into the folder: two to publish, three to exclude."""
        self.write(PUMP, manual("Circulation Pump", "WP-100"))
        self.write(FAN, html(manual("Ventilator", "VF-20")))
        self.write(COPY, manual("Circulation Pump", "WP-100"))
        self.write(EMPTY, b"")
        self.write(GARBAGE, bytes(range(256)) * 20)
        return self

    def version(self) -> OpenVersion:
        """The version, open for work."""
        return open_version(self.context, KEY)

    def ingest(self) -> OpenVersion:
        """Scan and parse."""
        scan_declared(self.context)
        version = self.version()
        parse_documents(self.context, parser_settings(version.spec), version.spec.workload)
        return version

    def prepare(self) -> OpenVersion:
        """Scan, parse and freeze."""
        version = self.ingest()
        freeze_manifest(self.context, version)
        return version

    def accept(self) -> OpenVersion:
        """Everything up to judged records, none of them published."""
        version = self.prepare()
        submit_batches(self.context, version)
        collect_batches(self.context, version)
        judge_batches(self.context, version)
        return version

    def walk(self) -> Walk:
        """Every stage, in order."""
        (scan,) = scan_declared(self.context)
        version = self.version()
        return Walk(
            scan=scan,
            parse=parse_documents(
                self.context, parser_settings(version.spec), version.spec.workload
            ),
            freeze=freeze_manifest(self.context, version),
            submit=submit_batches(self.context, version),
            collect=collect_batches(self.context, version),
            judge=judge_batches(self.context, version),
            publish=publish_accepted(self.context, version),
        )

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """Every row of a table, in the order of its key."""
        with self.context.ledger.read() as connection:
            found = connection.execute(select(table).order_by(*table.primary_key.columns))
            return [dict(row._mapping) for row in found]

    def counts(self) -> dict[str, int]:
        """Rows of every table, and of the search."""
        with self.context.ledger.read() as connection:
            found = {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in metadata.sorted_tables
            }
        return found | {"search": len(self.searchable())}

    def searchable(self) -> set[int]:
        """Numbers of the entries that the search holds."""
        with self.context.ledger.read() as connection:
            return set(self.context.ledger.dialect.search_entries(connection)["entry_no"])

    def search(self, words: str) -> list[int]:
        """Numbers of the entries that hold the words."""
        with self.context.ledger.read() as connection:
            found = self.context.ledger.dialect.search(connection, query_terms(words), 100)
        return sorted(entry for entry, _ in found)

    def query(self, sql: str, schema: dict[str, Any]) -> pl.DataFrame:
        """The rows of a query."""
        with self.context.ledger.read() as connection:
            return self.context.ledger.dialect.fetch(connection, sql, schema)

    def states(self) -> dict[str, str]:
        """Each record's state, by document."""
        return dict(
            self.query(
                "SELECT d.document_id, s.state FROM records r "
                "JOIN record_state s ON s.record_no = r.record_no "
                "JOIN documents d ON d.document_no = r.document_no ORDER BY r.record_no",
                {"document_id": pl.String, "state": pl.String},
            ).iter_rows()
        )

    def archive(self) -> list[tuple[object, ...]]:
        """What is published, without anything that depends on the run."""
        frame = self.query(
            "SELECT d.document_id, e.archive_version, e.content, e.content_digest, e.thumbnail, "
            "CASE WHEN e.valid_to IS NULL THEN 1 ELSE 0 END, "
            "CASE WHEN h.entry_no = e.entry_no THEN 1 ELSE 0 END, e.entry_no "
            "FROM archive_entries e JOIN documents d ON d.document_no = e.document_no "
            "LEFT JOIN archive_heads h ON h.document_no = e.document_no",
            {
                "document_id": pl.String,
                "archive_version": pl.Int64,
                "content": pl.String,
                "content_digest": pl.String,
                "thumbnail": pl.String,
                "visible": pl.Int64,
                "is_head": pl.Int64,
                "entry_no": pl.Int64,
            },
        )
        found = frame.with_columns(
            searchable=pl.col("entry_no").is_in(sorted(self.searchable()))
        ).drop("entry_no")
        return sorted(found.rows())
