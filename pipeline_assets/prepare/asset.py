"""The asset of prepare: `manifest`.

Belongs here: configuration, the call, metadata. Does not belong here: what goes into a manifest
(`candidates.py`), freezing it (`freeze.py`) and retries (`retries.py`).
"""

import time
from typing import Any

import dagster as dg
from pydantic import Field

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.prepare.freeze import FreezeReport, freeze_manifest
from pipeline_assets.prepare.replays import ReplayReport, freeze_replay
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.replay.model import ReplayRefused, ReplayRequest, replay_id_of
from pipeline_assets.replay.plan import split_reason
from pipeline_assets.replay.reasons import REPLAY_REASONS
from pipeline_assets.stage_facts import manifests_digest
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

NOTHING_TO_DO = (
    "nothing to do: every present document has a record or is excluded. To process some again, "
    "materialise with replay_from (a version), note (why) and, if not all are meant, where"
)
NOTHING_SELECTED = "the replay selected nothing that can be processed"
REPEATED = "the replay was carried out before; nothing was done again"
NOTHING_FROZEN = FreezeReport(None, None, 0, 0, 0, {})
MANIFEST_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("record_id", "String", "workload, document, checksum and version"),
        dg.TableColumn("business_key", "String", "the document's id"),
        dg.TableColumn("operation", "String", "the kind of work"),
        dg.TableColumn("schema_version", "Int64", "of the output schema"),
        dg.TableColumn("source_checksum", "String", "SHA-256 of the document's bytes"),
        dg.TableColumn("request_digest", "String", "SHA-256 of the frozen request body"),
        dg.TableColumn("replay_reason", "String", "why the record is processed"),
        dg.TableColumn("batch", "Int64", "number of its batch in the manifest, from 0"),
        dg.TableColumn("offset", "Int64", "of the request in the batch's file, in bytes"),
        dg.TableColumn("length", "Int64", "of the request, in bytes"),
    ]
)
MANIFEST_LINEAGE = dg.TableColumnLineage(
    {
        "record_id": [dg.TableColumnDep(dg.AssetKey("source_documents"), "document_id")],
        "business_key": [dg.TableColumnDep(dg.AssetKey("source_documents"), "document_id")],
        "source_checksum": [dg.TableColumnDep(dg.AssetKey("parsed_documents"), "checksum")],
        "request_digest": [dg.TableColumnDep(dg.AssetKey("parsed_documents"), "text")],
    }
)


class FreezeConfig(dg.Config):
    """What freezing may be told."""

    replay_from: str | None = Field(
        default=None,
        description="replay: the version whose records are processed under this one; its own key "
        "for another attempt at its own records",
    )
    where: str | None = Field(
        default=None,
        description="replay: which of them, for example: identifiers > 1 and state = published",
    )
    documents: list[str] | None = Field(
        default=None, description="replay: ids of the only documents that are meant"
    )
    note: str | None = Field(
        default=None, description="replay: why, in your own words; kept beside every record"
    )
    actor: str | None = Field(default=None, description="replay: who asks for it")
    replay_reason: str | None = Field(
        default=None,
        description="why documents are processed, where it is not told from the versions: one of "
        + ", ".join(REPLAY_REASONS),
    )
    retries_only: bool = Field(
        default=False,
        description="freeze only what is due for another attempt, no document that is new",
    )


