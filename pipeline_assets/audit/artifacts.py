"""Artifacts: every file that the ledger names is there, and its bytes have its digest.

Belongs here: which column names which artifact, presence, and the digests of whole files. Does not
belong here: what stands in a file (`requests.py`, `result_lines.py`, `manifests.py`, `answers.py`).

An artifact that a policy removed, or an erasure, is no loss: the ledger says so. Of one that an
erasure changed, file, sidecar and ledger must agree.
"""

from __future__ import annotations

import hashlib
from typing import cast

import msgspec
import polars as pl

from pipeline_assets.audit.look import Look
from resources import kept_bytes
from resources.artifacts import GONE, ArtifactDamaged, ArtifactMissing, Kind

PRESENT, BYTES = "artifact.present", "artifact.bytes"

BULKY: tuple[Kind, ...] = ("source", "text", "thumbnail")
"""Kinds of which a sample may be enough: what they hold can be made again, or is a copy."""

# kind, what names it (for people), the column, and where it stands with its version; the version
# is null where the row is of no version.
_NAMED: tuple[tuple[Kind, str, str], ...] = (
    ("manifest", "manifest", "SELECT artifact, manifest_id, version_no FROM manifests"),
    ("request", "batch", "SELECT request_artifact, batch_id, version_no FROM batches"),
    ("request", "canary", "SELECT request_artifact, canary_id, version_no FROM canaries"),
    (
        "result",
        "a result file of batch",
        "SELECT f.artifact, b.batch_id, b.version_no FROM result_files f "
        "JOIN batches b ON b.batch_no = f.batch_no",
    ),
    *(
        (
            cast("Kind", "frame"),
            f"the {name} values of batch",
            f"SELECT {name}_artifact, batch_id, version_no FROM batches "  # noqa: S608 - own names
            f"WHERE {name}_artifact IS NOT NULL",
        )
        for name in ("collected", "staging", "places")
    ),
    *(
        (
            cast("Kind", "frame"),
            f"the {name} late values of batch",
            f"SELECT l.{name}_artifact, b.batch_id, b.version_no FROM late_answers l "  # noqa: S608
            f"JOIN batches b ON b.batch_no = l.batch_no WHERE l.{name}_artifact IS NOT NULL",
        )
        for name in ("collected", "staging", "places")
    ),
    *(
        (
            cast("Kind", "report"),
            f"the {what} of report",
            f"SELECT {name}, CAST(report_no AS VARCHAR), version_no FROM reports "  # noqa: S608
            f"WHERE {name} IS NOT NULL",
        )
        for name, what in (("artifact", "numbers"), ("page", "page"), ("outcomes", "outcomes"))
    ),
    (
        "text",
        "the text of the bytes",
        "SELECT text_pack, MIN(checksum), CAST(NULL AS BIGINT) AS version_no FROM parses "
        "WHERE text_pack IS NOT NULL GROUP BY text_pack",
    ),
    (
        "thumbnail",
        "the thumbnail of the bytes",
        "SELECT thumbnail, MIN(checksum), CAST(NULL AS BIGINT) AS version_no FROM parses "
        "WHERE thumbnail IS NOT NULL GROUP BY thumbnail",
    ),
    # Of what is visible: an earlier entry may name one that was lost and replaced.
    (
        "thumbnail",
        "the thumbnail of document",
        "SELECT e.thumbnail, d.document_id, e.version_no FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "WHERE e.thumbnail <> '' AND e.valid_to IS NULL",
    ),
)
_SOURCES = (
    "SELECT DISTINCT r.checksum, d.document_id FROM records r "
    "JOIN documents d ON d.document_no = r.document_no "
    "WHERE r.document_no NOT IN (SELECT document_no FROM erasures)"
)
_SCHEMA = {"digest": pl.String, "name": pl.String}
_Seen = dict[str, set[bytes]]
_SEEN_DIGITS = 32
"""Of a digest's 64; two files that share so many do not occur."""


