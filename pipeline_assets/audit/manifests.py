"""Manifests: the digest over their rows, and the same rows as the ledger has them.

Belongs here: recomputing a manifest's digest from its artifact, comparing it row by row with
attempts and records, and how batches share it out. Does not belong here: the artifact's own bytes
(`artifacts.py`) and those of requests (`requests.py`).
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from pipeline_assets.audit.look import Look
from resources.artifacts import ArtifactMissing
from resources.contracts import MANIFEST, ContractRefused, read_shards
from resources.ledger.manifests import ManifestDigest

DIGEST, ROWS, SHARES = "manifest.digest", "manifest.rows", "manifest.batches"

_MANIFEST_SCHEMA = {
    "manifest_no": pl.Int64,
    "manifest_id": pl.String,
    "digest": pl.String,
    "expected": pl.Int64,
    "artifact": pl.String,
}
_BATCH_SCHEMA = {
    "batch_no": pl.Int64,
    "batch_id": pl.String,
    "manifest_digest": pl.String,
    "expected": pl.Int64,
    "first": pl.Int64,
    "last": pl.Int64,
}
# A replay of single documents notes its reason with each record.
_LEDGER_ROWS = (
    "SELECT r.record_id, d.document_id, r.operation, b.request_schema_version, r.checksum, "
    "a.request_digest, CASE WHEN m.replay_reason = 'by document' THEN r.replay_reason "
    "ELSE m.replay_reason END, a.request_offset, a.request_length FROM attempts a "
    "JOIN batches b ON b.batch_no = a.batch_no JOIN manifests m ON m.manifest_no = b.manifest_no "
    "JOIN records r ON r.record_no = a.record_no "
    "JOIN documents d ON d.document_no = r.document_no "
    "WHERE a.batch_no = ? AND a.attempt_no BETWEEN ? AND ?"
)
_ROW_SCHEMA = {
    "record_id": pl.String,
    "business_key": pl.String,
    "operation": pl.String,
    "schema_version": pl.Int64,
    "source_checksum": pl.String,
    "request_digest": pl.String,
    "replay_reason": pl.String,
    "offset": pl.Int64,
    "length": pl.Int64,
}


def check_manifests(look: Look) -> None:
    """Check every manifest."""
    rows = look.rows(
        "SELECT manifest_no, manifest_id, digest, expected, artifact FROM manifests "  # noqa: S608
        f"WHERE {look.of_version('version_no')} ORDER BY manifest_no",
        _MANIFEST_SCHEMA,
    )
    for manifest in rows.iter_rows(named=True):
        batches = look.rows(
            "SELECT batch_no, batch_id, manifest_digest, expected_records, first_attempt_no, "
            "last_attempt_no FROM batches WHERE manifest_no = ? ORDER BY batch_no",
            _BATCH_SCHEMA,
            manifest["manifest_no"],
        )
        _check_shares(look, manifest, batches)
        _check_rows(look, manifest, batches)


def _check_shares(look: Look, manifest: dict[str, object], batches: pl.DataFrame) -> None:
    name = f"manifest {manifest['manifest_id']}"
    look.findings.looked(SHARES, batches.height)
    total = int(batches["expected"].sum())
    if total != manifest["expected"]:
        look.findings.add(
            SHARES, name, f"its batches expect {total} records", f"{manifest['expected']} of them"
        )
    for number, row in enumerate(batches.iter_rows(named=True), 1):
        subject = f"batch {row['batch_id']}"
        if row["batch_id"] != f"{manifest['manifest_id']}-b{number}":
            look.findings.add(
                SHARES, subject, "its name", f"batch {number} of manifest {manifest['manifest_id']}"
            )
        if row["manifest_digest"] != manifest["digest"]:
            look.findings.add(
                SHARES,
                subject,
                f"manifest digest {row['manifest_digest'][:16]}",
                f"{str(manifest['digest'])[:16]}, as the manifest has it",
            )
        if row["last"] - row["first"] + 1 != row["expected"]:
            look.findings.add(
                SHARES,
                subject,
                f"attempts {row['first']} to {row['last']}",
                f"{row['expected']} of them",
            )


def _check_rows(look: Look, manifest: dict[str, object], batches: pl.DataFrame) -> None:
    name = f"manifest {manifest['manifest_id']}"
    artifact = str(manifest["artifact"])
    try:
        shards = read_shards(MANIFEST, look.context.artifacts.require("manifest", artifact))
        digest, count = ManifestDigest(), 0
        held: dict[int, list[pl.DataFrame]] = {}
        compared: set[int] = set()
        for shard in shards:
            digest.add(shard)
            count += shard.height
            for (batch,), part in shard.group_by("batch", maintain_order=True):
                held.setdefault(int(str(batch)), []).append(part)
            # Rows are sorted by batch, so all batches but the newest one are whole.
            for ordinal in sorted(held)[:-1]:
                _compare(look, batches, ordinal, pl.concat(held.pop(ordinal)))
                compared.add(ordinal)
        for ordinal in sorted(held):
            _compare(look, batches, ordinal, pl.concat(held[ordinal]))
            compared.add(ordinal)
    except ArtifactMissing:
        return  # told with the artifacts
    except (ContractRefused, OSError, pa.ArrowException) as error:
        look.findings.add(DIGEST, name, f"unreadable: {type(error).__name__}", "a manifest's rows")
        return
    for ordinal in sorted(set(range(batches.height)) - compared):
        _compare(look, batches, ordinal, MANIFEST.empty())
    look.findings.looked(DIGEST)
    if digest.hexdigest() != manifest["digest"]:
        look.findings.add(
            DIGEST,
            name,
            f"rows with digest {digest.hexdigest()[:16]}",
            f"{str(manifest['digest'])[:16]}, as it was frozen",
        )
    if count != manifest["expected"]:
        look.findings.add(DIGEST, name, f"{count} rows", f"{manifest['expected']} of them")


def _compare(look: Look, batches: pl.DataFrame, ordinal: int, frozen: pl.DataFrame) -> None:
    """The rows of one batch, as they were frozen and as attempts and records have them."""
    look.findings.looked(ROWS, frozen.height)
    if ordinal >= batches.height:
        look.findings.add(
            ROWS,
            f"batch number {ordinal + 1}",
            f"{frozen.height} frozen rows and no batch",
            "the batch that they are of",
        )
        return
    batch = batches.row(ordinal, named=True)
    known = look.rows(_LEDGER_ROWS, _ROW_SCHEMA, batch["batch_no"], batch["first"], batch["last"])
    columns = list(_ROW_SCHEMA)
    # Nearly always both are the same, row by row; only then nothing has to be matched.
    if frozen.select(columns).equals(known):
        return
    both = (
        frozen.select(columns)
        .with_columns(frozen=pl.lit(value=True))
        .join(
            known.with_columns(known=pl.lit(value=True)),
            on="record_id",
            how="full",
            suffix="_known",
            coalesce=True,
        )
        .sort("record_id")
    )
    for row in both.iter_rows(named=True):
        _tell(look, str(batch["batch_id"]), row)


def _tell(look: Look, batch_id: str, row: dict[str, object]) -> None:
    subject = f"record {row['record_id']} in batch {batch_id}"
    if row["known"] is None:
        look.findings.add(ROWS, subject, "no attempt", "the attempt that its manifest has")
        return
    if row["frozen"] is None:
        look.findings.add(ROWS, subject, "an attempt", "none: its manifest has no such row")
        return
    wrong = [
        name for name in _ROW_SCHEMA if name != "record_id" and row[name] != row[f"{name}_known"]
    ]
    if wrong:
        look.findings.add(
            ROWS,
            subject,
            "; ".join(f"{name} {row[f'{name}_known']}" for name in wrong),
            "; ".join(f"{name} {row[name]}" for name in wrong) + ", as it was frozen",
        )
