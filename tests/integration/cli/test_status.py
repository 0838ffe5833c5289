"""`tallybook status` after a run in which much went wrong, and a run that has no room."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipeline_assets.cli import app
from tests.support.command import tallybook
from tests.support.emulator import RunningEmulator
from tests.support.messy_run import KEY, messy_run


@pytest.fixture(
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ]
)
def url(request: pytest.FixtureRequest) -> str | None:
    """Return where the ledger is; None for the state folder."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.mark.slow
def test_a_messy_run(
    emulator: RunningEmulator,
    url: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    emulator.use(monkeypatch)
    if url is not None:
        monkeypatch.setenv("TALLYBOOK_LEDGER_URL", url)
    with messy_run(emulator, tmp_path, url) as run:
        state = str(run.settings.state_folder)
    words = ["status", "--version", KEY, "--state", state]
    assert app.main([*words, "--json"]) == 3
    now = json.loads(capsys.readouterr().out)

    assert (
        now["review_backlog"] == now["ages"]["reviews"]["count"] == now["states"]["awaiting_review"]
    )
    assert (
        now["sample_backlog"] == now["ages"]["quality_samples"]["count"] == now["sample"]["waiting"]
    )
    assert now["dead_letters"] == now["states"]["dead_letter"] == 1
    assert now["ages"]["batches_open"]["count"] == 2
    assert now["ages"]["batches_out"]["count"] == now["batches"]["submitted"] == 1
    assert now["active_attempts"] == now["ages"]["open_records"]["count"] == now["open_records"]
    for found in now["ages"].values():
        assert sum(found["histogram"]) == found["count"]
    publication = now["publication"]
    assert publication["published"] == now["states"]["published"]
    # Two documents of what is shown changed or went away since.
    assert publication["shown"] - publication["shown_former"] == publication["published"]
    assert publication["shown_former"] == 2
    assert now["disk"]["forecast"] > 0
    assert now["next_poll"]["batch_id"].startswith(KEY)

    waits = {(wait["what"], wait["who"]): wait["count"] for wait in now["waits"]}
    assert waits["prepared", "operator"] == now["states"]["prepared"], "all are in the lost batch"
    assert waits["submitted", "provider"] == now["states"]["submitted"]
    assert waits["batch quarantined", "operator"] == 1
    assert waits["pending", "the next run"] == 2
    assert waits["quality_sample", "reviewer"] == now["sample_backlog"]

    assert app.main(words) == 3
    shown = capsys.readouterr().out
    assert "documents, and 2 documents that changed or went away since" in shown
    assert re.search(r"^operator +1 batch quarantined, since ", shown, re.MULTILINE)
    assert re.search(rf"batch show {KEY}-m\d+-b\d+ --state", shown)
    assert app.main(["status", "--all", "--state", state]) == 3
    assert len(re.findall(r"^ [a-z0-9-]+ +active ", capsys.readouterr().out, re.MULTILINE)) == 2


@pytest.mark.slow
def test_a_run_without_room_ends_in_one_line_and_the_next_one_goes_on(
    tmp_path: Path, repository: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    sample = repository / "data" / "manuals" / "horno-hc-30.html"
    (folder / "horno.html").write_bytes(sample.read_bytes())
    words = ("run", "--source", folder, "--state", tmp_path / "state")
    refused = tallybook(*words, cwd=tmp_path, TALLYBOOK_DISK_RESERVE_MB="10000000")
    assert refused.returncode == 1
    (line,) = [line for line in refused.stderr.splitlines() if "no room" in line]
    assert "has no room for 1 more record: about " in line
    assert "Traceback" not in refused.stderr
    assert not list((tmp_path / "state" / "artifacts").glob("request/*/*"))
    assert tallybook(*words, cwd=tmp_path).returncode in (0, 3)
