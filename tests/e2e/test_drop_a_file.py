"""A file is dropped into a folder, and Dagster does the rest: published, replaced, withdrawn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pipeline_assets.automation.switches import AUTOMATION
from resources.context import open_context
from resources.settings import Settings, load_settings
from tests.integration.stages.support import KEY, manual
from tests.support.command import one_json
from tests.support.living_dagster import LivingDagster, living_dagster

pytestmark = pytest.mark.slow

ALWAYS_ON = {"alert_sender", "run_failure_alert", "run_success_clears_alert"}
LIMIT_S = 150.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "sources.yaml").write_text(
        "sources:\n  shop:\n    kind: folder\n    path: inbox\n"
        f"    workload: equipment_manuals\n    version: {KEY}\n"
        "    removed: withdraw\n    allow_empty: true\n"
    )
    return load_settings(
        state=tmp_path / "state", sources=tmp_path / "sources.yaml", parser_workers=1
    )


@pytest.fixture
def dagster(settings: Settings, tmp_path: Path) -> Iterator[LivingDagster]:
    with living_dagster(settings, tmp_path / "dagster.log") as found:
        yield found


def entries(settings: Settings, document: str) -> list[tuple[str, bool]]:
    """The bytes that each entry of a document is of, oldest first, and is it visible?"""
    with open_context(settings) as context, context.ledger.read() as connection:
        return (
            context.ledger.dialect.fetch(
                connection,
                "SELECT r.checksum, CASE WHEN e.valid_to IS NULL THEN 1 ELSE 0 END "
                "FROM archive_entries e "
                "JOIN records r ON r.record_no = e.record_no "
                "JOIN documents d ON d.document_no = e.document_no "
                "WHERE d.document_id = ? ORDER BY e.archive_version",
                {"checksum": pl.String, "visible": pl.Int64},
                (document,),
            )
            .cast({"visible": pl.Boolean})
            .rows()
        )


def test_a_dropped_file_is_published_replaced_and_withdrawn(
    dagster: LivingDagster, settings: Settings, tmp_path: Path
) -> None:
    stopped = {name for name, status in dagster.switches().items() if status == "STOPPED"}
    assert stopped == {*AUTOMATION, "outlet_sender"}

    dagster.command("automation", "on")
    running = {name for name, status in dagster.switches().items() if status == "RUNNING"}
    assert running == {*AUTOMATION, *ALWAYS_ON}

    # Written in two steps, by a writer that pauses for longer than the source asks for.
    path = tmp_path / "inbox" / "pump.txt"
    text = manual("Circulation Pump", "WP-100")
    with path.open("w", encoding="utf-8") as writing:
        for part in (text[:200], text[200:]):
            writing.write(part)
            writing.flush()
            os.fsync(writing.fileno())
            time.sleep(8)
    took = dagster.wait_for(
        "published", lambda: len(entries(settings, "shop/pump.txt")) == 1, LIMIT_S
    )
    print(f"published after {took:.0f} s")
    shown = one_json(dagster.command("show", "shop/pump.txt", "--json"))
    assert shown["document_id"] == "shop/pump.txt"
    ((checksum, visible),) = entries(settings, "shop/pump.txt")
    assert visible

    told = one_json(dagster.command("automation", "status", "--json"))
    assert told["daemon"] is True
    ticked = {each["name"]: each["outcome"] for each in told["automation"] if each["last_tick"]}
    assert ticked.keys() >= {"new_source_files", "new_processing_versions", "retry_due"}
    assert "failure" not in ticked.values()
    assert not any(each["error"] for each in told["automation"])

    path.write_text(manual("Circulation Pump", "WP-101"), encoding="utf-8")
    took = dagster.wait_for(
        "replaced", lambda: len(entries(settings, "shop/pump.txt")) == 2, LIMIT_S
    )
    print(f"replaced after {took:.0f} s")
    (former, present) = entries(settings, "shop/pump.txt")
    assert former == (checksum, False)
    assert present[0] != checksum
    assert present[1]

    path.unlink()
    took = dagster.wait_for(
        "withdrawn",
        lambda: not any(shown for _, shown in entries(settings, "shop/pump.txt")),
        LIMIT_S,
    )
    print(f"withdrawn after {took:.0f} s")
    dagster.wait_for(
        "runs are over",
        lambda: all(run["status"] in ("SUCCESS", "FAILURE") for run in dagster.runs()),
    )
    runs = dagster.runs()
    assert {run["status"] for run in runs} == {"SUCCESS"}
    asked = [
        run["tags"].get("tallybook/why") for run in runs if run["jobName"] == "process_version"
    ]
    assert asked == ["removed", "changed", "new"]

    dagster.command("automation", "off")
    assert not any(
        status == "RUNNING" and name not in ALWAYS_ON for name, status in dagster.switches().items()
    )
