"""`tallybook erase` and `tallybook prune` as a person reads them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.cli.dagster_instance import open_instance
from pipeline_assets.cli.old_runs import prune_runs
from pipeline_assets.ingest import parse_documents
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.retention.policy import RetentionPolicy
from resources.clock import system_clock
from resources.context import open_context
from resources.settings import Settings, load_settings
from tests.integration.stages.support import InProcessPool, Shop
from tests.support.given_up import walk_to_dead_letters
from tests.support.terminal import StateTerminal

SCRIPT = ["well", "refused"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings of a folder of documents and a state folder."""
    (tmp_path / "documents").mkdir()
    return load_settings(
        state=tmp_path / "state",
        source=tmp_path / "documents",
        source_name="shop",
        parser_workers=1,
    )


@pytest.fixture
def terminal(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> StateTerminal:
    """Return a terminal at a state folder with a published document and a dead letter."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    with open_context(settings) as context:
        shop = Shop(settings.source_folder, context)
        walk_to_dead_letters(shop, monkeypatch, SCRIPT)
        judge_batches(context, shop.version())
        publish_accepted(context, shop.version())
    return StateTerminal(settings.state_folder, capsys)


def emitted(terminal: StateTerminal, *words: str, status: int = 0) -> dict[str, Any]:
    """The object that a command prints with --json."""
    return json.loads(terminal.run(*words, "--json", status=status))


@pytest.mark.slow
def test_erasing_is_looked_at_first_and_then_meant(terminal: StateTerminal) -> None:
    looked = terminal.run("erase", "m0.txt", "--reason", "asked", "--dry-run")
    assert "Nothing was changed." in looked
    assert "published" in looked
    trial = emitted(terminal, "erase", "m0.txt", "--reason", "asked", "--dry-run")
    assert (trial["dry_run"], trial["erasure"], trial["withdrawn"]) == (
        True,
        None,
        {"published": 1},
    )
    terminal.run("erase", "m0.txt", "--reason", "asked", status=1)
    assert "--yes" in terminal.told
    done = terminal.run("erase", "m0.txt", "--reason", "asked", "--by", "Ada", "--yes")
    assert "shop/m0.txt is erased: 1 record withdrawn" in done
    told = terminal.run("explain", "m0.txt")
    assert "Erased" in told
    assert "Ada" in told
    again = emitted(terminal, "erase", "m0.txt", "--reason", "asked", "--yes")
    assert again["begun_before"] is True
    terminal.run("show", "m0.txt", status=1)
    assert "was erased at" in terminal.told
    assert "Nothing is broken" in terminal.run("doctor")


def test_an_erasure_needs_a_reason_and_a_document(terminal: StateTerminal) -> None:
    terminal.run("erase", "m0.txt", status=2)
    terminal.run("erase", "nix", "--reason", "x", status=1)
    assert "there is no document" in terminal.told
    terminal.run("erase", "m0.txt", "--reason", " ", "--yes", status=1)


@pytest.mark.slow
def test_pruning_is_looked_at_first(terminal: StateTerminal) -> None:
    looked = terminal.run("prune", "--reason", "old", "--dry-run")
    assert "What would go; nothing is changed" in looked
    assert "not settled" in looked
    found = emitted(terminal, "prune", "--reason", "old", "--older-than", "0")
    assert found["prune"] is None
    assert {part["what"] for part in found["parts"]} == {
        "results",
        "requests",
        "parses",
        "leftovers",
        "runs",
    }
    terminal.run("dead-letter", "discard", "--all", "--reason", "no use")
    terminal.run("erase", "m0.txt", "--reason", "asked", "--yes")
    gone = emitted(
        terminal, "prune", "--reason", "old", "--what", "results,requests", "--older-than", "0"
    )
    assert gone["prune"] == 1
    assert {part["what"]: part["files"] for part in gone["parts"]} == {
        "results": 1,
        "requests": 1,
    }
    assert "pruned by policy" in terminal.run("explain", "m0.txt")
    assert "Nothing is broken" in terminal.run("doctor")
    terminal.run("prune", "--reason", "x", "--what", "ledger", status=1)
    assert "cannot be pruned" in terminal.told


@pytest.mark.slow
def test_old_runs_of_dagster_go_but_for_the_newest(settings: Settings) -> None:
    @dg.job
    def nothing() -> None:
        """Nothing to do."""

    with open_instance(settings) as instance:
        for partition in ("v", "v", "w"):
            nothing.execute_in_process(instance=instance, tags={"dagster/partition": partition})
    later = system_clock() + timedelta(days=31)
    policy = RetentionPolicy()
    assert prune_runs(settings, policy, set(), system_clock(), trial=False)[0] == []
    assert prune_runs(settings, policy, {"v"}, later, trial=False)[0] == []
    (would,), kept = prune_runs(settings, policy, set(), later, trial=True)
    assert would.partition == "v"
    assert sum(kept.values()) == 2
    (went,), _ = prune_runs(settings, policy, set(), later, trial=False)
    assert went == would
    with open_instance(settings) as instance:
        assert len(instance.get_runs()) == 2
