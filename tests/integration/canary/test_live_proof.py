"""The live proof at emulated providers: it holds, it goes on, and it fails where it must."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from sqlalchemy import select

from pipeline_assets.canary import live
from pipeline_assets.canary.live import failures_of
from pipeline_assets.canary.proof_errors import ProofStuck
from pipeline_assets.canary.proof_place import ProofPlace, proof_place
from pipeline_assets.canary.prove import Proof, conclude, open_proof, plan_proof, prove
from pipeline_assets.cli.app import main
from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.schema import intents, result_files
from resources.settings import Settings, load_settings
from tests.integration.stages.support import InProcessPool
from tests.provider_emulator.environment import PLANTED_KEYS
from tests.provider_emulator.faults import Fault
from tests.support.command import one_json
from tests.support.emulator import RunningEmulator

OPENAI = "manuals-openai-batch-4"
BASELINE = "manuals-baseline-2"
LONG = timedelta(hours=30)


@pytest.fixture(autouse=True)
def parsed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have documents parsed in this process."""
    monkeypatch.setattr(parsing, "ParserPool", InProcessPool)


class Bench:
    """A state folder, and proofs in it on the emulator's clock."""

    def __init__(self, emulator: RunningEmulator, state: Path) -> None:
        self.world = emulator.world
        self.state = state

    def settings(self, key: str) -> Settings:
        """Return settings of the outer state."""
        return load_settings(state=self.state, version=key)

    @contextmanager
    def opened(self, key: str) -> Iterator[tuple[Context, OpenVersion, ProofPlace]]:
        """Open the proof that is gone on with, its documents written."""
        settings = self.settings(key)
        place = proof_place(settings, key)
        with open_proof(settings, place, clock=self.world.clock.now) as (context, version):
            wanted = plan_proof(context, version, place, None)
            if wanted is not None:
                place.write_documents(dict(wanted.documents))
            yield context, version, place

    def sleep(self, seconds: float) -> None:
        """Let so long pass at least: longer than any phase of a job."""
        self.world.clock.advance(max(seconds, 700))

    def run(self, key: str, wait: timedelta = LONG) -> Proof:
        """Go on with a proof."""
        with self.opened(key) as (context, version, place):
            return prove(context, version, place, wait=wait, sleep=self.sleep)