def check_artifacts(look: Look) -> None:
    """Check every artifact that the ledger names, each file once."""
    seen: _Seen = {}
    for kind, what, sql in _NAMED:
        where = (
            f"SELECT n.* FROM ({sql}) n WHERE "  # noqa: S608 - our own statements
            f"(n.version_no IS NULL OR {look.of_version('n.version_no')})"
        )
        schema = {**_SCHEMA, "version_no": pl.Int64}
        for part in look.stream(where, schema):
            _check(look, kind, what, part.drop("version_no"), seen)
    _check(look, "result", "an answer to canary", _canary_results(look), seen)
    for part in look.stream(f"{_SOURCES} AND {look.of_version('r.version_no')}", _SCHEMA):
        _check_sources(look, part.unique("digest", maintain_order=True))


def _check(look: Look, kind: Kind, what: str, named: pl.DataFrame, seen: _Seen) -> None:
    known = seen.setdefault(kind, set())
    for digest, name in named.iter_rows():
        # A file is named more than once, and there may be a million: as bytes they are half.
        short = digest.encode()[:_SEEN_DIGITS]
        if short not in known:
            known.add(short)
            check_one(look, kind, digest, f"{kind} artifact {digest[:16]} ({what} {name})")


def check_one(look: Look, kind: Kind, digest: str, subject: str) -> None:
    """Check one artifact: that it is there and, if it is in the sample, its bytes."""
    store = look.context.artifacts
    look.findings.looked(PRESENT)
    if not store.has(kind, digest):
        gone = look.redacted.get((kind, digest)) == GONE
        if not gone and store.pruned_at(kind, digest) is None:
            look.findings.add(
                PRESENT, subject, "no file", "the file, or a note that it was removed"
            )
        return
    if kind in BULKY and not in_sample(digest, look.sample, look.seed):
        return
    look.findings.looked(BYTES)
    try:
        store.verify(kind, digest)
    except ArtifactMissing:
        return  # removed by a policy in this moment
    except (ArtifactDamaged, OSError) as error:
        look.findings.add(BYTES, subject, _told(error), f"bytes with digest {digest[:16]}")
        return
    _check_erased(look, kind, digest, subject)


def _told(error: Exception) -> str:
    return "other bytes" if isinstance(error, ArtifactDamaged) else type(error).__name__


def _check_erased(look: Look, kind: Kind, digest: str, subject: str) -> None:
    """What was erased from a file must not be back: a copy from a backup has its old digest."""
    left = look.redacted.get((kind, digest))
    if left is None or left == GONE:
        return
    beside = look.context.artifacts.sidecar(kind, digest)
    if beside is not None and beside.before is not None:
        return  # an erasure is being finished
    if beside is None or beside.present != left:
        look.findings.add(
            BYTES, subject, "what an erasure took out of it", f"bytes with digest {left[:16]}"
        )


def in_sample(digest: str, percent: float, seed: int) -> bool:
    """Is an artifact in the sample? Its name and the seed decide, so that it can be repeated."""
    if percent >= 100:
        return True
    drawn = hashlib.sha256(f"{seed}:{digest}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") < percent / 100 * 2**64


def _canary_results(look: Look) -> pl.DataFrame:
    lists = look.rows(
        "SELECT results, canary_id FROM canaries WHERE results IS NOT NULL "  # noqa: S608
        f"AND {look.of_version('version_no')} ORDER BY canary_no",
        {"results": pl.String, "name": pl.String},
    )
    rows: list[tuple[str, str]] = []
    for text, name in lists.iter_rows():
        try:
            rows += [(digest, name) for digest in msgspec.json.decode(text, type=list[str])]
        except (msgspec.DecodeError, msgspec.ValidationError):
            look.findings.add(
                PRESENT, f"canary {name}", "results that cannot be read", "a list of its answers"
            )
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _check_sources(look: Look, named: pl.DataFrame) -> None:
    kept = kept_bytes.kept(
        look.connection, look.context.ledger, look.context.artifacts, named["digest"]
    )
    for (digest, name), is_kept in zip(named.iter_rows(), kept, strict=True):
        if is_kept and not look.context.artifacts.has("source", digest):
            look.findings.looked(PRESENT)  # the text of a row, which is kept as such
            continue
        subject = f"source artifact {digest[:16]} (the bytes of document {name})"
        check_one(look, "source", digest, subject)
