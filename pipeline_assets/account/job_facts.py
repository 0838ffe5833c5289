"""One provider job as it is shown: its life, intents, files and cost.

Belongs here: gathering. Does not belong here: the job's life itself (`provider_jobs`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pipeline_assets.costs import job_cost
from resources.context import Context
from resources.ledger.intents import intents_of
from resources.ledger.jobs import JobRow
from resources.ledger.online_groups import online_costs
from resources.ledger.results import result_files_of

LEFT_OUT = frozenset({"no", "version_no", "remote_files"})


def job_facts(context: Context, job: JobRow) -> dict[str, Any]:
    """Everything about a job as plain values; `intents` and `result_files` are lists."""
    facts = {name: value for name, value in asdict(job).items() if name not in LEFT_OUT}
    cost = job_cost(context, job)
    if cost is not None:
        facts |= {
            "cost_usd": "unknown" if cost.amount is None else format(cost.amount, "f"),
            "cost_basis": cost.basis,
            "cost_source": cost.package,
            "cost_note": cost.note,
            "input_tokens_used": cost.input_tokens,
            "output_tokens_used": cost.output_tokens,
            "rows_without_usage": cost.rows_without_usage,
        }
    if job.mode == "online" and job.machine == "batch":
        facts |= {
            f"online_{name}": value
            for name, value in asdict(online_costs(context.ledger, job.no)).items()
        }
    facts["intents"] = [
        {
            "intent_id": entry.intent_id,
            "account": entry.account_fingerprint,
            "recorded_at": entry.recorded_at,
            "outcome": entry.outcome,
            "provider_job_id": entry.provider_job_id,
            "detail": entry.detail,
            "settled_at": entry.settled_at,
        }
        for entry in intents_of(context.ledger, job)
    ]
    files = result_files_of(context.ledger, job.no) if job.machine == "batch" else None
    facts["result_files"] = (
        []
        if files is None
        else [
            {"kind": kind, "lines": lines, "bytes": size, "artifact": artifact}
            for kind, lines, size, artifact in files.select(
                "kind", "lines", "bytes", "artifact"
            ).iter_rows()
        ]
    )
    return facts
