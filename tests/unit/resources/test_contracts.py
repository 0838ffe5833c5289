"""Frame contracts: a file of another contract, version or shape is never read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import polars as pl
import pytest

from resources.artifacts import ArtifactStore
from resources.contracts import (
    COLLECTED,
    MANIFEST,
    PARSED_TEXT,
    STAGING,
    ContractRefused,
    FrameContract,
    contract_writer,
    read_frame,
    scan_frame,
    store_frame,
)

ROWS = pl.DataFrame(
    {"attempt_no": [1, 2], "record_no": [7, 8], "answer": ["a\u2028\r\nb", "𝒳\0"]},
    schema=dict(COLLECTED.schema),
)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


@pytest.mark.parametrize(
    "contract", [PARSED_TEXT, MANIFEST, COLLECTED, STAGING], ids=lambda contract: contract.tag
)
def test_a_frame_without_rows_keeps_its_contract(
    store: ArtifactStore, contract: FrameContract
) -> None:
    stored = store_frame(store, "frame", contract, [])
    assert read_frame(contract, stored.path).schema == contract.empty().schema


def test_shards_come_back_as_they_were(store: ArtifactStore) -> None:
    turned = ROWS.select("answer", "record_no", "attempt_no")
    stored = store_frame(store, "frame", COLLECTED, [ROWS, turned, ROWS.clear()])
    assert read_frame(COLLECTED, stored.path).equals(pl.concat([ROWS, ROWS]))
    assert read_frame(COLLECTED, stored.path, ["answer"]).columns == ["answer"]


def test_the_same_rows_give_the_same_file(store: ArtifactStore) -> None:
    first = store_frame(store, "frame", COLLECTED, [ROWS, ROWS])
    assert store_frame(store, "frame", COLLECTED, [ROWS, ROWS]).digest == first.digest
    assert store_frame(store, "frame", COLLECTED, [ROWS]).digest != first.digest


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        pytest.param(ROWS.drop("answer"), r"lacks \['answer'\]", id="missing"),
        pytest.param(ROWS.with_columns(more=1), r"extra \['more'\]", id="superfluous"),
        pytest.param(
            ROWS.with_columns(pl.col("record_no").cast(pl.Int32)),
            r"other types: \{'record_no': 'Int32'\}",
            id="other-type",
        ),
        pytest.param(
            ROWS.with_columns(answer=pl.lit(None)), "'answer': 'Null'", id="nothing-but-null"
        ),
    ],
)
def test_a_frame_of_another_shape_is_refused(
    store: ArtifactStore, frame: pl.DataFrame, problem: str
) -> None:
    with pytest.raises(ContractRefused, match=problem):
        store_frame(store, "frame", COLLECTED, [ROWS, frame])
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param(
            replace(COLLECTED, version=2), "holds collected/2, expected collected/1", id="version"
        ),
        pytest.param(replace(COLLECTED, name="staging"), "holds staging/1", id="name"),
        pytest.param(
            FrameContract("collected", 10, MappingProxyType({"x": pl.Int64})),
            "holds collected/10",
            id="columns",
        ),
    ],
)
def test_a_file_of_another_contract_is_refused(
    tmp_path: Path, written: FrameContract, problem: str
) -> None:
    path = tmp_path / "file"
    with contract_writer(written, path) as writer:
        writer.write(written.empty())
    for read in (read_frame, scan_frame):
        with pytest.raises(ContractRefused, match=problem):
            read(COLLECTED, path)


def test_parquet_without_a_contract_is_refused(tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "file")
    with pytest.raises(ContractRefused, match="holds no contract, expected collected/1"):
        read_frame(COLLECTED, tmp_path / "file")


@pytest.mark.parametrize(
    "data",
    [b"", b"PAR1", b"not parquet at all, but rather long " * 9, b"PAR1" + bytes(40) + b"PAR1"],
)
def test_what_is_not_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ContractRefused, match="cannot be read as Parquet"):
        read_frame(COLLECTED, path)


def test_a_file_that_was_cut_is_refused(store: ArtifactStore) -> None:
    stored = store_frame(store, "frame", COLLECTED, [ROWS])
    stored.path.write_bytes(stored.path.read_bytes()[:-20])
    with pytest.raises(ContractRefused, match="cannot be read as Parquet"):
        read_frame(COLLECTED, stored.path)


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractRefused, match="cannot be read as Parquet"):
        read_frame(COLLECTED, tmp_path / "nowhere")
