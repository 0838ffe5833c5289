"""A version whose records, answers and judgements are written straight into the ledger.

Belongs here: making many of them at once, and what a reviewer would do. Does not belong here: what
must come of it.
"""

from __future__ import annotations

from collections import Counter

import polars as pl
from sqlalchemy import update

from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.quality.draw import DrawReport, draw_sample
from pipeline_assets.quality.error_rates import ErrorRates, error_rates
from pipeline_assets.versions import open_version
from resources.context import Context
from resources.ledger.schema import (
    attempts,
    batches,
    judgements,
    parses,
    record_state,
    records,
    reviews,
)
from tests.integration.ledger.support import AT, DIGEST, make_batch

KEY = "manuals-baseline-2"
SCAN, GERMAN = "any/short/ocr", "de/short/text"


class Judged:
    """Adds judged records to a version, batch by batch, and looks at its samples."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.ledger = context.ledger
        self.version = open_version(context, KEY)
        self._batches = self._records = self._attempts = 0

    def add(
        self, count: int, *, state: str = "accepted", outcome: str = "accepted", notes: str = ""
    ) -> list[int]:
        """A batch of German leaflets; with the note `ocr`, of scans. Return their numbers."""
        first = self._records + 1
        self._records += count
        numbers = range(first, first + count)
        frame = pl.DataFrame({"record_no": numbers}, schema={"record_no": pl.Int64}).with_columns(
            record_id=pl.format("w:d{}@c:v", "record_no"),
            version_no=self.version.version_no,
            document_no="record_no",
            source_version_no="record_no",
            checksum=pl.format("{}", "record_no").str.pad_start(64, "0"),
            operation=pl.lit("extract"),
            replay_reason=pl.lit("new_source"),
            manifest_no=self._batches + 1,
        )
        stand = frame.select("record_no", state=pl.lit(state), version=1, shard=0)
        key = parser_settings(self.version.spec).key
        texts = frame.select(
            "checksum",
            parser_key=pl.lit(key),
            detail=pl.lit(""),
            page_count=3,
            language=pl.lit("de"),
            languages=pl.lit("de"),
            partial=0,
            notes=pl.lit(notes),
            wall_ms=1,
            cpu_ms=1,
            peak_rss_bytes=1,
            cacheable=1,
            parsed_at=pl.lit(AT),
        )
        with self.ledger.write() as connection:
            for table, rows in ((records, frame), (record_state, stand), (parses, texts)):
                self.ledger.dialect.load(connection, table, rows)
        self.answer(list(numbers), outcome=outcome)
        return list(numbers)

    def answer(self, numbers: list[int], *, outcome: str = "accepted") -> None:
        """Another judged answer of records, in a batch of its own."""
        self._batches += 1
        first = self._attempts + 1
        self._attempts += len(numbers)
        frame = pl.DataFrame(
            {"record_no": numbers, "attempt_no": range(first, first + len(numbers))},
            schema={"record_no": pl.Int64, "attempt_no": pl.Int64},
        )
        tries = frame.with_columns(
            batch_no=self._batches,
            ordinal=1,
            recovery_path=pl.lit("first"),
            request_digest=pl.lit(DIGEST),
            request_offset=0,
            request_length=1,
        )
        verdicts = frame.with_columns(
            outcome=pl.lit(outcome),
            values_digest=pl.format("{}", "attempt_no").str.pad_start(64, "0"),
        )
        with self.ledger.write() as connection:
            make_batch(connection, self.ledger, self._batches, self.version.version_no)
            connection.execute(
                update(batches)
                .where(batches.c.batch_no == self._batches)
                .values(first_attempt_no=first, last_attempt_no=self._attempts)
            )
            self.ledger.dialect.load(connection, attempts, tries)
            self.ledger.dialect.load(connection, judgements, verdicts)

    def draw(self, seed: int | None = None) -> DrawReport:
        """Draw a sample."""
        return draw_sample(self.context, self.version, "a test", "tester", seed=seed)

    def drawn(self) -> list[int]:
        """Records that are in samples, each as often as it was drawn."""
        with self.ledger.read() as connection:
            rows = connection.execute(reviews.select().order_by(reviews.c.record_no)).all()
        assert {row.kind for row in rows} <= {"quality_sample"}
        return [row.record_no for row in rows]

    def decide(self, decision: str, count: int, *, slice_name: str = GERMAN) -> None:
        """Decide so many of a slice's waiting reviews."""
        with self.ledger.write() as connection:
            waiting = connection.execute(
                reviews.select()
                .where(reviews.c.decision.is_(None), reviews.c.slice == slice_name)
                .order_by(reviews.c.review_no)
                .limit(count)
            ).all()
            assert len(waiting) == count
            connection.execute(
                update(reviews)
                .where(reviews.c.review_no.in_([row.review_no for row in waiting]))
                .values(decision=decision, decided_at=AT, reviewer="a reviewer", reason="seen")
            )

    def rates(self) -> ErrorRates:
        """The error rates now."""
        with self.ledger.read() as connection:
            found = error_rates(connection, self.ledger, self.version.version_no)
        assert found is not None
        return found

    def slices(self) -> Counter[str]:
        """Drawn answers by slice."""
        return Counter({entry.slice: entry.drawn for entry in self.rates().by_slice})
