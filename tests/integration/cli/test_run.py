"""`tallybook run` on the sample manuals, and what every later command says of it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pipeline_assets.cli.app import main
from tests.integration.cli.conftest import FinishedRun
from tests.support.command import COMMAND, environment, json_lines, one_json, tallybook


def expected_outcomes(repository: Path) -> dict[str, str]:
    """Return document id → `published`, `awaiting_review` or `excluded:<reason>`."""
    with (repository / "data" / "truth.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {f"manuals/{row['file']}": row["expected"] for row in rows}


def test_every_sample_ends_as_its_truth_says(finished_run: FinishedRun, repository: Path) -> None:
    assert finished_run.outcome.returncode == 3, finished_run.outcome.stderr
    rows = json_lines(
        tallybook(
            "outcomes", "--json", "--state", finished_run.state, cwd=finished_run.state
        ).stdout
    )
    found = {
        row["document_id"]: f"excluded:{row['reason']}"
        if row["state"] == "excluded"
        else row["state"]
        for row in rows
    }
    assert found == expected_outcomes(repository)


def test_the_run_prints_documents_outcomes_and_next_steps(finished_run: FinishedRun) -> None:
    shown, told = finished_run.outcome.stdout, finished_run.outcome.stderr
    assert "Dosing Pump DP-200 User Manual" in shown
    assert "excluded: duplicate_content" in shown
    assert "14 documents = 9 expected + 5 excluded: the account adds up." in shown
    assert "Waits: 1 record for a reviewer" in shown
    assert f"--state {finished_run.state}" in shown.split("Next steps")[1]
    assert "parsing: 12 in " in told
    assert "Traceback" not in told
    assert "DagsterEvent" not in told + shown
    assert "STEP_START" not in told + shown


def test_the_state_folder_is_private(finished_run: FinishedRun) -> None:
    assert finished_run.state.stat().st_mode & 0o777 == 0o700
    assert (finished_run.state / "artifacts").stat().st_mode & 0o777 == 0o700


def test_a_second_run_processes_nothing_and_says_so(state: Path, tmp_path: Path) -> None:
    before = tallybook("export", "--state", state, cwd=tmp_path).stdout
    again = tallybook("run", "--state", state, cwd=tmp_path)
    assert again.returncode == 3, again.stderr
    assert "Nothing new to process" in again.stdout
    assert tallybook("export", "--state", state, cwd=tmp_path).stdout == before


@pytest.mark.slow
def test_a_run_in_json_tells_what_waits(state: Path, tmp_path: Path) -> None:
    as_json = one_json(tallybook("run", "--json", "--state", state, cwd=tmp_path).stdout)
    assert as_json["anything_new"] is False
    assert as_json["invariant_holds"] is True
    assert as_json["waiting"] == [{"what": "awaiting_review", "count": 1, "by_person": True}]


@pytest.mark.slow
def test_another_folder_gets_a_name_of_its_own(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "Old Manuals"
    folder.mkdir()
    sample = repository / "data" / "manuals" / "horno-hc-30.html"
    (folder / "horno.html").write_bytes(sample.read_bytes())
    first = tallybook("run", "--source", "Old Manuals", "--state", "here", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "old-manuals/horno.html" in first.stdout
    folder.rename(tmp_path / "moved")
    (tmp_path / "moved").rename(folder.parent / "elsewhere")
    moved = ("run", "--source", "elsewhere", "--source-name", "old-manuals", "--state", "here")
    refused = tallybook(*moved, cwd=tmp_path)
    assert refused.returncode == 1
    assert "--source-moved" in refused.stderr
    accepted = tallybook(*moved, "--source-moved", cwd=tmp_path)
    assert accepted.returncode == 0, accepted.stderr
    assert "Nothing new to process" in accepted.stdout


def test_a_second_run_on_the_same_state_is_refused(state: Path, tmp_path: Path) -> None:
    from pipeline_assets.cli.run_lock import run_lock

    with run_lock(state):
        refused = tallybook("run", "--state", state, cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"tallybook: another run is using {state} (process ")
    assert ", since 2" in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.slow
def test_ctrl_c_ends_a_run_with_one_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with (tmp_path / "err").open("w") as errors:
        process = subprocess.Popen(
            [*COMMAND, "run", "--state", str(state)],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        # In the middle of the work: the first piece has been told.
        deadline = time.monotonic() + 120
        while not (tmp_path / "err").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    told = (tmp_path / "err").read_text()
    assert "Traceback" not in told
    assert told.splitlines()[-1].startswith("tallybook: interrupted.")
    again = tallybook("run", "--state", state, cwd=tmp_path)
    assert again.returncode == 3, again.stderr
    doctor = tallybook("doctor", "--state", state, cwd=tmp_path)
    assert doctor.returncode == 0, doctor.stdout


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["status"], 3),
        (["report"], 3),
        (["outcomes"], 0),
        (["search", "manual"], 0),
        (["show", "dosing-pump-dp-200.pdf"], 0),
        (["explain", "dosing-pump-dp-200.pdf"], 0),
        (["explain", "water-meter-wm-7-service.pdf"], 0),
        (["export"], 0),
        (["versions"], 0),
        (["about"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_every_command_works_from_any_folder_in_both_forms(
    arguments: list[str],
    status: int,
    finished_run: FinishedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    place = ["--state", str(finished_run.state)]
    assert main([*arguments, *place]) == status
    plain = capsys.readouterr()
    assert plain.out
    assert plain.err == ""
    assert "\x1b" not in plain.out
    assert main([*arguments, *place, "--json"]) == status
    assert json_lines(capsys.readouterr().out)


def run_here(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out


def test_report_status_and_outcomes_agree(
    finished_run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--state", finished_run.state, "--json")
    report = one_json(run_here(capsys, "report", *place))
    status = one_json(run_here(capsys, "status", *place))
    rows = json_lines(run_here(capsys, "outcomes", *place))
    assert report["documents"] == len(rows) == report["expected"] + sum(report["excluded"].values())
    assert report["states"] == status["states"]
    assert report["manifests"][0]["dispositions"]["succeeded"] == report["expected"]
    exported = json_lines(run_here(capsys, "export", "--state", finished_run.state))
    published = {row["document_id"] for row in rows if row["state"] == "published"}
    assert {row["document_id"] for row in exported} == published


def test_explain_prints_the_whole_chain(
    finished_run: FinishedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--state", finished_run.state)
    published = run_here(capsys, "explain", "manuals/dosing-pump-dp-200.pdf", *place)
    for part in (
        "Source",
        "Parse",
        "Record",
        "manifest ",
        "batch ",
        "request ",
        "provider ",
        "result line",
        "disposition",
        "judgement",
        "accepted → published",
        "found by search",
        "delivery",
    ):
        assert part in published, part
    excluded = run_here(capsys, "explain", "water-meter-wm-7-service.pdf", *place)
    for part in ("Source", "Parse", "Excluded", "encrypted", "the document needs a password"):
        assert part in excluded, part
    doubtful = run_here(capsys, "explain", "air-compressor-ac-50.pdf", *place)
    assert "finding" in doubtful
    assert "uncertain_field" in doubtful


def test_show_prints_a_page_and_records_who_looked(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_here(
        capsys, "show", "horno-hc-30.html", "--page", "1", "--why", "a test", "--state", state
    )
    assert "Horno compacto HC-30" in shown
    assert main(["show", "horno-hc-30.html", "--page", "9", "--state", str(state)]) == 1
    assert "has no page 9" in capsys.readouterr().err
    import sqlite3

    with sqlite3.connect(state / "ledger.sqlite") as connection:
        rows = connection.execute("SELECT why, kind FROM accesses").fetchall()
    connection.close()
    assert ("a test", "text") in rows


def test_search_filters(finished_run: FinishedRun, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--state", finished_run.state, "--json")
    hits = json_lines(run_here(capsys, "search", "label", "printers", "--product", "lp320", *place))
    assert [hit["document_id"] for hit in hits] == [
        "manuals/label-printers-lp-310-lp-320-lp-330.pdf"
    ]
    assert {"document_id", "title", "snippet"} <= set(hits[0])
    german = json_lines(run_here(capsys, "search", "WS-45", "--language", "de", *place))
    assert len(german) == 1
    assert "Nothing published" in run_here(capsys, "search", "zzz", "--state", finished_run.state)


def test_export_to_a_file_is_whole(
    finished_run: FinishedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "archive.jsonl"
    said = run_here(capsys, "export", "--output", file, "--state", finished_run.state)
    assert said == f"8 documents written to {file}\n"
    assert file.read_text() == run_here(capsys, "export", "--state", finished_run.state)
    assert list(tmp_path.iterdir()) == [file]
    assert main(
        ["export", "--output", str(tmp_path / "no" / "x"), "--state", str(finished_run.state)]
    )
    assert capsys.readouterr().err.startswith("tallybook: ")


def test_a_reader_that_stops_reading_is_no_error(finished_run: FinishedRun) -> None:
    process = subprocess.Popen(
        [*COMMAND, "explain", "--json", "dosing-pump-dp-200.pdf", "--state", finished_run.state],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stderr as errors:
        process.stdout.close()
        told = errors.read()
    assert process.wait(timeout=60) == 141
    assert told == ""


def test_doctor_mends_a_dead_lease_and_lost_search_entries(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import socket
    import sqlite3

    gone = subprocess.Popen(["true"])
    gone.wait()
    with sqlite3.connect(state / "ledger.sqlite") as connection:
        connection.execute("DELETE FROM archive_search WHERE rowid = 1")
        connection.execute(
            "INSERT INTO leases VALUES ('step', ?, 1, '2030-01-01T00:00:00.000000Z', "
            "'2999-01-01T00:00:00.000000Z', NULL)",
            (f"x@{socket.gethostname()}:{gone.pid}",),
        )
    connection.close()
    assert main(["report", "--state", str(state)]) == 1
    assert "search cannot find" in capsys.readouterr().out
    assert main(["doctor", "--state", str(state)]) == 1
    found = capsys.readouterr().out
    assert "dead_lease" in found
    assert "search_entries" in found
    assert main(["doctor", "--fix", "--state", str(state)]) == 0
    assert capsys.readouterr().out.count("mended: ") == 2
    assert main(["doctor", "--state", str(state)]) == 0
    assert "Nothing is broken." in capsys.readouterr().out
    assert main(["report", "--state", str(state)]) == 3
