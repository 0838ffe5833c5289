"""Rows of a table through every stage: the packaged tickets, one's own workload, a refused one."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import func, select

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.export import export_entries
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from pipeline_assets.workloads.admission import RULES, NotAdmitted
from pipeline_assets.workloads.registry import InvalidWorkload
from resources.context import Context, open_context
from resources.ledger.schema import attempts, batches, manifests, processing_versions, records
from resources.settings import load_settings
from tests.support.clock import FrozenClock
from tests.support.command import one_json, tallybook

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGED = REPOSITORY / "pipeline_assets" / "workloads" / "support_tickets"
KEY, OWN_KEY, OWN = "tickets-baseline-1", "desk-baseline-1", "complaints_desk"
SOURCES = """sources:
  tickets:
    kind: table
    path: {table}
    key: ticket_id
    text: [subject, body]
    changed: updated
    workload: {workload}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder with a copy of the packaged workload, its own name, version and source."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGED, tmp_path / "workloads" / OWN, ignore=ignored)
    (tmp_path / "specs").mkdir()
    spec = (PACKAGED_SPECS / f"{KEY}.yaml").read_text(encoding="utf-8")
    spec = spec.replace("support_tickets", OWN).replace(KEY, OWN_KEY)
    (tmp_path / "specs" / f"{OWN_KEY}.yaml").write_text(spec, encoding="utf-8")
    write_sources(tmp_path, OWN)
    return tmp_path


def write_sources(home: Path, workload: str) -> None:
    table = REPOSITORY / "data" / "tickets.csv"
    text = SOURCES.format(table=json.dumps(str(table)), workload=workload)
    (home / "sources.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def context(home: Path, frozen_clock: FrozenClock, rng: random.Random) -> Iterator[Context]:
    """Return an open context whose sources, specs and workloads are in `home`."""
    settings = load_settings(
        state=home / "state",
        sources=home / "sources.yaml",
        specs=home / "specs",
        workloads=home / "workloads",
    )
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        yield opened


def process(context: Context, key: str) -> OpenVersion:
    """Every stage, in order."""
    scan_declared(context)
    version = open_version(context, key)
    parse_documents(context, parser_settings(version.spec), version.spec.workload)
    freeze_manifest(context, version)
    submit_batches(context, version)
    collect_batches(context, version)
    judge_batches(context, version)
    publish_accepted(context, version)
    return version


def published(context: Context) -> dict[str, dict[str, str | None]]:
    """Document → field → value of what the archive shows."""
    return {
        row["document_id"]: {
            name: row[name]["value"]
            for name in ("category", "priority", "product", "language", "summary")
        }
        for row in export_entries(context)
    }


def count(context: Context, *tables: object) -> list[int]:
    with context.ledger.read() as connection:
        return [
            connection.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[arg-type]
            for table in tables
        ]


def states(context: Context) -> dict[str, int]:
    with context.ledger.read() as connection:
        found = context.ledger.dialect.fetch(
            connection,
            "SELECT state, COUNT(*) AS n FROM record_state GROUP BY state",
            {"state": pl.String, "n": pl.Int64},
        )
    return dict(found.iter_rows())


def labels() -> dict[str, dict[str, str]]:
    with (REPOSITORY / "data" / "tickets-labels.csv").open(encoding="utf-8", newline="") as opened:
        return {f"tickets/{row['ticket_id']}": row for row in csv.DictReader(opened)}


def wrong(told: dict[str, dict[str, str | None]]) -> list[tuple[str, str]]:
    """Published fields that are not what the labels say, and tickets that need a person."""
    known = labels()
    return [
        (document, name)
        for document, values in told.items()
        for name in ("category", "priority", "product", "language", "person")
        if (values.get(name) or "") not in known[document][name].split("|")
    ]


def test_own_workload_from_its_table_to_the_archive(context: Context) -> None:
    version = process(context, OWN_KEY)
    assert version.workload.name == OWN
    told = published(context)
    assert len(told) >= 40
    assert wrong(told) == []
    found = states(context)
    assert found["published"] == len(told)
    assert set(found) == {"published", "awaiting_review"}
    assert sum(found.values()) == len(labels()) - 1, "all but the empty one"


@pytest.mark.slow
def test_the_packaged_one_publishes_the_same(
    home: Path, context: Context, frozen_clock: FrozenClock, rng: random.Random
) -> None:
    process(context, OWN_KEY)
    own = published(context)
    write_sources(home, "support_tickets")
    settings = load_settings(state=home / "packaged", sources=home / "sources.yaml")
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        process(opened, KEY)
        assert published(opened) == own


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_frozen_or_sent_for_a_refused_one(
    rule: str, home: Path, context: Context
) -> None:
    module = home / "workloads" / OWN / "workload.py"
    text = module.read_text(encoding="utf-8")
    refused = text.replace(f"{rule}=Kept(", f"{rule}=_not(").replace(
        "ADMISSION = ",
        "def _not(holds, because):\n    return Kept(False, 'a clerk waits')\n\n\nADMISSION = ",
    )
    assert refused != text
    module.write_text(refused, encoding="utf-8")
    with pytest.raises(NotAdmitted, match="a clerk waits") as error:
        process(context, OWN_KEY)
    assert error.value.rule == rule
    assert count(context, processing_versions, manifests, records, batches, attempts) == [0] * 5


@pytest.mark.slow
def test_one_that_cannot_be_used_ends_in_one_line(home: Path) -> None:
    (home / "workloads" / OWN / "canary.py").write_text("CANARY_TICKETS = (\n", encoding="utf-8")
    result = tallybook(
        "run",
        "--version",
        OWN_KEY,
        "--state",
        home / "state",
        cwd=home,
        TALLYBOOK_SOURCES=str(home / "sources.yaml"),
        TALLYBOOK_SPECS=str(home / "specs"),
        TALLYBOOK_WORKLOADS=str(home / "workloads"),
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "canary.py, line 1" in " ".join(result.stderr.split())


def test_files_of_a_folder_can_be_tickets(
    home: Path, context: Context, frozen_clock: FrozenClock, rng: random.Random
) -> None:
    """A source of another kind needs no other workload."""
    folder = home / "mails"
    folder.mkdir()
    (folder / "one.txt").write_text("My parcel was never delivered.", encoding="utf-8")
    settings = load_settings(
        state=home / "files", source=folder, source_workload=OWN, workloads=home / "workloads"
    ).model_copy(update={"specs": home / "specs"})
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        scan_declared(opened)
        version = open_version(opened, OWN_KEY)
        assert version.workload.name == OWN


def test_a_broken_file_is_told_when_a_version_is_opened(home: Path, context: Context) -> None:
    (home / "workloads" / OWN / "answer.py").unlink()
    with pytest.raises(InvalidWorkload, match="No module named"):
        open_version(context, OWN_KEY)
    assert count(context, processing_versions) == [0]


@pytest.mark.slow
def test_the_command_runs_the_tickets_of_the_repository(tmp_path: Path) -> None:
    done = tallybook(
        "run", "--version", KEY, "--state", tmp_path / "state", "--json", cwd=REPOSITORY
    )
    assert done.returncode == 3, done.stderr
    report = tallybook(
        "report", "--version", KEY, "--state", tmp_path / "state", "--json", cwd=REPOSITORY
    )
    told = one_json(report.stdout)
    assert (told["documents"], told["expected"]) == (57, 56)
    assert set(told["states"]) >= {"published", "awaiting_review"}
    assert told["states"]["published"] >= 40
