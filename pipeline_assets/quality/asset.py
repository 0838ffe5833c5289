"""The asset of quality: `quality_sample`.

Belongs here: the call and its metadata. Does not belong here: drawing (`draw.py`) and what the
decisions say (`error_rates.py`).
"""

import time

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.quality.draw import draw_sample
from pipeline_assets.quality.error_rates import ErrorRates, error_rates
from pipeline_assets.stage_facts import samples_digest
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

REASON = "records were accepted"
NOTHING_TO_DO = "nothing to do: no accepted record is missing from the sample"
SAMPLE_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("record_no", "Int64", "the record that was drawn"),
        dg.TableColumn("attempt_no", "Int64", "the try whose answer is looked at"),
        dg.TableColumn("slice", "String", "language, length and origin of its document"),
        dg.TableColumn("values_digest", "String", "SHA-256 of the values that the rules accepted"),
        dg.TableColumn("decision", "String", "accept, correct or reject; null while it waits"),
    ]
)
SAMPLE_LINEAGE = dg.TableColumnLineage(
    {
        name: [dg.TableColumnDep(dg.AssetKey("validated_staging"), name)]
        for name in ("record_no", "attempt_no", "values_digest")
    }
    | {"slice": [dg.TableColumnDep(dg.AssetKey("parsed_documents"), "text")]}
)


@dg.asset(
    deps=["published_archive"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"sql", "polars"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": SAMPLE_COLUMNS,
        "dagster/column_lineage": SAMPLE_LINEAGE,
    },
)
def quality_sample(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """A stratified sample of accepted records for review, and the error rate found so far.

    Drawing again adds what was accepted since; nothing is drawn twice.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = draw_sample(opened, version, REASON, opened.settings.owner)
        with opened.ledger.read() as connection:
            rates = error_rates(connection, opened.ledger, version.version_no)
        content = samples_digest(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, content)
    metadata: dict[str, dg.RawMetadataValue] = {
        "dagster/partition_row_count": report.sampled,
        "drawn": report.drawn,
        "drawn by slice": report.by_slice,
        "accepted by rules": report.population,
        **_numbers(rates),
        "seconds": round(time.monotonic() - started, 3),
    }
    if not report.drawn:
        metadata["note"] = NOTHING_TO_DO
    context.log.info(f"{report.drawn} records drawn, {report.sampled} in the sample")
    return materialized(provenance, metadata)


def _numbers(rates: ErrorRates | None) -> "dict[str, dg.RawMetadataValue]":
    """The rates as numbers that Dagster plots; there is no rate before the first decision."""
    if rates is None:
        return {"waiting": 0, "decided": 0, "errors": 0}
    found: dict[str, dg.RawMetadataValue] = {
        "waiting": rates.waiting,
        "decided": rates.decided,
        "errors": rates.errors,
        "by slice": {
            entry.slice: {
                "population": entry.population,
                "drawn": entry.drawn,
                "decided": entry.decided,
                "errors": entry.errors,
                "error rate": entry.rate,
            }
            for entry in rates.by_slice
        },
    }
    if rates.rate is not None and rates.low is not None and rates.high is not None:
        found |= {
            "error rate": rates.rate,
            "error rate, low": rates.low,
            "error rate, high": rates.high,
            "records that the rate speaks of": rates.looked_at,
        }
    return found
