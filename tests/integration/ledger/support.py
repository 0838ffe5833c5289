"""Rows that moves need, and processes that start a step at the same moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import polars as pl
from sqlalchemy import Connection, func, select
from sqlalchemy.sql.schema import Table

from resources.ledger.engine import Ledger
from resources.ledger.moves import (
    Cause,
    MoveReceipt,
    batch_chain,
    create_records,
    move_batch,
    move_canary,
    move_version,
)
from resources.ledger.schema import batches, canaries, manifests, processing_versions, record_state
from resources.ledger.transitions import START

DIGEST = "d" * 64
AT = "2030-01-02T03:04:05.000000Z"
CAUSE = Cause(reason="a reason", actor="a test", at=AT, cause="test")
RACE_LIMIT_S = 60


def numbers(*values: int) -> pl.Series:
    """Return record numbers as moves take them."""
    return pl.Series(values, dtype=pl.Int64)


def make_version(connection: Connection, ledger: Ledger, number: int) -> MoveReceipt:
    """Store a processing version and journal its first use."""
    connection.execute(
        processing_versions.insert().values(
            version_no=number,
            key=f"v{number}",
            workload="equipment_manuals",
            digest=DIGEST,
            spec="{}",
            state="active",
            state_reason="",
            frozen_at=AT,
        )
    )
    return move_version(connection, ledger.dialect, number, START, "active", CAUSE)


def make_batch(connection: Connection, ledger: Ledger, number: int, version: int) -> MoveReceipt:
    """Store a batch, with a manifest of its own, and journal that it is prepared."""
    connection.execute(
        manifests.insert().values(
            manifest_no=number,
            manifest_id=f"m{number}",
            version_no=version,
            contract_version="1",
            digest=DIGEST,
            expected=0,
            artifact=DIGEST,
            replay_reason="new_source",
            frozen_at=AT,
        )
    )
    connection.execute(
        batches.insert().values(
            batch_no=number,
            batch_id=f"b{number}",
            batch_key=f"{number:012x}",
            manifest_no=number,
            version_no=version,
            manifest_digest=DIGEST,
            provider="baseline",
            mode="online",
            model="rules",
            request_schema_version=1,
            request_artifact=DIGEST,
            request_bytes=0,
            state="prepared",
            polls=0,
            expected_records=0,
            reconciled_records=0,
            first_attempt_no=1,
            last_attempt_no=1,
            prepared_at=AT,
        )
    )
    return move_batch(connection, ledger.dialect, number, START, "prepared", CAUSE)


def make_canary(connection: Connection, ledger: Ledger, number: int, version: int) -> MoveReceipt:
    """Store a canary of a version and journal that it is prepared."""
    connection.execute(
        canaries.insert().values(
            canary_no=number,
            canary_id=f"canary-{number}",
            batch_key=f"{number:012x}",
            combination=DIGEST,
            version_no=version,
            provider="openai",
            mode="batch",
            sdk_version="1",
            model="a-model",
            request_artifact=DIGEST,
            request_bytes=0,
            state="prepared",
            polls=0,
            expected_records=0,
            prepared_at=AT,
        )
    )
    return move_canary(connection, ledger.dialect, number, START, "prepared", CAUSE)


def make_records(
    connection: Connection, ledger: Ledger, members: Sequence[int], chain: str
) -> MoveReceipt | None:
    """Store records as queued and journal their creation."""
    rows = pl.DataFrame({"record_no": members}, schema={"record_no": pl.Int64}).with_columns(
        state=pl.lit("queued"), version=pl.lit(0), shard=pl.lit(0)
    )
    ledger.dialect.load(connection, record_state, rows)
    return create_records(connection, ledger.dialect, rows["record_no"], CAUSE, chain)


def seeded(ledger: Ledger, members: Sequence[int] = (), batch: int = 1) -> str:
    """Commit one version, one batch and its queued records; return the batch's chain."""
    with ledger.write() as connection:
        make_version(connection, ledger, batch)
        make_batch(connection, ledger, batch, batch)
        make_records(connection, ledger, members, batch_chain(batch))
    return batch_chain(batch)


def states(ledger: Ledger) -> dict[int, str]:
    """Return the committed state of every record."""
    with ledger.read() as connection:
        rows = connection.execute(select(record_state.c.record_no, record_state.c.state))
        return {row.record_no: row.state for row in rows}


def count(ledger: Ledger, table: Table) -> int:
    """Return how many rows a table holds."""
    with ledger.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


class Racers:
    """Processes that each run `step(url, line)` whenever the test gives the word.

    Args:
        code: module text that defines `step(url: str, line: str) -> str`, its answer one line.
        url: the ledger they race for.
        size: how many of them.
    """

    def __init__(self, code: str, size: int) -> None:
        program = (
            f"import sys\n{code}\nprint('ready', flush=True)\n"
            "for line in sys.stdin:\n    print(step(line.strip()), flush=True)\n"
        )
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(size)
        ]
        self._answers()

    def run(self, line: str) -> list[str]:
        """Give all of them the word at once; return their answers."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(line + "\n")
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.flush()
        return self._answers()

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.communicate(timeout=RACE_LIMIT_S)

    def _answers(self) -> list[str]:
        answers = []
        for process in self._processes:
            assert process.stdout is not None
            answers.append(process.stdout.readline().strip())
        return answers
