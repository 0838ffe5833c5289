"""What the packaged versions of this workload would send: every provider takes it."""

from __future__ import annotations

import json

import pytest

from partitions.processing_version import PACKAGED_SPECS, Spec, read_spec
from pipeline_assets.canary.make import make_canary
from pipeline_assets.prompting.request_maker import RequestMaker, make_request_maker
from pipeline_assets.versions import OpenVersion
from resources.ledger.versions import FrozenVersion
from resources.providers.admission import PlannedJob, check_job
from resources.providers.capabilities import find_capability
from tests.unit.workloads.support_tickets.support import WORKLOAD

SPECS = [
    spec
    for file in sorted(PACKAGED_SPECS.glob("tickets-*.yaml"))
    if (spec := read_spec(file)).request is not None
]


def maker_of(spec: Spec) -> RequestMaker:
    frozen = FrozenVersion(0, spec.key, spec.workload, "0" * 64, "active", "never used")
    return make_request_maker(OpenVersion(spec, WORKLOAD, frozen))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
def test_a_job_of_tickets_is_admitted(spec: Spec) -> None:
    assert spec.request is not None
    assert spec.mode in ("batch", "online")
    maker = maker_of(spec)
    canary = make_canary(maker, "combination", "0123456789ab", 0)
    assert len(canary.lines) == len(WORKLOAD.canary()) + 2, "the largest and the broken one"
    endpoint = maker.wire.endpoint
    capability = find_capability(spec.provider, spec.model, endpoint, spec.mode)
    job = PlannedJob(
        records=len(canary.lines),
        size=sum(map(len, canary.lines)),
        largest_line=max(map(len, canary.lines)),
        output_tokens=spec.request.output_tokens,
        largest_prompt_tokens=canary.input_tokens,
        schema=maker.ask.schema,
        window_hours=spec.request.window_hours if spec.mode == "batch" else None,
    )
    assert [str(refusal) for refusal in check_job(capability, job)] == []


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
def test_a_ticket_stands_in_the_request_as_it_is(spec: Spec) -> None:
    maker = maker_of(spec)
    text = "subject: It leaks\n\nbody: {pages} stay as they are."
    (rendered,) = maker.render([("doc-0123456789abcdef", [(1, text)])])
    body = json.loads(maker.body("doc-0123456789abcdef", rendered.text))  # type: ignore[union-attr]
    assert json.dumps(text)[1:-1] in json.dumps(body)
