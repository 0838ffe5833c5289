"""Which records share a batch: requests are split to the provider's limits, and checked.

Belongs here: the split, the check against the capability table, and the request files. Does not
belong here: the bodies (`spool.py`), the table and its rules (`resources/providers`), freezing.

Nothing is trimmed to pass: what does not fit is split, and what cannot be split is refused with
the row of the table that forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import polars as pl

from pipeline_assets.operating import Operating
from pipeline_assets.prompting.request_maker import RequestMaker
from pipeline_assets.provider_jobs.limits import value_of, with_operating
from pipeline_assets.providers import endpoint_of_version
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactStore, ArtifactWriter
from resources.ledger.manifests import BatchPlan
from resources.providers.admission import (
    JobRefused,
    PlannedJob,
    Refusal,
    check_job,
    custom_ids_fit,
)
from resources.providers.capabilities import Capability, Mode, find_capability
from resources.providers.splitting import split_sizes
from resources.record_ids import custom_id
from resources.spilled import Rows
from resources.spilled import rows_of as in_memory

LONGEST_ID = "0" * 12 + "-" + "9" * 9
LINES_AT_ONCE = 200


@dataclass(frozen=True)
class Share:
    """Records that go into one batch.

    Attributes:
        rows: positions in the frame of requests, contiguous.
        mode: the version's own, or `online` for a tail that is too small for a batch.
    """

    rows: range
    mode: str


def plan_shares(
    version: OpenVersion,
    maker: RequestMaker,
    asked: pl.DataFrame,
    settings: Operating,
    today: str,
    *,
    max_records: int | None = None,
    output_tokens: int | None = None,
) -> list[Share]:
    """Split requests into batches that the provider takes.

    Args:
        version: the version.
        maker: makes its requests.
        asked: body_length and input_tokens of its requests (`spool.ASKED_SCHEMA`).
        settings: limits that an operator set.
        today: names the date of those in a refusal.
        max_records: at most so many in a batch, where that is fewer than the version says.
        output_tokens: the largest output that a request asks for, where that is not the version's.

    Raises:
        RecordTooLarge: one request is above the limit of a whole batch.
        JobRefused: something cannot be sent with this provider, model, endpoint and mode.
        UnsupportedCombination: the capability table has no row for them.
    """
    spec = version.spec
    assert spec.request is not None  # noqa: S101 - the spec's own check
    capability = with_operating(_capability(version, spec.mode), settings, today)
    overhead = len(maker.wire.encode_request(LONGEST_ID, b"{}")) - len(b"{}") + len(b"\n")
    lengths = (asked["body_length"] + overhead).to_list()
    tail = spec.request.tail
    most = min(spec.batch_records, max_records or spec.batch_records)
    split = split_sizes(
        lengths,
        asked["input_tokens"].to_list(),
        max_records=min(most, value_of(capability.max_records) or most),
        max_bytes=value_of(capability.max_bytes),
        max_tokens=value_of(capability.enqueued_tokens),
        min_records=value_of(capability.min_records),
        tail=tail,
    )
    shares = [Share(rows, spec.mode) for rows in split.slices]
    if split.too_small is not None and tail == "online":
        shares.append(Share(split.too_small, "online"))
    elif split.too_small is not None:
        # Checked like the rest: the refusal then names the row, the limit and its source.
        shares.append(Share(split.too_small, spec.mode))
    refusals = [
        refusal
        for share in shares
        for refusal in _check(version, maker, asked, lengths, share, capability, output_tokens)
    ]
    if refusals:
        raise JobRefused(list(dict.fromkeys(refusals)))
    return shares


def least_records(version: OpenVersion) -> int:
    """How many records a batch of a version must hold; fewer are only answered online.

    Raises:
        UnsupportedCombination: the capability table has no row for the version.
    """
    request = version.spec.request
    return 1 if request is not None and request.tail == "online" else smallest_batch(version)


def smallest_batch(version: OpenVersion) -> int:
    """How many records a batch of a version must hold, whatever becomes of fewer.

    Raises:
        UnsupportedCombination: the capability table has no row for the version.
    """
    if version.spec.mode != "batch":
        return 1
    return value_of(_capability(version, version.spec.mode).min_records) or 1


def write_batches(
    store: ArtifactStore,
    version: OpenVersion,
    maker: RequestMaker,
    shares: list[Share],
    rows_of: Callable[[range], pl.DataFrame],
    spool: Path,
    key_of: Callable[[int], str],
    *,
    on_slice: Callable[[], None],
    keep: Callable[[pl.DataFrame], Rows] = in_memory,
) -> Iterator[BatchPlan]:
    """The request files of all shares, from spooled bodies.

    Args:
        store: where the files go.
        version: the version.
        maker: knows the provider's lines.
        shares: as planned.
        rows_of: positions of requests → what the manifest says of their records, with
            body_offset, body_length, request_digest, input_tokens, and pages, pages_sent, tokens,
            redactions.
        spool: the bodies.
        key_of: a batch's ordinal → its key.
        on_slice: called between slices, to keep a lease alive.
        keep: puts a batch's rows where they wait for the transaction.
    """
    endpoint = endpoint_of_version(version)
    with spool.open("rb") as bodies:
        for ordinal, share in enumerate(shares):
            part = rows_of(share.rows)
            key = key_of(ordinal)
            places: list[tuple[int, int]] = []

            def fill(
                writer: ArtifactWriter,
                part: pl.DataFrame = part,
                key: str = key,
                places: list[tuple[int, int]] = places,
            ) -> None:
                _write_lines(writer, maker, part, key, bodies, places, on_slice)

            stored = store.write("request", fill)
            lines = pl.DataFrame(
                places, schema={"offset": pl.Int64, "length": pl.Int64}, orient="row"
            )
            yield BatchPlan(
                ordinal=ordinal,
                batch_key=key,
                request_artifact=stored.digest,
                request_bytes=stored.size,
                rows=keep(
                    pl.concat(
                        [part.drop("body_offset", "body_length", "input_tokens"), lines],
                        how="horizontal",
                    )
                ),
                mode=share.mode,
                endpoint=endpoint,
                input_tokens=int(part["input_tokens"].sum()),
            )


def _write_lines(
    writer: ArtifactWriter,
    maker: RequestMaker,
    part: pl.DataFrame,
    key: str,
    bodies: BinaryIO,
    places: list[tuple[int, int]],
    on_slice: Callable[[], None],
) -> None:
    wanted = part.select("body_offset", "body_length").iter_rows()
    for index, (offset, length) in enumerate(wanted):
        if index % LINES_AT_ONCE == 0:
            on_slice()
        bodies.seek(offset)
        line = maker.wire.encode_request(custom_id(key, index), bodies.read(length))
        places.append((writer.size, len(line)))
        writer.write(line + b"\n")


def _capability(version: OpenVersion, mode: str) -> Capability:
    spec = version.spec
    chosen: Mode = "online" if mode == "online" else "batch"
    return find_capability(spec.provider, spec.model, endpoint_of_version(version), chosen)


def _check(
    version: OpenVersion,
    maker: RequestMaker,
    asked: pl.DataFrame,
    lengths: list[int],
    share: Share,
    capability: Capability,
    output_tokens: int | None,
) -> list[Refusal]:
    if share.mode != version.spec.mode:
        capability = _capability(version, share.mode)
    request = version.spec.request
    assert request is not None  # noqa: S101 - the spec's own check
    part = lengths[share.rows.start : share.rows.stop]
    prompts = asked["input_tokens"].to_list()[share.rows.start : share.rows.stop]
    fits, _ = custom_ids_fit(capability, (LONGEST_ID,))
    job = PlannedJob(
        records=len(part),
        size=sum(part),
        largest_line=max(part, default=0),
        output_tokens=output_tokens or request.output_tokens,
        largest_prompt_tokens=max(prompts, default=0),
        prompt_tokens=sum(prompts),
        # Ids are counted up from a batch's own key, so no two are the same.
        custom_ids_ok=fits,
        custom_ids_unique=True,
        parameters=version.spec.parameters,
        schema=maker.ask.schema,
        window_hours=request.window_hours if share.mode == "batch" else None,
    )
    return check_job(capability, job)
