"""Typed frame contracts: what crosses a stage boundary, with a version.

Belongs here: the contracts, writing a frame under one, and refusing a file of another. Does not
belong here: how a frame is computed (the stages).

A file carries its contract in the Parquet metadata. A stage that meets an unknown version
refuses it: guessing what a column means is how wrong answers get published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from resources.artifacts import ArtifactStore, Kind, Stored
from resources.ledger.frames import PolarsType

METADATA_KEY = "tallybook.contract"


class ContractRefused(Exception):
    """A file or frame that is not what the stage boundary promises."""


@dataclass(frozen=True)
class FrameContract:
    """The columns of one stage boundary.

    Attributes:
        name: what the frame holds.
        version: grows when a column changes its name, type or meaning.
        schema: column to Polars type, in order; no column is optional.
    """

    name: str
    version: int
    schema: MappingProxyType[str, PolarsType]

    @property
    def tag(self) -> str:
        """`name/version`, as files and the ledger carry it."""
        return f"{self.name}/{self.version}"

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with the contract's columns in order.

        Raises:
            ContractRefused: a column is missing, superfluous or of another type.
        """
        if set(frame.columns) != set(self.schema):
            missing = sorted(set(self.schema) - set(frame.columns))
            extra = sorted(set(frame.columns) - set(self.schema))
            raise ContractRefused(f"a {self.tag} frame lacks {missing} and has extra {extra}")
        wrong = {
            name: str(frame.schema[name])
            for name, dtype in self.schema.items()
            if frame.schema[name] != dtype
        }
        if wrong:
            raise ContractRefused(f"a {self.tag} frame has columns of other types: {wrong}")
        return frame.select(list(self.schema))

    def empty(self) -> pl.DataFrame:
        """A frame of this contract without rows."""
        return pl.DataFrame(schema=dict(self.schema))


class ContractWriter:
    """Appends shards to one Parquet file of a contract; a shard becomes a row group."""

    def __init__(self, contract: FrameContract, path: Path) -> None:
        self._contract = contract
        schema = contract.empty().to_arrow().schema
        metadata = {METADATA_KEY: contract.tag}
        self._schema = schema.with_metadata(cast(Any, metadata))
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self.rows = 0

    def write(self, frame: pl.DataFrame) -> None:
        """Append a shard.

        Raises:
            ContractRefused: the shard is not of the contract.
        """
        table = self._contract.conform(frame).to_arrow()
        self._writer.write_table(
            pa.Table.from_batches(table.to_batches(), table.schema).cast(self._schema)
        )
        self.rows += frame.height

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


@contextmanager
def contract_writer(contract: FrameContract, path: Path) -> Iterator[ContractWriter]:
    """A writer that is closed at the end of the block."""
    writer = ContractWriter(contract, path)
    try:
        yield writer
    finally:
        writer.close()


def store_frame(
    store: ArtifactStore, kind: Kind, contract: FrameContract, shards: Iterable[pl.DataFrame]
) -> Stored:
    """Write shards to one artifact of the contract."""
    with store.workfile() as path:
        with contract_writer(contract, path) as writer:
            for shard in shards:
                writer.write(shard)
        return store.adopt(kind, path)


def require_contract(contract: FrameContract, path: Path) -> None:
    """Check the version that a file carries.

    Raises:
        ContractRefused: the file is of another contract, or of none.
    """
    try:
        found = pl.read_parquet_metadata(path).get(METADATA_KEY, "no contract")
    except (pl.exceptions.ComputeError, OSError) as error:
        raise ContractRefused(
            f"the file {path.name[:12]} cannot be read as Parquet; expected a {contract.tag} "
            "frame. Restore it from a backup, or run the stage that writes it again."
        ) from error
    if found != contract.tag:
        raise ContractRefused(
            f"the file {path.name[:12]} holds {found}, expected {contract.tag}. It was written by "
            "another release: run the stage that writes it again with this one."
        )


def scan_frame(contract: FrameContract, path: Path) -> pl.LazyFrame:
    """A lazy frame over a file of the contract.

    Raises:
        ContractRefused: the file is of another contract.
    """
    require_contract(contract, path)
    return pl.scan_parquet(path)


def read_frame(
    contract: FrameContract, path: Path, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """The rows of a file of the contract; `columns` limits what is read.

    Raises:
        ContractRefused: the file is of another contract.
    """
    lazy = scan_frame(contract, path)
    return (lazy.select(list(columns)) if columns else lazy).collect()


def read_shards(contract: FrameContract, path: Path) -> Iterator[pl.DataFrame]:
    """The shards of a file of the contract, one at a time, as they were written.

    Raises:
        ContractRefused: the file is of another contract.
    """
    require_contract(contract, path)
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield contract.conform(pl.DataFrame(file.read_row_group(number)))


def _contract(name: str, version: int, **schema: PolarsType) -> FrameContract:
    return FrameContract(name, version, MappingProxyType(schema))


PARSED_TEXT = _contract(
    "parsed_text",
    1,
    checksum=pl.String,
    page=pl.Int32,
    origin=pl.String,
    offset=pl.Int64,
    text=pl.String,
)
"""ingest → prepare, accept: one row a page; `offset` in code points of the document's text."""

MANIFEST = _contract(
    "manifest",
    1,
    record_id=pl.String,
    business_key=pl.String,
    operation=pl.String,
    schema_version=pl.Int64,
    source_checksum=pl.String,
    request_digest=pl.String,
    replay_reason=pl.String,
    batch=pl.Int64,
    offset=pl.Int64,
    length=pl.Int64,
)
"""prepare → submit, collect, account: the frozen manifest, sorted by record_id."""

COLLECTED = _contract(
    "collected",
    1,
    attempt_no=pl.Int64,
    record_no=pl.Int64,
    answer=pl.String,
)
"""collect → accept: the answer text of every succeeded attempt of a batch."""

STAGING = _contract(
    "staging",
    1,
    attempt_no=pl.Int64,
    record_no=pl.Int64,
    outcome=pl.String,
    content=pl.String,
    values_digest=pl.String,
    title=pl.String,
    identifiers=pl.String,
    description=pl.String,
    language=pl.String,
)
"""accept → publish: judged values of a batch, and the plain text of what search looks in."""

PLACES = _contract(
    "places",
    1,
    attempt_no=pl.Int64,
    field=pl.String,
    item=pl.Int64,
    quote_no=pl.Int64,
    page=pl.Int64,
    has_page=pl.Boolean,
    start=pl.Int64,
    end=pl.Int64,
)
"""accept → review, account: where each quote of a batch's answers stands, in code points of its
page's parsed text; `start` and `end` are null where it does not stand there."""
