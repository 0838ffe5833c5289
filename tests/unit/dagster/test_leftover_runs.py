"""Which runs are leftovers: the decision as a table, on runs as Dagster keeps them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import dagster as dg
import pytest

from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS
from pipeline_assets.cli.leftover_runs import close_leftovers, find_leftovers, judge
from resources.context_resource import process_tags
from resources.processes import ProcessIdentity, this_process

NOW = datetime(2030, 1, 2, 12, 0, tzinfo=UTC)
ALIVE = this_process()
DEAD = replace(this_process(), started="an-earlier-boot:1")
ELSEWHERE = replace(this_process(), host="elsewhere.example")
Status = dg.DagsterRunStatus


def run_with(
    status: dg.DagsterRunStatus = Status.STARTED,
    process: ProcessIdentity | None = None,
    **tags: str,
) -> dg.DagsterRun:
    run_id = str(uuid4())
    given = {name.replace("__", "/"): value for name, value in tags.items()}
    if process is not None:
        given |= process_tags(process, run_id)
    return dg.DagsterRun("process_version", run_id=run_id, status=status, tags=given)


@pytest.mark.parametrize(
    ("run", "minutes", "expected"),
    [
        pytest.param(run_with(process=DEAD), 1, True, id="dead-process"),
        pytest.param(run_with(Status.STARTING, DEAD), 1, True, id="dead-process-starting"),
        pytest.param(run_with(Status.CANCELING, DEAD), 1, True, id="dead-process-canceling"),
        pytest.param(run_with(Status.NOT_STARTED, DEAD), 1, True, id="dead-before-its-start"),
        pytest.param(run_with(process=ALIVE), 1, None, id="running"),
        pytest.param(
            run_with(process=ALIVE), 600, None, id="running-too-long-is-alive-all-the-same"
        ),
        pytest.param(run_with(process=ELSEWHERE), 1, False, id="other-host-recent"),
        pytest.param(run_with(process=ELSEWHERE), 61, True, id="other-host-over-its-limit"),
        pytest.param(run_with(), 1, None, id="untagged-recent"),
        pytest.param(run_with(), 61, True, id="untagged-over-its-limit"),
        pytest.param(
            run_with(dagster__max_runtime="60"), 2, True, id="untagged-over-its-own-limit"
        ),
        pytest.param(run_with(dagster__max_runtime="soon"), 59, None, id="limit-that-is-no-number"),
        pytest.param(run_with(Status.NOT_STARTED), 600, None, id="untagged-never-started"),
    ],
)
def test_judge(run: dg.DagsterRun, minutes: int, expected: bool | None) -> None:
    found = judge(run, NOW - timedelta(minutes=minutes), NOW)
    assert (None if found is None else found.dead) is expected


def test_limit_is_that_of_the_job() -> None:
    just = NOW - timedelta(seconds=MAX_RUNTIME_SECONDS)
    assert judge(run_with(), just, NOW) is None
    assert judge(run_with(), just - timedelta(seconds=1), NOW) is not None


def test_time_without_a_zone_is_utc() -> None:
    """Dagster's storages give such times."""
    found = judge(run_with(), (NOW - timedelta(hours=2)).replace(tzinfo=None), NOW)
    assert found is not None
    assert found.age == timedelta(hours=2)


def test_only_what_is_dead_is_closed() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        runs = {
            name: instance.add_run(run_with(status, process, dagster__partition=name))
            for name, status, process in (
                ("dead", Status.STARTED, DEAD),
                ("alive", Status.STARTED, ALIVE),
                ("elsewhere", Status.STARTED, ELSEWHERE),
                ("over", Status.SUCCESS, DEAD),
                ("nobody's", Status.STARTED, None),
            )
        }
        now = datetime.now(UTC)
        assert [(one.version, one.dead) for one in find_leftovers(instance, now)] == [
            ("dead", True),
            ("elsewhere", False),
        ]
        closed = close_leftovers(instance, now)
        assert [one.run_id for one in closed] == [runs["dead"].run_id]
        statuses = {
            name: after.status
            for name, run in runs.items()
            if (after := instance.get_run_by_id(run.run_id)) is not None
        }
        assert statuses == {
            "dead": Status.FAILURE,
            "alive": Status.STARTED,
            "elsewhere": Status.STARTED,
            "over": Status.SUCCESS,
            "nobody's": Status.STARTED,
        }
        assert close_leftovers(instance, now) == []
