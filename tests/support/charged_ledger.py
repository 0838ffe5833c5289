"""A ledger of attempts that are written by hand, so that a cost can be worked out on paper.

Belongs here: the rows that charges are read from. Does not belong here: what must come of them,
and rows as the stages write them (`provider_walk.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Table

from resources.context import Context
from resources.ledger import schema
from resources.ledger.job_prices import JobPrice, store_price
from resources.providers.prices import Rate

KEY = "by-hand-1"
AT = "2026-11-02T08:00:00.000000Z"
DIGEST = "0" * 64
PARSER = {"version": "1", "max_pages": 2000, "ocr_pages": 12}
"""Of the spec, as far as reading needs it."""


@dataclass
class ChargedLedger:
    """One version with batches whose attempts are added one by one.

    Attributes:
        context: open, on an empty ledger.
        version_no: of the version.
    """

    context: Context
    version_no: int = 1
    attempts: int = 0
    records: dict[str, int] = field(default_factory=dict)

    def begin(self) -> ChargedLedger:
        """Write the version and its manifest."""
        self._add(
            schema.processing_versions,
            version_no=1,
            key=KEY,
            workload="equipment_manuals",
            digest=DIGEST,
            spec=json.dumps({"parser": PARSER}),
            state="active",
            state_reason="",
            frozen_at=AT,
        )
        self._add(
            schema.manifests,
            manifest_no=1,
            manifest_id=f"{KEY}-m1",
            version_no=1,
            contract_version="1",
            digest=DIGEST,
            expected=0,
            artifact=DIGEST,
            replay_reason="new_source",
            frozen_at=AT,
        )
        return self

    def batch(self, number: int, size: int, **changes: Any) -> None:
        """A batch with room for so many attempts; settled at OpenAI unless `changes` say else."""
        self._add(
            schema.batches,
            **(
                {
                    "batch_no": number,
                    "batch_id": f"{KEY}-m1-b{number}",
                    "batch_key": f"{number:012x}",
                    "manifest_no": 1,
                    "version_no": 1,
                    "manifest_digest": DIGEST,
                    "provider": "openai",
                    "mode": "batch",
                    "model": "gpt-5-mini",
                    "request_schema_version": 1,
                    "request_artifact": DIGEST,
                    "request_bytes": 1,
                    "state": "completed",
                    "submitted_at": AT,
                    "polls": 0,
                    "expected_records": size,
                    "reconciled_records": size,
                    "first_attempt_no": self.attempts + 1,
                    "last_attempt_no": self.attempts + size,
                    "prepared_at": AT,
                }
                | changes
            ),
        )

    def attempt(
        self,
        batch: int,
        record: str,
        disposition: str | None = "succeeded",
        tokens: tuple[int | None, int | None, int | None] = (None, None, None),
        *,
        failure: str | None = None,
        line: bool = True,
        path: str = "first",
        state: str = "published",
    ) -> int:
        """An attempt at a record; its number."""
        self.attempts += 1
        number = self.attempts
        if record not in self.records:
            self.records[record] = len(self.records) + 1
            self._record(record, state)
        self._add(
            schema.attempts,
            attempt_no=number,
            batch_no=batch,
            record_no=self.records[record],
            ordinal=1 if path == "first" else 2,
            recovery_path=path,
            request_digest=DIGEST,
            request_offset=0,
            request_length=1,
        )
        if disposition is not None:
            self._add(
                schema.dispositions,
                attempt_no=number,
                disposition=disposition,
                failure_class=failure,
                diagnostics="",
                result_file_no=1 if line else None,
                line=number if line else None,
                **dict(
                    zip(("input_tokens", "output_tokens", "cached_tokens"), tokens, strict=True)
                ),
            )
        return number

    def late(
        self,
        attempt: int,
        record: str,
        tokens: tuple[int | None, int | None, int | None],
        line: int,
    ) -> None:
        """A line that came in for an attempt after its disposition, in file 2."""
        self._add(
            schema.late_results,
            result_file_no=2,
            line=line,
            batch_no=1,
            attempt_no=attempt,
            record_no=self.records[record],
            disposition="succeeded",
            diagnostics="",
            used=0,
            recorded_at=AT,
            **dict(zip(("input_tokens", "output_tokens", "cached_tokens"), tokens, strict=True)),
        )

    def stored_line(self, file_no: int, line: int, artifact: str, offset: int, length: int) -> None:
        """Where a line stands in a stored result file."""
        with self.context.ledger.read() as connection:
            known = connection.execute(
                schema.result_files.select().where(schema.result_files.c.result_file_no == file_no)
            ).first()
        if known is None:
            self._add(
                schema.result_files,
                result_file_no=file_no,
                batch_no=1,
                kind="output",
                artifact=artifact,
                bytes=1,
                lines=1,
                stored_at=AT,
            )
        self._add(
            schema.results,
            result_file_no=file_no,
            line=line,
            line_offset=offset,
            line_length=length,
        )

    def price(self, batch: int, read: Rate, cached: Rate | None, written: Rate) -> None:
        """Keep a batch's rates."""
        kept = JobPrice(
            "openai", "gpt-5-mini", "batch", AT, "batch", "a list 1.0", "", read, cached, written
        )
        with self.context.ledger.write() as connection:
            store_price(connection, "batch", batch, kept)

    def add(self, table: Table, **values: Any) -> None:
        """Any other row."""
        self._add(table, **values)

    def _record(self, name: str, state: str) -> None:
        number = self.records[name]
        self._add(
            schema.records,
            record_no=number,
            record_id=f"equipment_manuals:shop/{name}@000000000000:{KEY}",
            version_no=1,
            document_no=number,
            source_version_no=number,
            checksum=f"{number:064x}",
            operation="extract",
            replay_reason="new_source",
            manifest_no=1,
        )
        self._add(schema.record_state, record_no=number, state=state, version=1, shard=0)

    def _add(self, table: Table, **values: Any) -> None:
        with self.context.ledger.write() as connection:
            connection.execute(table.insert().values(**values))
