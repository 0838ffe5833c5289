"""The walk of a folder through the real stages, answered by the small model.

Belongs here: the spec, the two replacements that a trial of an unknown model needs, and the
stages in order. Does not belong here: the model (`model_server.py`), what came of it
(`findings.py`).

Replaced, in this process alone:

- the capability table: the packaged one and a row of our own (`capabilities.yaml`);
- the canary's gate: the canary is made, sent and judged as ever, and what it says is told. Such a
  model fails it, rightly, and then nothing would be sent at all. Here it is sent all the same,
  since what is asked is what acceptance does with the answers of a model that must not be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.canary_facts import canary_facts, canary_rows
from pipeline_assets.account.integrity import release_dead_leases
from pipeline_assets.canary.gate import GateDecision
from pipeline_assets.canary.run import pass_canary
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.costs.gate import BudgetGate
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.provider_jobs.clients import LazyClient
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit import submit_batches as submitting
from pipeline_assets.versions import OpenVersion, open_version
from resources.context import Context
from resources.ledger.versions import set_operating
from resources.providers import capabilities
from resources.providers.capabilities import CapabilityTable, packaged_table, read_table
from tests.realmodel.model_server import MODEL

SPEC = "manuals-openai-online-2"
KEY = "manuals-smallmodel-online-1"
DOCUMENT_TOKENS = 1_500
OUTPUT_TOKENS = 700
_TABLE = Path(__file__).with_name("capabilities.yaml")


class WalkStopped(RuntimeError):
    """Records stayed unanswered."""

    def __init__(self, waiting: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in sorted(waiting.items())))


@dataclass(frozen=True)
class CanaryVerdict:
    """What the canary said before the gate was opened.

    Attributes:
        state: `passed` or `failed`.
        findings: (document, check, note) of each.
    """

    state: str
    findings: tuple[tuple[str, str, str], ...]


def write_spec(folder: Path, document_tokens: int = DOCUMENT_TOKENS) -> None:
    """Write the version that asks the small model: the packaged one of OpenAI, made smaller."""
    spec: dict[str, Any] = yaml.safe_load(
        (PACKAGED_SPECS / f"{SPEC}.yaml").read_text(encoding="utf-8")
    )
    spec |= {
        "key": KEY,
        "description": "A trial of a small model behind a compatible server",
        "model": MODEL,
        "endpoint": "/v1/chat/completions",
    }
    spec["request"] |= {"document_tokens": document_tokens, "output_tokens": OUTPUT_TOKENS}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{KEY}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")


def table_with_own_row() -> CapabilityTable:
    """The packaged capability table and the small model's row."""
    packaged, own = packaged_table(), read_table(_TABLE.read_text(encoding="utf-8"))
    return replace(
        packaged, sources={**packaged.sources, **own.sources}, rows=packaged.rows + own.rows
    )


@contextmanager
def trial(canary: bool) -> Iterator[None]:
    """Make the two replacements for the length of a block.

    Args:
        canary: send it and look at its verdict; else it is not even made, to save its time.
    """

    def opened(
        context: Context,
        version: OpenVersion,
        client: LazyClient,
        budget: BudgetGate | None = None,
    ) -> GateDecision:
        if not canary:
            return GateDecision("open", "opened by the trial, without a canary")
        decision = pass_canary(context, version, client, budget)
        if decision.gate != "closed":
            return decision
        return GateDecision("open", f"opened by the trial: {decision.reason}")

    table = table_with_own_row()
    with (
        patch.object(capabilities, "packaged_table", lambda: table),
        patch.object(submitting, "pass_canary", opened),
    ):
        yield


def walk(context: Context, *, canary: bool) -> None:
    """Every stage, from the folder to the archive of this state; goes on where it was ended.

    Raises:
        WalkStopped: not every record was answered.
    """
    release_dead_leases(context)
    with trial(canary):
        version = open_version(context, KEY)
        cause = context.cause("one call at a time, and unusable answers are the point", "trial")
        set_operating(context.ledger, version.version_no, "online_concurrency", "1", cause)
        set_operating(context.ledger, version.version_no, "breaker_window", "0", cause)
        scan_declared(context)
        parse_documents(context, parser_settings(version.spec), version.spec.workload)
        freeze_manifest(context, version)
        report = submitting.submit_batches(context, version)
        if report.waiting:
            raise WalkStopped(report.waiting)
        collect_batches(context, version)
        judge_batches(context, version)
        publish_accepted(context, version)


def canary_verdict(context: Context) -> CanaryVerdict | None:
    """What the newest canary said; None where none was judged."""
    judged = [row for row in canary_rows(context) if row["state"] in ("passed", "failed")]
    if not judged:
        return None
    facts = canary_facts(context, judged[0]["canary_id"])
    return CanaryVerdict(
        facts["state"],
        tuple((entry["document"], entry["check"], entry["note"]) for entry in facts["findings"]),
    )
