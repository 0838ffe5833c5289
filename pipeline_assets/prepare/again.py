"""The request bodies of another attempt: the same bytes again, or made anew by a recovery path.

Belongs here: reading frozen bodies back, and what each path changes. Does not belong here: which
records get another attempt (`retries.py`), and the decision about the path
(`pipeline_assets/recovery/retry.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import polars as pl

from pipeline_assets.prepare.requests import RECORDS_AT_ONCE, with_pages
from pipeline_assets.prepare.spool import ASKED_SCHEMA, REFUSED_SCHEMA, spool_bodies
from pipeline_assets.prompting.request_maker import (
    Changes,
    RequestMaker,
    make_request_maker,
)
from pipeline_assets.recovery.retry import (
    CHANGED_PATHS,
    FEWER_PAGES,
    LARGER_OUTPUT,
    REPAIR_PROMPT,
)
from pipeline_assets.versions import OpenVersion, repair_prompt_of
from resources.artifacts import ArtifactStore
from resources.batched import batched
from resources.ledger.frames import frame_of
from resources.providers.tokens import at_most_tokens

Decode = Callable[[bytes], tuple[str, bytes]]
UNCHANGED = "its changed request is the same as the one that failed"


class RequestChanged(Exception):
    """A stored request is not the one that was frozen."""

    def __init__(self, record_id: str) -> None:
        super().__init__(
            f"the stored request of {record_id} does not have the digest that was frozen with it; "
            "no retry was made. Restore the state folder from a backup."
        )


@dataclass(frozen=True)
class Bodies:
    """Bodies in a spool.

    Attributes:
        asked: `spool.ASKED_SCHEMA`, by row.
        refused: `spool.REFUSED_SCHEMA`: records that a changed request could not be made for.
    """

    asked: pl.DataFrame
    refused: pl.DataFrame


def spool_again(
    store: ArtifactStore,
    version: OpenVersion,
    maker: RequestMaker,
    rows: pl.DataFrame,
    spool: BinaryIO,
    *,
    on_slice: Callable[[], None],
) -> Bodies:
    """Write the bodies of another attempt into a spool.

    Args:
        store: where requests and texts are.
        version: the version.
        maker: makes its usual requests.
        rows: `retries.AGAIN_SCHEMA` of the ledger with text_pack, and `row` from 0.
        spool: where bodies are written, one after the other.
        on_slice: called between slices, to keep a lease alive.

    Raises:
        ArtifactDamaged: a request file's bytes are not those that were frozen.
        RequestChanged: a stored request is not the one that was frozen.
    """
    changed = rows.filter(pl.col("path").is_in(CHANGED_PATHS))
    same = rows.filter(~pl.col("path").is_in(CHANGED_PATHS))
    asked = [_spool_same(store, maker, same, spool, on_slice)]
    refused = []
    # What an earlier path changed stays so: the request would only fail as it did before.
    gone = [(pl.col(path) > 0) | (pl.col("path") == path) for path in CHANGED_PATHS]
    for paths, part in changed.group_by(*gone, maintain_order=True):
        chosen = {path for path, chosen in zip(CHANGED_PATHS, paths, strict=True) if chosen}
        other = make_request_maker(version, _changes(version, chosen))
        made, not_made = _spool_changed(store, other, part, spool, on_slice)
        asked.append(made)
        refused.append(not_made)
    empty = pl.DataFrame(schema=REFUSED_SCHEMA)
    return Bodies(pl.concat(asked).sort("row"), pl.concat([empty, *refused]).sort("row"))


def frozen_bodies(
    store: ArtifactStore, rows: pl.DataFrame, decode: Decode, verified: set[str] | None = None
) -> Iterator[tuple[int, bytes]]:
    """`row` and the exact body that each record's last attempt sent.

    Args:
        store: where requests are.
        rows: `row`, record_id and the place of each request.
        decode: the id and the body of a line.
        verified: request files that were compared with their digest before, and need not be again;
            those that are compared now are added.

    Raises:
        ArtifactDamaged: a request file's bytes are not those that were frozen.
        RequestChanged: a stored request is not the one that was frozen.
    """
    known = set() if verified is None else verified
    for (artifact,), part in rows.group_by("request_artifact", maintain_order=True):
        if artifact not in known:
            store.verify("request", str(artifact))
            known.add(str(artifact))
        wanted = part.sort("request_offset").select(
            "row", "record_id", "request_digest", "request_offset", "request_length"
        )
        with store.open("request", str(artifact)) as file:
            for row, record_id, digest, offset, length in wanted.iter_rows():
                file.seek(offset)
                _, body = decode(file.read(length))
                if hashlib.sha256(body).hexdigest() != digest:
                    raise RequestChanged(record_id)
                yield row, body


def _spool_same(
    store: ArtifactStore,
    maker: RequestMaker,
    rows: pl.DataFrame,
    spool: BinaryIO,
    on_slice: Callable[[], None],
) -> pl.DataFrame:
    offset = spool.tell()
    found: list[tuple[int, int, int]] = []
    for row, body in frozen_bodies(store, rows, maker.wire.decode_request):
        if len(found) % RECORDS_AT_ONCE == 0:
            on_slice()
        spool.write(body)
        found.append((row, offset, len(body)))
        offset += len(body)
    places = frame_of(found, {name: ASKED_SCHEMA[name] for name in _PLACE})
    prompts = [
        # A request that was never rendered here has at most a token a byte.
        at_most_tokens(maker.provider, maker.fixed_tokens + (length if tokens is None else tokens))
        for tokens, length in rows.select("tokens", "request_length").iter_rows()
    ]
    return (
        rows.with_columns(input_tokens=pl.Series(prompts, dtype=pl.Int64))
        .join(places, on="row")
        .select(list(ASKED_SCHEMA))
    )


_PLACE = ("row", "body_offset", "body_length")


def _spool_changed(
    store: ArtifactStore,
    maker: RequestMaker,
    rows: pl.DataFrame,
    spool: BinaryIO,
    on_slice: Callable[[], None],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    base = spool.tell()
    documents = with_pages(store, rows.select("record_id", "checksum", "text_pack"), on_slice)
    parts = [pl.DataFrame(schema=ASKED_SCHEMA)]
    not_made = spool_bodies(
        maker,
        batched(documents, RECORDS_AT_ONCE),
        spool,
        parts.append,
        on_slice=lambda _: on_slice(),
    )
    made = pl.concat(parts)
    places = rows.select("row", before="request_digest").with_row_index("of", offset=0)
    places = places.with_columns(pl.col("of").cast(pl.Int64))
    found = (
        made.rename({"row": "of"})
        .join(places, on="of")
        .with_columns(
            pl.col("body_offset") + base, same=pl.col("request_digest") == pl.col("before")
        )
    )
    unchanged = found.filter("same").select(
        "row", reason=pl.lit("unchanged"), detail=pl.lit(UNCHANGED)
    )
    refused = not_made.rename({"row": "of"}).join(places, on="of").select(list(REFUSED_SCHEMA))
    return found.filter(~pl.col("same")).select(list(ASKED_SCHEMA)), pl.concat([refused, unchanged])


def _changes(version: OpenVersion, paths: set[str]) -> Changes:
    recovery = None if version.spec.request is None else version.spec.request.recovery
    assert recovery is not None  # noqa: S101 - a path is only chosen where the spec allows it
    return Changes(
        output_tokens=recovery.output_tokens if LARGER_OUTPUT in paths else None,
        prompt=repair_prompt_of(version) if REPAIR_PROMPT in paths else None,
        document_tokens=recovery.document_tokens if FEWER_PAGES in paths else None,
    )
