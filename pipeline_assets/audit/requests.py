"""Requests: each attempt's bytes are where its row says, and have the digest that was frozen.

Belongs here: lines of request files against attempts. Does not belong here: a file's own digest
(`artifacts.py`) and the manifest (`manifests.py`).
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from pipeline_assets.audit.look import Look
from resources.providers import baseline
from resources.providers.port import MalformedLine
from resources.providers.registry import NotAProvider, wire
from resources.record_ids import custom_id

REQUEST = "request.bytes"

Decode = Callable[[bytes], tuple[str, bytes]]
_BATCH_SCHEMA = {
    "batch_no": pl.Int64,
    "batch_id": pl.String,
    "batch_key": pl.String,
    "provider": pl.String,
    "mode": pl.String,
    "endpoint": pl.String,
    "artifact": pl.String,
    "bytes": pl.Int64,
    "first": pl.Int64,
    "last": pl.Int64,
}
_ATTEMPT_SCHEMA = {
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "digest": pl.String,
    "offset": pl.Int64,
    "length": pl.Int64,
    "erased": pl.Int64,
}


@contextmanager
def mapped(path: Path) -> Iterator[memoryview]:
    """A file's bytes without reading them into memory."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                yield view
            finally:
                view.release()


def check_requests(look: Look) -> None:
    """Check the request of every attempt."""
    rows = look.rows(
        "SELECT batch_no, batch_id, batch_key, provider, mode, endpoint, "  # noqa: S608 - own names
        "request_artifact, request_bytes, first_attempt_no, last_attempt_no FROM batches "
        f"WHERE {look.of_version('version_no')} ORDER BY batch_no",
        _BATCH_SCHEMA,
    )
    for batch in rows.iter_rows(named=True):
        store = look.context.artifacts
        if store.has("request", batch["artifact"]):
            with mapped(store.path("request", batch["artifact"])) as data:
                _check_batch(look, batch, data)


def _check_batch(look: Look, batch: dict[str, object], data: memoryview) -> None:
    if len(data) != batch["bytes"]:
        look.findings.add(
            REQUEST,
            f"batch {batch['batch_id']}",
            f"{len(data)} bytes of requests",
            f"{batch['bytes']}",
        )
    try:
        decode = _decoder(batch)
    except NotAProvider:
        look.findings.add(
            REQUEST, f"batch {batch['batch_id']}", "an unknown provider", "a provider of ours"
        )
        return
    attempts = look.rows(
        "SELECT a.attempt_no, a.record_no, a.request_digest, a.request_offset, a.request_length, "
        "CASE WHEN r.document_no IN (SELECT document_no FROM erasures) THEN 1 ELSE 0 END "
        "FROM attempts a LEFT JOIN records r ON r.record_no = a.record_no "
        "WHERE a.batch_no = ? AND a.attempt_no BETWEEN ? AND ? ORDER BY a.attempt_no",
        _ATTEMPT_SCHEMA,
        batch["batch_no"],
        batch["first"],
        batch["last"],
    )
    look.findings.looked(REQUEST, attempts.height)
    first, key = int(str(batch["first"])), str(batch["batch_key"])
    wrong: list[tuple[int, int, str, str]] = []
    for number, record_no, digest, offset, length, erased in attempts.iter_rows():
        said = _said(data, decode, custom_id(key, number - first), digest, offset, length)
        if erased:
            # Its words were taken out; until that is finished they may still be there.
            continue
        if said is not None:
            wrong.append((number, record_no, said, digest))
    if not wrong:
        return
    names = look.names_of_records(pl.Series([row[1] for row in wrong], dtype=pl.Int64))
    for number, record_no, said, digest in wrong:
        look.findings.add(
            REQUEST,
            f"attempt {number} (record {names.get(record_no, record_no)}) of batch "
            f"{batch['batch_id']}",
            said,
            f"a request with digest {digest[:16]} at its place",
        )


def _said(
    data: memoryview, decode: Decode, name: str, digest: str, offset: int, length: int
) -> str | None:
    """What is wrong with the bytes at an attempt's place; None where nothing is."""
    if offset < 0 or length <= 0 or offset + length > len(data):
        return f"a place outside the file: {length} bytes at {offset}"
    try:
        found, body = decode(bytes(data[offset : offset + length]))
    except MalformedLine:
        return f"no request in the {length} bytes at {offset}"
    if found != name:
        return f"the request of {found} at {offset}"
    actual = hashlib.sha256(body).hexdigest()
    return None if actual == digest else f"a request with digest {actual[:16]} at {offset}"


def _decoder(batch: dict[str, object]) -> Decode:
    if batch["mode"] == "embedded":
        return baseline.decode_request
    endpoint = batch["endpoint"]
    return wire(str(batch["provider"]), None if endpoint is None else str(endpoint)).decode_request
