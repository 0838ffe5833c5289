"""What comes after a fault: due retries until nothing is tried again, and three facts at the end.

Belongs here: rounds of retries over a `ProviderWalk`, and the checks that hold at the end of every
life of a batch, read from stored evidence alone. Does not belong here: which fault is planted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import yaml

from partitions import processing_version
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.audit.run import audit
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.collect.evidence import Verified, reconcile_batch
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.prepare.retries import RetryReport, freeze_retries
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.recovery.retry import LONGEST_DELAY
from pipeline_assets.versions import open_version
from resources.context import Context
from resources.contracts import MANIFEST, read_frame
from resources.ledger.batches import COMPLETE, find_batches
from tests.integration.stages.support import Shop
from tests.support.provider_walk import ProviderWalk

PACKAGED = Path(processing_version.__file__).parent / "versions"
ROUNDS = 12
"""More rounds of retries than any limit allows: one that needs them all never ends."""
TERMINAL = frozenset({"published", "rejected", "discarded", "cancelled", "superseded"})
NAMED = frozenset({"awaiting_review", "dead_letter", "retry_wait", "prepared"})
"""States that say what a record waits for; `prepared` only while its version may not send."""
DISPOSITIONS = frozenset(
    {"succeeded", "retryable_failure", "permanent_failure", "cancelled", "expired"}
)
FIELDS = ("title", "product_identifiers", "language", "description")


def freeze_due(walk: ProviderWalk) -> RetryReport:
    """Let the time of every waiting retry come, and freeze what is due."""
    walk.advance(LONGEST_DELAY.total_seconds() + 60)
    return freeze_retries(walk.context, open_version(walk.context, walk.key))


def try_again(walk: ProviderWalk) -> list[RetryReport]:
    """Settle, freeze what is due, settle again, until nothing is; what each round froze."""
    made: list[RetryReport] = []
    for _ in range(ROUNDS):
        walk.settle()
        report = freeze_due(walk)
        if report.manifest_id is None:
            return made
        made.append(report)
    raise AssertionError(f"it is tried again without end: {made}")


def shop_of(walk: ProviderWalk) -> Shop:
    """The same ledger and folder with the questions that a shop answers."""
    return Shop(walk.context.settings.source_folder, walk.context)


def attempts_of(walk: ProviderWalk) -> pl.DataFrame:
    """Every attempt at a record, in order: document, what it did differently, what it came to.

    Returns:
        document_id, attempt_no, parent_attempt_no, ordinal, path, replay_reason, disposition,
        failure_class, counted, custom_id.
    """
    return shop_of(walk).query(
        "SELECT d.document_id, a.attempt_no, a.parent_attempt_no, a.ordinal, a.recovery_path, "
        "m.replay_reason, p.disposition, p.failure_class, t.counted, "
        "b.batch_key || '-' || CAST(a.attempt_no - b.first_attempt_no AS VARCHAR) "
        "FROM attempts a JOIN batches b ON b.batch_no = a.batch_no "
        "JOIN manifests m ON m.manifest_no = b.manifest_no "
        "JOIN records r ON r.record_no = a.record_no "
        "JOIN documents d ON d.document_no = r.document_no "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no "
        "LEFT JOIN retry_decisions t ON t.attempt_no = a.attempt_no ORDER BY a.attempt_no",
        {
            "document_id": pl.String,
            "attempt_no": pl.Int64,
            "parent_attempt_no": pl.Int64,
            "ordinal": pl.Int64,
            "path": pl.String,
            "replay_reason": pl.String,
            "disposition": pl.String,
            "failure_class": pl.String,
            "counted": pl.Int64,
            "custom_id": pl.String,
        },
    )


def check_three_facts(walk: ProviderWalk) -> None:
    """What must be provable at the end of every batch's life, whatever happened on the way.

    Every id of every frozen manifest has one disposition; every accepted output is of the output
    schema; reconciling and delivering once more writes nothing.
    """
    check_facts_alone(walk)
    the_audit_finds_nothing(walk.context)


def check_facts_alone(walk: ProviderWalk) -> None:
    """The same without the audit, for a test that changed rows behind the journal's back."""
    _the_account_adds_up(walk)
    _every_manifest_id_has_one_disposition(walk)
    _every_accepted_output_passes_the_schema(walk)
    _replaying_writes_nothing(walk)


def the_audit_finds_nothing(context: Context) -> None:
    """Whatever happened: all that is stored fits together, down to the last hash."""
    report = audit(context)
    assert report.findings == ()
    assert report.left_out == ()


def paid(walk: ProviderWalk) -> dict[str, int]:
    """Custom id of an attempt at a record → how often the provider ran it."""
    ran = walk.world.executed[walk.provider]
    own = set(attempts_of(walk)["custom_id"])
    return {name: count for name, count in ran.items() if name in own}


