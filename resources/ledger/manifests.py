"""Frozen manifests: their digest, and storing one with its batches, records and attempts.

Belongs here: the canonical bytes of a manifest, and the one transaction that freezes it. Does
not belong here: choosing records and making requests (`prepare`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl
from sqlalchemy import Connection, func, insert, select

from resources.contracts import MANIFEST, read_shards
from resources.ledger.allocate import next_number
from resources.ledger.engine import Ledger
from resources.ledger.moves import (
    Cause,
    batch_chain,
    create_records,
    move_batch,
    move_records,
)
from resources.ledger.schema import (
    attempts,
    batch_parents,
    batches,
    manifests,
    record_state,
    records,
    renderings,
)
from resources.ledger.transitions import START
from resources.spilled import Rows

FIRST_ATTEMPT = "first"
"""The recovery path of an attempt that recovers nothing."""


class ManifestChanged(Exception):
    """A manifest's stored rows do not have the digest that was frozen."""

    def __init__(self, manifest_id: str, frozen: str, found: str) -> None:
        super().__init__(
            f"manifest {manifest_id} was frozen with digest {frozen[:16]} and now has "
            f"{found[:16]}. A manifest never changes: restore the state folder from a backup; "
            "nothing was reconciled against the changed one."
        )


class ManifestDigest:
    """SHA-256 over canonical rows: JSON arrays of strings and integers, one a line, by record_id.

    The order of the values is that of `contracts.MANIFEST`.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._encoder = msgspec.json.Encoder()

    def add(self, rows: pl.DataFrame) -> None:
        """Add a shard of manifest rows, sorted, in the order of shards."""
        for row in MANIFEST.conform(rows).iter_rows():
            self._digest.update(self._encoder.encode(row))
            self._digest.update(b"\n")

    def hexdigest(self) -> str:
        """The digest of the rows so far."""
        return self._digest.hexdigest()


def verify_manifest(path: Path, manifest_id: str, frozen: str) -> None:
    """Compare a manifest's stored rows with the digest that was frozen.

    Raises:
        ContractRefused: the file is of another contract.
        ManifestChanged: its rows are others.
    """
    digest = ManifestDigest()
    for shard in read_shards(MANIFEST, path):
        digest.add(shard)
    if digest.hexdigest() != frozen:
        raise ManifestChanged(manifest_id, frozen, digest.hexdigest())


@dataclass(frozen=True)
class BatchPlan:
    """A batch that is about to be frozen.

    Attributes:
        ordinal: its number in the manifest, from 0.
        batch_key: what its custom ids start with.
        request_artifact: digest of its request file.
        request_bytes: size of the file.
        rows: document_no, source_version_no, checksum, record_id, operation, replay_reason,
            request_digest, offset, length; in file order. For requests that leave the house also
            pages, pages_sent, tokens, redactions. For records that exist already also record_no,
            state, ordinal, recovery_path, parent_attempt_no, parent_batch_no. They may be in a
            file: all of a manifest's at once may not fit into memory.
        mode: of this batch alone, None for the manifest's.
        endpoint: the provider's endpoint, None where there is none.
        input_tokens: of all its prompts, by estimate; None where nobody counts them.
    """

    ordinal: int
    batch_key: str
    request_artifact: str
    request_bytes: int
    rows: Rows
    mode: str | None = None
    endpoint: str | None = None
    input_tokens: int | None = None


@dataclass(frozen=True)
class ManifestPlan:
    """A manifest that is about to be frozen, without its batches."""

    manifest_id: str
    version_no: int
    digest: str
    expected: int
    artifact: str
    replay_reason: str
    provider: str
    mode: str
    model: str
    schema_version: int
    replay_no: int | None = None


def next_manifest_id(ledger: Ledger, version_no: int, key: str) -> str:
    """`<version>-m<ordinal from 1>`; the caller holds the version's lease."""
    with ledger.read() as connection:
        count = connection.execute(
            select(func.count()).where(manifests.c.version_no == version_no)
        ).scalar_one()
    return f"{key}-m{count + 1}"


def version_records(ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Every record of a version: record_no, document_no, source_version_no."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT record_no, document_no, source_version_no FROM records WHERE version_no = ?",
            {"record_no": pl.Int64, "document_no": pl.Int64, "source_version_no": pl.Int64},
            (version_no,),
        )


