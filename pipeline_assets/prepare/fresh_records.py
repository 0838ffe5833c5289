"""The records that a version's present documents become, found division by division.

Belongs here: the walk over divisions, and the rows of new records. Does not belong here: the
decision (`candidates.py`), the divisions (`divided.py`), freezing (`freeze.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from pipeline_assets.barred_documents import barred_documents
from pipeline_assets.operating import operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.candidates import split_documents
from pipeline_assets.prepare.divided import divisions
from pipeline_assets.prepare.document_facts import earlier_records
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.manifests import version_records
from resources.one_moment import at_one_moment
from resources.record_ids import record_id


@dataclass(frozen=True)
class Found:
    """The present documents that become no record now.

    Attributes:
        existing: how many have a record for their present bytes.
        excluded: document_no, source_version_no, reason, detail; by document_no.
    """

    existing: int
    excluded: pl.DataFrame


def find_fresh(
    context: Context,
    version: OpenVersion,
    replay_reason: str | None,
    selected: pl.Series | None,
    keep: Callable[[pl.DataFrame], object],
) -> Found:
    """Decide about every present document, and give what becomes a record to `keep`.

    Args:
        context: the open resources.
        version: the processing version.
        replay_reason: why, for all of them; None where it is plain from each document.
        selected: document_no of what a replay selected; None where nothing was.
        keep: takes document_no, document_id, source_version_no, checksum, replay_reason,
            text_pack, record_id and operation of new records, in no order, a division at a time.

    Raises:
        InvalidSources: the declarations cannot be read, so it is not known what needs approval.
    """
    spec = version.spec
    existing, excluded = 0, []
    # One moment: a document that changes meanwhile would be split twice, or not at all.
    with at_one_moment(context) as still:
        records = version_records(still.ledger, version.version_no)
        earlier = earlier_records(still.ledger, version)
        first_use = selected is not None and records.is_empty()
        narrow = first_use or operating(still.ledger, version.version_no).scope == "replays"
        for present, parses in divisions(still, spec.workload, parser_settings(spec).key):
            split = split_documents(
                present,
                parses,
                records,
                barred=barred_documents(still, version, present),
                earlier=earlier,
                only=selected,
                narrow=narrow,
            )
            existing += split.existing.height
            excluded.append(split.excluded)
            packs = parses.select("checksum", "text_pack")
            keep(_rows(version, split.fresh.join(packs, on="checksum", how="left"), replay_reason))
    return Found(existing, pl.concat(excluded).sort("document_no"))


def _rows(version: OpenVersion, fresh: pl.DataFrame, replay_reason: str | None) -> pl.DataFrame:
    spec = version.spec
    return fresh.with_columns(
        record_id=record_id(spec.workload, pl.col("document_id"), pl.col("checksum"), spec.key),
        operation=pl.lit(spec.operation),
        replay_reason=pl.lit(replay_reason) if replay_reason else pl.col("replay_reason"),
    )