@dg.asset(
    deps=["parsed_documents"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"parquet", "json"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": MANIFEST_COLUMNS,
        "dagster/column_lineage": MANIFEST_LINEAGE,
    },
)
def manifest(
    context: dg.AssetExecutionContext, tallybook: ContextResource, config: FreezeConfig
) -> dg.MaterializeResult:
    """The frozen, digested list of records to process, and their request files of exact bytes.

    A manifest never changes. Where every present document has a record, nothing new is frozen;
    records that are due for another attempt get a retry manifest. With `replay_from`, exactly the
    selected records are processed, and no document that is new.
    """
    started = time.monotonic()
    replayed: ReplayReport | None = None
    with tallybook.open() as opened:
        require_one_meaning(config)
        version = open_version(opened, context.partition_key)
        report = NOTHING_FROZEN
        if config.replay_from is not None:
            request = _request(context, config, config.replay_from, opened.settings.owner)
            replayed = freeze_replay(opened, version, request)
        elif not config.retries_only:
            report = freeze_manifest(opened, version, replay_reason=config.replay_reason)
        again = freeze_retries(opened, version)
        content = manifests_digest(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, content)
    metadata: dict[str, dg.RawMetadataValue] = {
        "batches": report.batches + again.batches,
        "seconds": round(time.monotonic() - started, 3),
    }
    if replayed is not None:
        metadata |= _of_replay(context, replayed)
    elif not config.retries_only:
        metadata |= {
            "dagster/partition_row_count": report.expected + report.already,
            "expected": report.expected,
            "expected by reason": report.reasons,
            "already recorded": report.already,
            "excluded": sum(report.excluded.values()),
            "excluded by reason": report.excluded,
        }
    if again.manifest_id is not None:
        metadata |= {
            "retry manifest": again.manifest_id,
            "tried again": again.records,
            "tried again by path": again.paths,
        }
        context.log.info(f"{again.manifest_id}: {again.records} records are tried again")
    if again.refused:
        metadata["given up"] = again.refused
    if again.waiting is not None:
        metadata["retries wait"] = again.waiting
        context.log.info(f"retries wait: {again.waiting}")
    if report.manifest_id is None and again.manifest_id is None and replayed is None:
        metadata["note"] = NOTHING_TO_DO
        context.log.info(NOTHING_TO_DO)
    if report.manifest_id is not None:
        metadata |= {"manifest": report.manifest_id, "manifest digest": str(report.digest)}
        context.log.info(f"{report.manifest_id}: {report.expected} records")
    return materialized(provenance, metadata)


def require_one_meaning(config: FreezeConfig) -> None:
    """Refuse a configuration that says a replay by half: it would freeze all that is new.

    Raises:
        ReplayRefused: a selection without the version to select from, or both at once.
    """
    if config.replay_from is not None:
        if config.retries_only:
            raise ReplayRefused(
                "retries_only and replay_from exclude each other: a replay freezes what it selects."
                " Leave one of them out. Nothing was frozen."
            )
        return
    given = [
        name
        for name in ("where", "documents", "note", "actor")
        if getattr(config, name) is not None
    ]
    if given:
        raise ReplayRefused(
            f"the configuration gives {', '.join(given)} without replay_from, so every new "
            "document would be processed, whatever is selected. Give replay_from, the version "
            "whose records are meant, or leave the others out. Nothing was frozen."
        )


def _request(
    context: dg.AssetExecutionContext, config: FreezeConfig, from_key: str, owner: str
) -> ReplayRequest:
    """The replay that the run's configuration asks for; the same one when the run is repeated."""
    word, note = split_reason(config.note or "")
    return ReplayRequest(
        replay_id=replay_id_of(
            context.partition_key, context.run.root_run_id or context.run.run_id
        ),
        from_key=from_key,
        where=config.where,
        documents=None if config.documents is None else tuple(config.documents),
        reason=config.replay_reason or word,
        note=note,
        actor=config.actor or owner,
    )


def _of_replay(context: dg.AssetExecutionContext, report: ReplayReport) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if report.replay is not None:
        found |= {
            "replay": report.replay.replay_id,
            "replayed from": report.replay.from_version,
            "replay reason": report.replay.reason,
            "why": report.replay.note,
            "selected": report.replay.selected,
            "manifest": str(report.replay.manifest_id),
        }
    if report.plan is not None:
        found |= {
            "expected": report.records,
            "dagster/partition_row_count": report.records,
            "left out by why": report.plan.skipped,
            "differs in": ", ".join(report.plan.changes),
        }
        if report.plan.replay.expression is not None:
            found["where"] = report.plan.replay.expression
    if report.repeated:
        found["note"] = REPEATED
    elif report.replay is None:
        found["note"] = NOTHING_SELECTED
    context.log.info(str(found.get("note") or f"{report.records} records are processed"))
    return found
