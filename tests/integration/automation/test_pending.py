"""Work that `provider_batch_monitor` finds besides jobs at providers."""

from __future__ import annotations

from pipeline_assets.automation.pending import Pending, pending_versions
from resources.ledger.moves import Cause
from resources.ledger.versions import set_operating
from tests.integration.automation.support import Desk
from tests.integration.replay.support import ONE

CAUSE = Cause("for the test", "tester", "2030-01-02T03:04:05.000000Z", "test")


def found(desk: Desk) -> list[tuple[str, tuple[str, ...]]]:
    pending, troubles = pending_versions(desk.context)
    assert troubles == {}
    return [(work.key, work.why) for work in pending]


def test_embedded_batches_that_a_manifest_alone_left(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.prepare(ONE)
    assert found(desk) == [(ONE, ("answer",))]
    desk.go_on(ONE)
    assert found(desk) == []


def test_accepted_records_that_nobody_published(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    version = desk.accept(ONE)
    assert found(desk) == [(ONE, ("publish",))]
    marks: list[Pending] = pending_versions(desk.context)[0]
    assert pending_versions(desk.context)[0] == marks, "the same work"
    set_operating(desk.context.ledger, version.version_no, "promote", "manual", CAUSE)
    assert found(desk) == [], "they wait for the command"
    set_operating(desk.context.ledger, version.version_no, "promote", "auto", CAUSE)
    desk.publish(ONE)
    assert found(desk) == []