def _the_account_adds_up(walk: ProviderWalk) -> None:
    """Nothing wrong is published, nothing is run twice, and what is open is said to be so."""
    for document, title in walk.published().items():
        assert title == walk.titles[document]
    assert set(paid(walk).values()) <= {1}
    report = walk.report()
    assert report.violations == ()
    assert sum(report.states.values()) == len(walk.titles)
    assert walk.status().done == (set(report.states) <= TERMINAL)


def _every_manifest_id_has_one_disposition(walk: ProviderWalk) -> None:
    shop = shop_of(walk)
    manifests = shop.query(
        "SELECT manifest_id, artifact FROM manifests ORDER BY manifest_no",
        {"manifest_id": pl.String, "artifact": pl.String},
    )
    found = shop.query(
        "SELECT m.manifest_id, r.record_id, s.state, b.state, p.disposition FROM attempts a "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "JOIN manifests m ON m.manifest_no = b.manifest_no "
        "JOIN records r ON r.record_no = a.record_no "
        "JOIN record_state s ON s.record_no = r.record_no "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no",
        dict.fromkeys(("manifest_id", "record_id", "state", "batch", "disposition"), pl.String),
    )
    assert not manifests.is_empty()
    for manifest_id, artifact in manifests.iter_rows():
        path = walk.context.artifacts.require("manifest", artifact)
        frozen = read_frame(MANIFEST, path)["record_id"].to_list()
        rows = found.filter(pl.col("manifest_id") == manifest_id)
        assert sorted(rows["record_id"]) == sorted(frozen), "each id of the manifest once"
        complete = rows.filter(pl.col("batch").is_in(COMPLETE))
        assert set(complete["disposition"]) <= DISPOSITIONS, "null is none"
        assert set(rows["state"]) <= TERMINAL | NAMED
        waiting = rows.filter(~pl.col("batch").is_in(COMPLETE))
        assert set(waiting["state"]) <= {"prepared", "cancelled"}, "nothing was sent of it"


def _every_accepted_output_passes_the_schema(walk: ProviderWalk) -> None:
    """Checked against the schema by hand: the code that let it pass proves nothing here."""
    shop = shop_of(walk)
    archive = shop.query("SELECT content FROM archive_entries", {"content": pl.String})
    assert archive.height == len(walk.published())
    for content in archive["content"]:
        values = msgspec.json.decode(content)
        assert set(values) - {"document"} == set(FIELDS)
        for name in ("title", "language", "description"):
            _check_field(values[name])
        for value in values["product_identifiers"]:
            _check_field(value)


def _check_field(field: dict[str, Any]) -> None:
    assert set(field) == {"value", "status", "evidence"}
    assert field["status"] in ("found", "absent", "uncertain")
    assert field["value"] is None or isinstance(field["value"], str)
    assert (field["value"] is None) == (field["status"] == "absent")
    for quote in field["evidence"]:
        assert set(quote) == {"page", "quote"}
        assert isinstance(quote["page"], int)
        assert isinstance(quote["quote"], str)


def _replaying_writes_nothing(walk: ProviderWalk) -> None:
    context, shop = walk.context, shop_of(walk)
    version = open_version(context, walk.key)
    # What closes by itself once its last retry is over may do so now.
    collect_batches(context, version)
    before, archive = shop.counts(), shop.archive()
    for batch in find_batches(context.ledger, version.version_no, COMPLETE):
        again = reconcile_batch(context, version, batch, Verified()).dispositions
        stored = shop.query(
            "SELECT attempt_no, disposition, failure_class FROM dispositions "
            f"WHERE attempt_no BETWEEN {batch.first_attempt_no} AND {batch.last_attempt_no} "
            "ORDER BY attempt_no",
            {"attempt_no": pl.Int64, "disposition": pl.String, "failure_class": pl.String},
        )
        assert again.select(stored.columns).sort("attempt_no").rows() == stored.rows()
    freeze_manifest(context, version)
    collected = collect_batches(context, version)
    judged = judge_batches(context, version)
    published = publish_accepted(context, version)
    assert (collected.batches, judged.batches, published.published) == (0, 0, 0)
    assert shop.counts() == before
    assert shop.archive() == archive


def spec_like(packaged: str, folder: Path, key: str, **changes: Any) -> Path:
    """A folder with a packaged spec under another key, with some of its members changed.

    Members of `request` are changed one by one, the others as a whole.
    """
    spec = yaml.safe_load((PACKAGED / f"{packaged}.yaml").read_text(encoding="utf-8"))
    spec["request"] |= changes.pop("request", {})
    folder.mkdir()
    text = yaml.safe_dump(spec | {"key": key} | changes)
    (folder / f"{key}.yaml").write_text(text, encoding="utf-8")
    return folder
