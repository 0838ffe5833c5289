"""A folder whose source says what becomes of removed documents."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import func, select

from pipeline_assets.account.health import look
from pipeline_assets.account.report import build_report
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.publish.withdraw import WithdrawReport, withdraw_removed
from resources.ledger.schema import attempts, record_state
from resources.ledger.search_text import query_terms
from tests.integration.publish.support import ONE, Stall

SOURCES = """
sources:
  shop:
    kind: folder
    path: {folder}
    workload: equipment_manuals
    removed: {removed}
    allow_empty: true
"""


@dataclass(frozen=True)
class Market(Stall):
    """A folder whose removed documents are withdrawn, or kept."""

    def declare(self, removed: str) -> None:
        """Declare the folder with a policy."""
        self.context.settings.sources_file.write_text(
            SOURCES.format(folder=self.folder, removed=removed), encoding="utf-8"
        )

    def remove(self, name: str) -> None:
        """Take a document out of the folder."""
        (self.folder / name).unlink()

    def scan(self) -> None:
        """Take a snapshot alone."""
        self.clock.advance(1)
        scan_declared(self.context)

    def withdraw(self, key: str = ONE) -> WithdrawReport:
        """Withdraw what was removed, and take up what came back."""
        self.clock.advance(1)
        return withdraw_removed(self.context, self.version(key))

    def settle(self, key: str = ONE) -> WithdrawReport:
        """Everything, as a run of the version does it."""
        self.accept(key)
        report = self.withdraw(key)
        self.publish(key)
        return report

    def states(self, key: str = ONE) -> dict[str, list[str]]:
        """The states of each document's records under a version, by record."""
        rows = self.query(
            "SELECT d.document_id, s.state FROM records r "
            "JOIN record_state s ON s.record_no = r.record_no "
            "JOIN processing_versions v ON v.version_no = r.version_no "
            f"AND v.key = '{key}' JOIN documents d ON d.document_no = r.document_no "
            "ORDER BY r.record_no",
            {"document_id": pl.String, "state": pl.String},
        )
        found: dict[str, list[str]] = {}
        for document, state in rows.iter_rows():
            found.setdefault(document, []).append(state)
        return found

    def attempts(self) -> int:
        """How often a model was asked about anything."""
        with self.context.ledger.read() as connection:
            return connection.execute(select(func.count()).select_from(attempts)).scalar_one()

    def found(self, words: str) -> int:
        """How many entries the search has for some words."""
        with self.context.ledger.read() as connection:
            return len(self.context.ledger.dialect.search(connection, query_terms(words), 10))

    def require_sound(self, key: str = ONE) -> None:
        """Fail where the account, the archive or the journal does not add up."""
        self.require_whole()
        self.shown()
        report = build_report(self.context, key)
        assert not report.violations, report.violations
        assert [problem.kind for problem in look(self.context)] == []

    def put_in_state(self, record_no: int, state: str) -> None:
        """Make a published record one of another state, as if the pipeline had led it there."""
        with self.context.ledger.write() as connection:
            connection.execute(
                record_state.update()
                .where(record_state.c.record_no == record_no)
                .values(state=state)
            )
