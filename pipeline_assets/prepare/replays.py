"""Carrying a replay out: selecting under the version's lease, and freezing what was selected.

Belongs here: the order of the steps. Does not belong here: what is selected
(`pipeline_assets/replay`), new records (`freeze.py`), other attempts at records (`retries.py`).

The replay, its selection and its manifest are one transaction: a worker that is killed before it
has done nothing, and one that is killed after it has done all.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_assets.prepare.freeze import freeze_selected
from pipeline_assets.prepare.retries import attempt_again
from pipeline_assets.replay.model import ReplayPlan, ReplayRefused, ReplayRequest
from pipeline_assets.replay.plan import plan_replay
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.leases import held
from resources.ledger.replays import Replay, find_replay


@dataclass(frozen=True)
class ReplayReport:
    """What came of a replay.

    Attributes:
        plan: what was selected; None if the replay had been carried out before.
        replay: as the ledger has it now; None where nothing could be processed.
        repeated: the same replay was asked for before; nothing was done now.
        records: records that are processed again, or for the first time under the version.
        batches: batches that were frozen.
    """

    plan: ReplayPlan | None
    replay: Replay | None
    repeated: bool = False
    records: int = 0
    batches: int = 0


def freeze_replay(context: Context, version: OpenVersion, request: ReplayRequest) -> ReplayReport:
    """Carry a replay out, once.

    Raises:
        ReplayRefused, WhereError: it cannot be asked for, or one of its name was and is another.
        TooFewToRetry: the provider takes no batch of so few.
        LeaseHeld: another worker is freezing this version.
        see also `freeze_manifest` and `requeue`.
    """
    with held(context.ledger, f"manifest:{version.key}", context.worker) as lease:
        known = find_replay(context.ledger, request.replay_id)
        if known is not None:
            _require_same(known, version, request)
            return ReplayReport(None, known, repeated=True)
        plan = plan_replay(context, version, request)
        if plan.members.is_empty():
            return ReplayReport(plan, None)
        if plan.same:
            again = attempt_again(context, version, lease, plan)
            records, batches = again.records, again.batches
        else:
            report = freeze_selected(context, version, lease, plan)
            records, batches = report.expected, report.batches
    return ReplayReport(
        plan,
        find_replay(context.ledger, request.replay_id),
        records=records,
        batches=batches,
    )


def _require_same(known: Replay, version: OpenVersion, request: ReplayRequest) -> None:
    """A name that is taken by another replay must not pass for this one being done."""
    listed = None if request.documents is None else len(set(request.documents))
    asked = (request.from_key, version.key, request.where, listed)
    if asked != (known.from_version, known.to_version, known.expression, known.listed):
        raise ReplayRefused(
            f"the replay {known.replay_id} was carried out before with another selection (from "
            f"{known.from_version}, {known.expression or 'without a filter'}), and a run that is "
            "started again means the same one. Start a new run for this one; nothing was done."
        )