def store_manifest(
    connection: Connection,
    ledger: Ledger,
    plan: ManifestPlan,
    plans: Iterator[BatchPlan],
    cause: Cause,
) -> list[int]:
    """Freeze a manifest: one call inside one transaction writes all of it.

    Args:
        connection: a write transaction under the version's lease.
        ledger: the ledger.
        plan: the manifest.
        plans: its batches, in the order of record_id.
        cause: of every move.

    Returns:
        The numbers of the batches made.
    """
    key = connection.execute(
        insert(manifests).values(
            manifest_id=plan.manifest_id,
            version_no=plan.version_no,
            contract_version=MANIFEST.tag,
            digest=plan.digest,
            expected=plan.expected,
            artifact=plan.artifact,
            replay_reason=plan.replay_reason,
            frozen_at=cause.at,
            replay_no=plan.replay_no,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    manifest_no = int(key[0])
    record_no = next_number(connection, ledger.dialect, records.c.record_no)
    attempt_no = next_number(connection, ledger.dialect, attempts.c.attempt_no)
    made = []
    for batch in plans:
        made.append(
            _store_batch(connection, ledger, plan, batch, manifest_no, record_no, attempt_no, cause)
        )
        record_no += batch.rows.height
        attempt_no += batch.rows.height
    return made


def _store_batch(
    connection: Connection,
    ledger: Ledger,
    plan: ManifestPlan,
    batch: BatchPlan,
    manifest_no: int,
    first_record: int,
    first_attempt: int,
    cause: Cause,
) -> int:
    count = batch.rows.height
    key = connection.execute(
        insert(batches).values(
            batch_id=f"{plan.manifest_id}-b{batch.ordinal + 1}",
            batch_key=batch.batch_key,
            manifest_no=manifest_no,
            version_no=plan.version_no,
            manifest_digest=plan.digest,
            provider=plan.provider,
            mode=batch.mode or plan.mode,
            model=plan.model,
            endpoint=batch.endpoint,
            input_tokens=batch.input_tokens,
            submissions=0,
            request_schema_version=plan.schema_version,
            request_artifact=batch.request_artifact,
            request_bytes=batch.request_bytes,
            state="prepared",
            polls=0,
            expected_records=count,
            reconciled_records=0,
            first_attempt_no=first_attempt,
            last_attempt_no=first_attempt + count - 1,
            prepared_at=cause.at,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    batch_no = int(key[0])
    index = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = batch.rows.read().with_columns(attempt_no=index + first_attempt)
    again = "record_no" in rows.columns
    if not again:
        rows = rows.with_columns(
            record_no=index + first_record,
            ordinal=pl.lit(1, dtype=pl.Int64),
            recovery_path=pl.lit(FIRST_ATTEMPT),
            parent_attempt_no=pl.lit(None, dtype=pl.Int64),
        )
    dialect = ledger.dialect
    dialect.load(
        connection,
        attempts,
        rows.select(
            "attempt_no",
            "record_no",
            "ordinal",
            "recovery_path",
            "request_digest",
            "parent_attempt_no",
            batch_no=pl.lit(batch_no, dtype=pl.Int64),
            request_offset="offset",
            request_length="length",
        ),
    )
    if "pages_sent" in rows.columns:
        dialect.load(
            connection,
            renderings,
            # Repeated bytes of a ledger that did not note it yet have nothing to say.
            rows.filter(pl.col("pages_sent").is_not_null()).select(
                "attempt_no", "pages", "pages_sent", "tokens", "redactions"
            ),
        )
    move_batch(connection, dialect, batch_no, START, "prepared", cause)
    if again:
        _prepare_again(connection, ledger, rows, batch_no, cause)
    else:
        _create_records(connection, ledger, plan, batch, rows, manifest_no, batch_no, cause)
    return batch_no


def _create_records(
    connection: Connection,
    ledger: Ledger,
    plan: ManifestPlan,
    batch: BatchPlan,
    rows: pl.DataFrame,
    manifest_no: int,
    batch_no: int,
    cause: Cause,
) -> None:
    dialect = ledger.dialect
    dialect.load(
        connection,
        records,
        rows.select(
            "record_no",
            "record_id",
            pl.lit(plan.version_no, dtype=pl.Int64).alias("version_no"),
            "document_no",
            "source_version_no",
            "checksum",
            "operation",
            "replay_reason",
            pl.lit(manifest_no, dtype=pl.Int64).alias("manifest_no"),
        ),
    )
    dialect.load(
        connection,
        record_state,
        rows.select(
            "record_no",
            state=pl.lit("queued"),
            version=pl.lit(0, dtype=pl.Int64),
            shard=pl.lit(batch.ordinal, dtype=pl.Int64),
        ),
    )
    chain = batch_chain(batch_no)
    create_records(connection, dialect, rows["record_no"], cause, chain)
    move_records(connection, dialect, rows["record_no"], "queued", "prepared", cause, chain)


def _prepare_again(
    connection: Connection, ledger: Ledger, rows: pl.DataFrame, batch_no: int, cause: Cause
) -> None:
    """Another attempt at records that exist, and which batches it follows."""
    for (state,), part in rows.group_by("state", maintain_order=True):
        move_records(
            connection,
            ledger.dialect,
            part["record_no"],
            str(state),
            "prepared",
            cause,
            batch_chain(batch_no),
        )
    connection.execute(
        insert(batch_parents),
        [
            {"batch_no": batch_no, "parent_batch_no": parent}
            for parent in rows["parent_batch_no"].unique().sort()
        ],
    )
