"""The resource: expected errors become one line, everything else stays what it is."""

from __future__ import annotations

import errno
import random
import traceback
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from pipeline_assets.expected_errors import EXPECTED_ERRORS
from resources.context_resource import (
    NO_SPACE,
    ContextOpening,
    ContextResource,
    StepBroke,
    process_tags,
    tagged_process,
)
from resources.processes import ProcessIdentity, this_process
from resources.settings import load_settings
from resources.sources.port import SourceMissing


@pytest.fixture
def resource(tmp_path: Path) -> ContextResource:
    settings = load_settings(state=tmp_path / "state")
    return ContextResource(opening=ContextOpening(settings, EXPECTED_ERRORS))


def test_context_is_open_inside_the_block(resource: ContextResource, tmp_path: Path) -> None:
    with resource.open() as context:
        assert context.settings.state_folder == tmp_path / "state"
        assert context.clock().tzinfo is UTC
        assert isinstance(context.rng, random.Random)
        with context.ledger.read() as connection:
            assert connection.closed is False


def test_clock_and_progress_are_those_that_were_given(tmp_path: Path) -> None:
    moment = datetime(2031, 5, 6, tzinfo=UTC)
    settings = load_settings(state=tmp_path / "state")
    opening = ContextOpening(settings, EXPECTED_ERRORS, clock=lambda: moment)
    with ContextResource(opening=opening).open() as context:
        assert context.ledger.now().startswith("2031-05-06")
        assert context.progress is opening.progress


def test_expected_error_is_told_in_one_line_and_not_tried_again(resource: ContextResource) -> None:
    with pytest.raises(dg.Failure) as caught, resource.open():
        raise SourceMissing("the folder is not there. Correct --source.")
    assert caught.value.description == "the folder is not there. Correct --source."
    assert caught.value.allow_retries is False
    assert isinstance(caught.value.__cause__, SourceMissing)


def test_ledger_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"this is no database at all" * 100)
    resource = ContextResource(
        opening=ContextOpening(load_settings(state=tmp_path), EXPECTED_ERRORS)
    )
    with pytest.raises(dg.Failure) as caught, resource.open():
        pytest.fail("it was opened")
    assert "is not a Tallybook ledger" in str(caught.value.description)


def test_full_disk_is_told(resource: ContextResource) -> None:
    with pytest.raises(dg.Failure) as caught, resource.open():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.description == NO_SPACE


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ValueError("cannot read 'text of a page'"), id="mistake"),
        pytest.param(OSError(errno.EIO, "text of a page"), id="other-os-error"),
    ],
)
def test_mistake_keeps_its_place_and_loses_its_message(
    resource: ContextResource, error: Exception
) -> None:
    with pytest.raises(StepBroke) as caught, resource.open():
        raise error
    assert caught.value.error is error
    told = "".join(traceback.format_exception(caught.value))
    assert type(error).__name__ in told
    assert "test_mistake_keeps_its_place" in told
    assert "text of a page" not in told


def test_interrupt_is_let_through(resource: ContextResource) -> None:
    with pytest.raises(KeyboardInterrupt), resource.open():
        raise KeyboardInterrupt


def test_event_log_holds_no_message_of_a_mistake(resource: ContextResource) -> None:
    def break_down(tallybook: ContextResource) -> None:
        with tallybook.open():
            int("text of a page")

    break_down.__annotations__["tallybook"] = ContextResource
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [dg.asset(break_down)],
            instance=instance,
            resources={"tallybook": resource},
            raise_on_error=False,
        )
        log = "".join(str(entry) for entry in instance.all_logs(result.run_id))
    assert "StepBroke" in log
    assert "unexpected ValueError" in log
    assert "invalid literal" not in log


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(ProcessIdentity(17, "host-a", "boot:12"), id="whole"),
        pytest.param(ProcessIdentity(1, "host-a", ""), id="without-start"),
    ],
)
def test_process_survives_its_tags(process: ProcessIdentity) -> None:
    assert tagged_process(process_tags(process, "run-1"), "run-1") == process


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param({}, id="none"),
        pytest.param({"tallybook/pid": "12"}, id="no-host"),
        pytest.param({"tallybook/pid": "twelve", "tallybook/host": "a"}, id="no-number"),
        pytest.param({"tallybook/pid": "-1", "tallybook/host": "a"}, id="negative"),
    ],
)
def test_tags_that_name_no_process(tags: dict[str, str]) -> None:
    assert tagged_process(tags | {"tallybook/process_run": "run-1"}, "run-1") is None


def test_tags_that_a_run_inherited_name_no_process() -> None:
    """Else a re-execution would be closed as a leftover while it starts."""
    assert tagged_process(process_tags(this_process(), "parent"), "child") is None


def test_a_run_is_marked_with_the_process_that_works_on_it(resource: ContextResource) -> None:
    """Whoever launched it: without this nobody could tell a leftover of the user interface."""

    def touch(tallybook: ContextResource) -> None:
        with tallybook.open():
            pass

    touch.__annotations__["tallybook"] = ContextResource
    asset = dg.asset(touch)
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([asset], instance=instance, resources={"tallybook": resource})
        run = instance.get_run_by_id(result.run_id)
        assert run is not None
        assert tagged_process(run.tags, run.run_id) == this_process()
