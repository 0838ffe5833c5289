"""Symptoms that people reported of batch jobs, planted one at a time after the canary has passed.

Each has the number that it has in the list of public symptoms. Whatever the symptom: nothing wrong
is published, nothing is run twice, the account adds up, and a version with a rest is not done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from partitions import processing_version
from pipeline_assets.canary.run import gate_of
from pipeline_assets.versions import open_version
from resources.providers.admission import JobRefused
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, provider_walk

DOCUMENTS = 4
PACKAGED = Path(processing_version.__file__).parent / "versions"


@dataclass(frozen=True)
class Symptom:
    """A planted symptom and what must come of it.

    Attributes:
        plant: plants it.
        classes: failure class (`none` before any disposition) → documents not published.
        states: their states.
        executed: rows that the provider runs; None where the symptom is not about that.
        alerts: kinds that are open in the end.
        provider: whose job it is.
        steps: passes over the stages at most, for what never settles.
        settles: every planted fault strikes as often as it should.
    """

    plant: Callable[[ProviderWalk], None]
    classes: dict[str, int] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    executed: int | None = DOCUMENTS
    alerts: frozenset[str] = frozenset()
    provider: str = "openai"
    steps: int = 18
    settles: bool = True


def cut_at_the_deadline(walk: ProviderWalk) -> None:
    walk.set_operating("deadline_policy", "cancel_and_collect")
    walk.plant("job", "stuck")


SYMPTOMS: dict[str, Symptom] = {
    "1-cut-download": Symptom(lambda walk: walk.plant("download", "cut", times=2, bytes=700)),
    "2-cut-at-a-newline": Symptom(
        lambda walk: walk.plant("download", "truncate_at_newline", times=1)
    ),
    "3-token-limit": Symptom(
        lambda walk: walk.plant("job", "failed", code="token_limit_exceeded"),
        {"capacity": 4},
        {"retry_wait": 4},
        executed=0,
    ),
    "4-status-zero": Symptom(
        lambda walk: walk.plant("row", "status_zero", match={"index": 1}),
        {"transport": 1},
        {"retry_wait": 1},
        executed=3,
    ),
    "5-only-an-error-file": Symptom(
        lambda walk: walk.plant("job", "all_failed", status=400),
        {"invalid_request": 4},
        {"dead_letter": 4},
        executed=0,
    ),
    "6-expired-half-way": Symptom(
        lambda walk: walk.plant("job", "expired", done=0.5),
        {"expired": 2},
        {"retry_wait": 2},
        executed=2,
    ),
    "6-cancelled-half-way": Symptom(
        lambda walk: walk.plant("job", "cancelled", done=0.5),
        {"cancelled": 2},
        {"retry_wait": 2},
        executed=2,
    ),
    "7-pending-for-ever": Symptom(
        lambda walk: walk.plant("job", "stuck"),
        {"none": 4},
        {"submitted": 4},
        executed=0,
        alerts=frozenset({"deadline"}),
        provider="gemini",
    ),
    "7-cancelled-at-the-deadline": Symptom(
        cut_at_the_deadline, {"cancelled": 4}, {"retry_wait": 4}, executed=0
    ),
    "9-swapped-bodies": Symptom(
        lambda walk: walk.plant("lines", "swap", a=0, b=1),
        {"none": 2},
        {"awaiting_review": 2},
        provider="gemini",
    ),
    "10-shifted-answers": Symptom(
        lambda walk: walk.plant("lines", "shift"), {"none": 4}, {"awaiting_review": 4}
    ),
    "11-not-collectable": Symptom(
        lambda walk: walk.plant("download", "status", times=None, status=400),
        {"none": 4},
        {"submitted": 4},
        alerts=frozenset({"not_collectable"}),
        steps=4,
        settles=False,
    ),
    "14-repetition": Symptom(
        lambda walk: walk.plant("row", "repetition", times=4),
        {"truncated": 4},
        {"retry_wait": 4},
        provider="gemini",
    ),
    "15-no-finish-reason": Symptom(
        lambda walk: walk.plant("row", "no_finish", match={"index": 0}),
        {"truncated": 1},
        {"retry_wait": 1},
        provider="anthropic",
    ),
    "16-prose-among-json": Symptom(
        lambda walk: walk.plant("row", "prose", match={"index": 0}),
        {"malformed_json": 1},
        {"dead_letter": 1},
    ),
    "18-crlf": Symptom(lambda walk: walk.plant("lines", "crlf"), provider="anthropic"),
    "19-line-separator": Symptom(
        lambda walk: walk.plant("row", "raw_u2028", times=4), provider="anthropic"
    ),
    "20-same-row-twice": Symptom(lambda walk: walk.plant("lines", "duplicate", index=1)),
    "21-502-on-polls": Symptom(
        lambda walk: walk.plant("retrieve", "status", times=3, status=502), provider="anthropic"
    ),
    "22-row-missing": Symptom(
        lambda walk: walk.plant("lines", "missing", index=2),
        {"missing_result": 1},
        {"retry_wait": 1},
    ),
    "25-job-failed": Symptom(
        lambda walk: walk.plant("job", "failed", code="internal_error"),
        {"server_error": 4},
        {"retry_wait": 4},
        executed=0,
        provider="gemini",
    ),
    "26-one-broken-line": Symptom(
        lambda walk: walk.plant("lines", "malformed", index=3),
        {"missing_result": 1},
        {"retry_wait": 1},
    ),
    "27-404-for-a-while": Symptom(
        lambda walk: walk.plant("retrieve", "status", times=2, status=404), provider="anthropic"
    ),
    "28-inline-results": Symptom(lambda walk: walk.plant("job", "inline"), provider="gemini"),
    "unknown-status": Symptom(
        lambda walk: walk.plant("job", "unknown_status", status="hibernating"),
        {"none": 4},
        {"submitted": 4},
        executed=0,
        alerts=frozenset({"unknown_status"}),
        steps=4,
    ),
}


SLOW = {
    *("1-cut-download", "7-pending-for-ever", "7-cancelled-at-the-deadline", "11-not-collectable"),
    *("10-shifted-answers", "14-repetition", "15-no-finish-reason", "18-crlf", "25-job-failed"),
    *("27-404-for-a-while", "6-cancelled-half-way", "26-one-broken-line"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SYMPTOMS],
)
def test_symptom(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    symptom = SYMPTOMS[name]
    with provider_walk(emulator, symptom.provider, tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        symptom.plant(walk)
        walk.settle(symptom.steps)
        assert (walk.world.faults.pending() == []) == symptom.settles
        walk.check_sound()
        assert Counter(walk.classes().values()) == symptom.classes
        left = Counter(state for state in walk.states().values() if state != "published")
        assert not symptom.states or left == symptom.states
        assert symptom.executed is None or len(walk.executed()) == symptom.executed
        assert symptom.alerts <= walk.alerts()
        # Whatever comes later changes nothing of what was settled.
        digest = walk.report().content_digest
        if symptom.settles and not symptom.alerts:
            walk.step()
            assert walk.report().content_digest == digest


UNTRUSTED = {
    "8-every-job-expires": ("gemini", "job", "expired", 1),
    "12-refused-in-batch-only": ("openai", "row", "error", None),
    "13-shifted": ("gemini", "lines", "shift", 1),
    "13-all-null": ("openai", "row", "null_values", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNTRUSTED)
def test_canary_keeps_records_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    provider, op, kind, times = UNTRUSTED[name]
    with provider_walk(emulator, provider, tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.plant(op, kind, times=times)
        with pytest.raises(AssertionError, match="the canary never passed"):
            walk.pass_canary()
        walk.step()
        version = open_version(walk.context, walk.key)
        assert gate_of(walk.context, version).gate == "closed"
        assert set(walk.states().values()) == {"prepared"}
        assert len(walk.world.jobs_created[provider]) == 1
        assert "canary_failed" in walk.alerts()
        assert not walk.status().done


@pytest.mark.parametrize("name", ["23-file-not-found-yet", "32-too-large"])
def test_refused_create(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        if name == "32-too-large":
            walk.plant("upload", "status", status=413, code="file_too_large")
            walk.settle(3)
            # Sending the same bytes again would meet the same refusal: a person decides.
            assert walk.status().state == "held"
            assert set(walk.states().values()) == {"prepared"}
            assert walk.executed() == {}
        else:
            walk.plant("create", "status", times=2, status=404, message="Input file not found")
            walk.settle()
            assert walk.states() == dict.fromkeys(walk.titles, "published")
        walk.check_sound()


def spec_with_tail(folder: Path, tail: str) -> Path:
    text = (PACKAGED / "manuals-bedrock-batch-1.yaml").read_text(encoding="utf-8")
    text = text.replace("manuals-bedrock-batch-1", "manuals-bedrock-tail-1")
    text = text.replace("  output_tokens:", f"  tail: {tail}\n  output_tokens:")
    folder.mkdir()
    (folder / "manuals-bedrock-tail-1.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("tail", ["refuse", "merge"])
def test_29_fewer_records_than_the_smallest_batch(
    tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    specs = spec_with_tail(tmp_path / "specs", tail)
    with (
        pytest.raises(JobRefused, match="min_records: found 4"),
        provider_walk(
            *(emulator, "bedrock", tmp_path, monkeypatch, DOCUMENTS),
            specs=specs,
            key="manuals-bedrock-tail-1",
        ),
    ):
        raise AssertionError("a batch that the provider refuses was frozen")
    assert emulator.world.jobs_created["bedrock"] == []


def test_29_tail_goes_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    specs = spec_with_tail(tmp_path / "specs", "online")
    with provider_walk(
        *(emulator, "bedrock", tmp_path, monkeypatch, DOCUMENTS),
        specs=specs,
        key="manuals-bedrock-tail-1",
    ) as walk:
        walk.pass_canary()
        walk.settle()
        assert [job.mode for job in walk.jobs()] == ["online"]
        assert walk.states() == dict.fromkeys(walk.titles, "published")
        assert walk.status().done
        walk.check_sound()
