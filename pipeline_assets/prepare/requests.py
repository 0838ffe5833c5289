"""Request files of the built-in provider, and the page texts that every request is made of.

Belongs here: reading the pages of records slice by slice, and the built-in provider's exact bytes
with offsets and digests. Does not belong here: which records (`candidates.py`), requests to a
model (`spool.py`, `plan.py`), freezing (`freeze.py`), and handing files over (`submit`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from partitions.processing_version import Spec
from resources.artifacts import ArtifactStore, ArtifactWriter, Stored
from resources.contracts import PARSED_TEXT, ContractRefused, scan_frame
from resources.providers.baseline import encode_body, encode_request
from resources.record_ids import custom_id, reference

RECORDS_AT_ONCE = 200
"""Records whose pages are in memory together."""


@dataclass(frozen=True)
class RequestFile:
    """A stored request file.

    Attributes:
        stored: the artifact.
        lines: one row a record in file order: request_digest, offset, length (without newline).
    """

    stored: Stored
    lines: pl.DataFrame


def write_requests(
    store: ArtifactStore,
    spec: Spec,
    key: str,
    records: pl.DataFrame,
    *,
    on_slice: Callable[[], None] = lambda: None,
) -> RequestFile:
    """Write the request file of one batch.

    Args:
        store: where text packs are and the file goes.
        spec: model and parameters.
        key: the batch's key, which custom ids start with.
        records: record_id, checksum, text_pack; in file order.
        on_slice: called between slices of records, to keep a lease alive.

    Raises:
        ArtifactMissing: a text pack is not in the store.
        ContractRefused: a text pack is of another contract, or does not hold its document.
    """
    rows: list[tuple[str, int, int]] = []

    def fill(writer: ArtifactWriter) -> None:
        for index, (name, pages) in enumerate(with_pages(store, records, on_slice)):
            body = encode_body(spec.model, reference(name), pages)
            line = encode_request(custom_id(key, index), body)
            rows.append((hashlib.sha256(body).hexdigest(), writer.size, len(line)))
            writer.write(line + b"\n")

    stored = store.write("request", fill)
    lines = pl.DataFrame(
        rows,
        schema={"request_digest": pl.String, "offset": pl.Int64, "length": pl.Int64},
        orient="row",
    )
    return RequestFile(stored, lines)


def with_pages(
    store: ArtifactStore, records: pl.DataFrame, on_slice: Callable[[], None]
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Records (id and pages) in order; memory holds one slice's pages.

    Raises:
        ArtifactMissing: a text pack is not in the store.
        ContractRefused: a text pack is of another contract, or does not hold its document.
    """
    for part in records.iter_slices(RECORDS_AT_ONCE):
        on_slice()
        pages: dict[str, list[tuple[int, str]]] = {}
        for (pack,), wanted in part.group_by("text_pack"):
            frame = (
                scan_frame(PARSED_TEXT, store.require("text", str(pack)))
                .filter(pl.col("checksum").is_in(wanted["checksum"].implode()))
                .select("checksum", "page", "text")
                .sort("checksum", "page")
                .collect()
            )
            for checksum, page, text in frame.iter_rows():
                pages.setdefault(checksum, []).append((page, text))
        for name, checksum, pack in part.select("record_id", "checksum", "text_pack").iter_rows():
            if checksum not in pages:
                raise ContractRefused(
                    f"the text pack {pack[:12]} holds no page of the document {checksum[:12]}, "
                    "which was parsed into it. Restore the state folder from a backup; no request "
                    "was written."
                )
            yield name, pages[checksum]