@pytest.fixture
def bench(emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    emulator.use(monkeypatch)
    return Bench(emulator, tmp_path / "state")


def check_proven(proof: Proof) -> None:
    assert proof.audit is not None
    assert proof.audit.findings == ()
    assert proof.replay is not None
    assert proof.replay.changed == ()
    assert [(fact.holds, fact.checked > 0) for fact in proof.audit.facts] == [(True, True)] * 3
    assert proof.holds
    assert proof.not_forced == ()
    assert proof.states is not None
    assert proof.states["awaiting_review"] >= 1, "the document that must not pass"
    assert proof.published == proof.states["published"] > 0


@pytest.mark.parametrize(
    ("key", "canary", "requests"),
    [
        pytest.param(BASELINE, None, 0, id="built-in"),
        pytest.param(OPENAI, "passed", 16, id="openai"),
        pytest.param("manuals-openai-online-2", "passed", 16, id="openai-online"),
        pytest.param(
            "manuals-anthropic-batch-2", "passed", 16, id="anthropic", marks=pytest.mark.slow
        ),
        pytest.param("manuals-gemini-batch-2", "passed", 16, id="gemini", marks=pytest.mark.slow),
        pytest.param(
            "manuals-bedrock-batch-2", "passed", 200, id="bedrock", marks=pytest.mark.slow
        ),
        pytest.param("tickets-baseline-1", None, 0, id="tickets"),
    ],
)
def test_a_provider_is_proven(
    bench: Bench, key: str, canary: str | None, requests: int | None
) -> None:
    with bench.opened(key) as (context, version, place):
        shown = live.plan(context, version, None)
        assert not shown.needs_a_word, "the emulator is on this machine"
        assert requests in (None, shown.requests)
        proof = prove(context, version, place, wait=LONG, sleep=bench.sleep)
    check_proven(proof)
    assert proof.canary == canary
    assert set(proof.forced) == {failure.name for failure in failures_of(version)}
    assert proof.usd is not None
    assert proof.usd_unknown == {}
    assert shown.at_most is not None
    assert float(proof.usd) <= float(shown.at_most)
    for ran in bench.world.executed.values():
        assert set(ran.values()) <= {1}, "nothing is paid twice"
    assert place.verdict() == json.loads(json.dumps(proof.as_json(), default=list))


@pytest.mark.slow
def test_a_row_that_is_missing_is_asked_for_again(bench: Bench) -> None:
    bench.world.faults.add(Fault("openai", "lines", "missing", after=1, args={"index": 2}))
    proof = bench.run(OPENAI)
    check_proven(proof)
    # The canary's seven valid documents, the eight of the proof, and one of them again.
    assert len(bench.world.executed["openai"]) == 7 + 8 + 1
    with bench.opened(OPENAI) as (_, _, place):
        assert place.name.endswith("-2"), "a new proof, since the first has its verdict"


def test_an_interrupted_proof_goes_on_and_pays_nothing_twice(bench: Bench) -> None:
    first = bench.run(OPENAI, timedelta(0))
    assert first.waits is not None
    assert not first.holds
    assert first.due_at is not None
    sent = len(bench.world.jobs_created["openai"])
    assert bench.run(OPENAI, timedelta(0)).waits is not None
    assert len(bench.world.jobs_created["openai"]) == sent

    class Killed(BaseException):
        pass

    def die(_: float) -> None:
        raise Killed

    bench.world.clock.advance(700)
    with bench.opened(OPENAI) as (context, version, place), pytest.raises(Killed):
        prove(context, version, place, wait=LONG, sleep=die)
    proof = bench.run(OPENAI)
    check_proven(proof)
    assert len(bench.world.jobs_created["openai"]) == 2, "the canary's and the records'"
    assert set(bench.world.executed["openai"].values()) == {1}


def test_tampered_evidence_is_no_proof(bench: Bench) -> None:
    check_proven(bench.run(BASELINE))
    settings = bench.settings(BASELINE)
    place = ProofPlace(bench.state / "proofs" / f"{BASELINE}-1", BASELINE)
    with open_proof(settings, place, clock=bench.world.clock.now) as (context, version):
        check_proven(conclude(context, version, place))
        with context.ledger.read() as connection:
            digest = connection.execute(select(result_files.c.artifact)).scalar_one()
        file = context.artifacts.path("result", digest)
        content = file.read_bytes()
        file.chmod(0o600)
        file.write_bytes(content.replace(b"Bench Grinder", b"Bench Gr1nder"))
        proof = conclude(context, version, place)
        assert not proof.holds
        assert proof.audit is not None
        assert proof.audit.findings
        file.write_bytes(content)
        assert conclude(context, version, place).holds


def test_a_canary_that_fails_is_told(bench: Bench) -> None:
    bench.world.faults.add(Fault("openai", "row", "prose", times=None))
    with pytest.raises(ProofStuck, match=r"canary: canary-.* failed"):
        bench.run(OPENAI)
    with bench.opened(OPENAI) as (context, _, place):
        assert place.verdict() is None, "it goes on once the cause is gone"
        with context.ledger.read() as connection:
            assert len(connection.execute(select(intents)).all()) == 1, "no record was sent"


class Command:
    """Runs commands here and gives exit status, output and errors."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        status = main(["canary", *arguments, "--state", str(self._state)])
        said = self._capsys.readouterr()
        return status, said.out, said.err


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "state", capsys)


def test_the_command(bench: Bench, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--live", "--prove", "--version", OPENAI)
    status, out, _ = command(*arguments, "--wait", "0")
    assert status == 3
    assert "0.0724 USD" in out
    assert "waits for" in out
    really = time.sleep

    def sleep(seconds: float) -> None:
        bench.sleep(seconds)
        really(0.6)  # the clock of the command asks the emulator that often

    monkeypatch.setattr(time, "sleep", sleep)
    status, out, err = command(*arguments, "--json", "--wait", "2000")
    assert status == 0, err
    told: dict[str, Any] = one_json(out)
    assert told["holds"] is True
    assert [fact["holds"] for fact in told["audit"]["facts"]] == [True] * 3
    for key in PLANTED_KEYS:
        assert key not in out + err
    assert not (bench.state / "ledger.sqlite").exists(), "nothing of it is in the state itself"


def test_a_provider_outside_this_machine_needs_a_word(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example.invalid/v1")
    status, out, err = command("--live", "--prove", "--version", OPENAI)
    assert status == 1
    assert "0.0724 USD" in out, "what it would cost is told before"
    assert "--yes" in err
    assert not (tmp_path / "state" / "proofs" / f"{OPENAI}-1" / "documents").exists()


def test_what_was_not_agreed_to_is_no_proof(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example.invalid/v1")
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda _: False)
    status, out, err = command("--live", "--prove", "--version", OPENAI)
    assert (status, err) == (1, "")
    assert "tried again comes on top" in out
    assert "Nothing was sent." in out
    assert not (tmp_path / "state" / "proofs" / f"{OPENAI}-1" / "documents").exists()


def test_a_version_that_is_not_there_begins_no_folder(command: Command, tmp_path: Path) -> None:
    status, _, err = command("--live", "--prove", "--version", "nobody-s-baseline-1")
    assert (status, "there is no processing version" in err) == (1, True)
    assert not (tmp_path / "state").exists()


def test_the_command_for_people(command: Command) -> None:
    status, out, err = command("--live", "--prove", "--version", BASELINE)
    assert status == 0, err
    assert out.count("proven: ") == 3
    assert "changed no row" in out
    assert "All three facts hold." in out
    status, out, _ = command("--live", "--prove", "--version", BASELINE)
    assert f"{BASELINE}-2" in out


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        pytest.param([], 2, "drop", id="nothing is help"),
        pytest.param(["--live"], 2, "go together", id="half"),
        pytest.param(["--prove"], 2, "go together", id="the other half"),
        pytest.param(["--live", "--prove", "list"], 2, "without another", id="and a command"),
        pytest.param(
            ["--live", "--prove", "--records", "0"],
            2,
            "greater than or equal to 1",
            id="no records",
        ),
        pytest.param(["list", "--help"], 0, "newest first", id="the commands are still there"),
    ],
)
def test_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, told: str
) -> None:
    assert main(["canary", *arguments]) == status
    said = capsys.readouterr()
    assert told in said.out + said.err
