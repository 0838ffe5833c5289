"""A folder of documents under three versions, and replays between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.report import Report, build_report
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import FreezeReport, freeze_manifest
from pipeline_assets.prepare.replays import ReplayReport, freeze_replay
from pipeline_assets.replay.model import ReplayRequest
from pipeline_assets.submit.submit_batches import submit_batches
from tests.integration.publish.support import Stall
from tests.integration.stages.support import manual

ONE, TWO, THREE = "manuals-one-1", "manuals-two-1", "manuals-three-1"
"""TWO has other parameters than ONE, and THREE reads fewer pages: another parser's text."""
PUMP, FAN, SAW = "pump.txt", "fan.txt", "saw.txt"
_SEED = "manuals-baseline-1"


def write_specs(folder: Path) -> None:
    """Write the specs of the three versions into a new folder."""
    folder.mkdir()
    text = (PACKAGED_SPECS / f"{_SEED}.yaml").read_text(encoding="utf-8")
    for key, before, after in (
        (ONE, "", ""),
        (TWO, "model: rules-1\n", "model: rules-1\nparameters: {thorough: yes}\n"),
        (THREE, "max_pages: 2000", "max_pages: 1999"),
    ):
        changed = text.replace(before, after) if before else text
        assert before in text
        (folder / f"{key}.yaml").write_text(changed.replace(f"key: {_SEED}", f"key: {key}"))


class Works(Stall):
    """The folder, with what a replay needs besides."""

    def fill(self) -> Works:
        """Put three documents into the folder."""
        self.write(PUMP, manual("Circulation Pump", "WP-100"))
        self.write(FAN, manual("Ventilator", "VF-20"))
        self.write(SAW, manual("Chain Saw", "KS-7"))
        return self

    def replay(
        self,
        from_key: str = ONE,
        to_key: str = TWO,
        *,
        where: str | None = None,
        documents: tuple[str, ...] | None = None,
        reason: str | None = None,
        note: str = "for the test",
        name: str = "r-1",
    ) -> ReplayReport:
        """Carry a replay out up to its frozen manifest."""
        self.clock.advance(1)
        version = self.version(to_key)
        parse_documents(self.context, parser_settings(version.spec), version.spec.workload)
        return freeze_replay(
            self.context, version, request(from_key, where, documents, reason, note, name)
        )

    def freeze(self, key: str) -> FreezeReport:
        """Freeze what is new under a version, as a usual run does."""
        self.clock.advance(1)
        return freeze_manifest(self.context, self.version(key))

    def go_on(self, key: str) -> None:
        """Everything after the manifest."""
        version = self.version(key)
        submit_batches(self.context, version)
        collect_batches(self.context, version)
        judge_batches(self.context, version)
        self.publish(key)

    def states(self, key: str) -> dict[str, tuple[str, str]]:
        """Document → state and reason of its newest record under a version."""
        rows = self.query(
            "SELECT d.document_id, s.state, r.replay_reason FROM records r "
            "JOIN record_state s ON s.record_no = r.record_no "
            "JOIN documents d ON d.document_no = r.document_no "
            "JOIN processing_versions v ON v.version_no = r.version_no "
            f"WHERE v.key = '{key}' ORDER BY r.record_no",
            {"document_id": pl.String, "state": pl.String, "reason": pl.String},
        )
        return {document: (state, reason) for document, state, reason in rows.iter_rows()}

    def excluded(self, key: str) -> dict[str, str]:
        """Document → why it has no record under a version."""
        rows = self.query(
            "SELECT d.document_id, x.reason FROM exclusions x "
            "JOIN documents d ON d.document_no = x.document_no "
            "JOIN processing_versions v ON v.version_no = x.version_no "
            f"WHERE v.key = '{key}'",
            {"document_id": pl.String, "reason": pl.String},
        )
        return dict(rows.iter_rows())

    def report(self, key: str) -> Report:
        """The account of a version."""
        return build_report(self.context, key)

    def count(self, table: str) -> int:
        """Rows of a table."""
        return self.query(f"SELECT COUNT(*) FROM {table}", {"n": pl.Int64}).item()

    def setting(self, key: str, name: str) -> list[tuple[Any, ...]]:
        """Value, reason and actor of every time that an operating setting was set."""
        return self.query(
            "SELECT o.value, o.reason, o.actor FROM operating_settings o "
            "JOIN processing_versions v ON v.version_no = o.version_no "
            f"WHERE v.key = '{key}' AND o.name = '{name}' ORDER BY o.setting_no",
            {"value": pl.String, "reason": pl.String, "actor": pl.String},
        ).rows()


def request(
    from_key: str = ONE,
    where: str | None = None,
    documents: tuple[str, ...] | None = None,
    reason: str | None = None,
    note: str = "for the test",
    name: str = "r-1",
) -> ReplayRequest:
    """A request as the command or a run's configuration makes it."""
    return ReplayRequest(name, from_key, where, documents, reason, note, "ada")
