"""`tallybook replay`, `replays` and `report --by reason` over a run that was really made."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.settings import Settings, load_settings
from tests.support.command import json_lines, one_json, tallybook
from tests.support.replay_place import FROM, FURTHER, require, write_versions
from tests.support.small_shop import make_documents

pytestmark = pytest.mark.slow
TO = FURTHER[0]
REASON = "the titles were cut"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a state folder in which the first version was run."""
    from pipeline_assets.cli.dagster_run import run_version

    folder = tmp_path_factory.mktemp("replay")
    make_documents(folder / "documents")
    write_versions(folder / "specs")
    require(run_version(settings_of(folder), FROM))
    return folder


def settings_of(folder: Path) -> Settings:
    return load_settings(
        state=folder / "state",
        source=folder / "documents",
        source_name="shop",
        specs=folder / "specs",
        parser_workers=1,
    )


def command(place: Path, *arguments: str, status: int = 0) -> str:
    done = tallybook(
        *arguments,
        "--state",
        "state",
        cwd=place,
        TALLYBOOK_SPECS=str(place / "specs"),
        TALLYBOOK_SOURCE=str(place / "documents"),
        TALLYBOOK_SOURCE_NAME="shop",
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status in (0, 3) else done.stderr


def test_from_the_dry_run_to_the_account(place: Path) -> None:
    asked = ("replay", "--from", FROM, "--to", TO, "--where", "state = published")
    plan = one_json(command(place, *asked, "--reason", REASON, "--dry-run", "--json"))
    assert (plan["selected"], plan["reason"], plan["note"]) == (1, "new_model", REASON)
    assert (plan["differs_in"], plan["left_out"]) == (["new_model"], {})
    assert plan["slices"] == {"state=published": 1}
    assert plan["amount"] is None
    told = command(place, *asked, "--reason", REASON, "--dry-run")
    assert "1 record of" in told
    assert "Nothing is changed" in told
    assert json_lines(command(place, "replays", "--json")) == []

    told = command(place, *asked, "--reason", REASON, "--by", "ada")
    assert f"is frozen in {TO}-m1" in told
    (made,) = json_lines(command(place, "replays", "--json"))
    assert (made["actor"], made["note"], made["selected"]) == ("ada", REASON, 1)
    assert made["expression"] == "state = published"

    again = one_json(command(place, *asked, "--reason", REASON, "--json"))
    assert (again["selected"], again["replay_id"]) == (0, None)
    assert sum(again["left_out"].values()) == 1

    account = one_json(command(place, "report", "--by", "reason", "--version", TO, "--json"))
    assert account["adds_up"]
    assert [(each["reason"], each["records"]) for each in account["reasons"]] == [("new_model", 1)]
    assert account["replays"][0]["replay_id"] == made["replay_id"]
    assert "every one has its reason" in command(place, "report", "--by", "reason", "--version", TO)

    ids = place / "ids.txt"
    ids.write_text("shop/cleaning.txt\n\n", encoding="utf-8")
    listed = ("replay", "--from", FROM, "--to", FROM, "--documents", "ids.txt")
    again = one_json(command(place, *listed, "--reason", "operator: a look", "--json", status=3))
    assert (again["selected"], again["reason"], again["note"]) == (1, "operator", "a look")
    assert again["states"] == {"awaiting_review": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("--from", "manuals-never-1", "--to", TO), "nothing was processed under", id="from"
        ),
        pytest.param(("--from", FROM, "--to", "no-such-1"), "no-such-1", id="to"),
        pytest.param(
            ("--from", FROM, "--to", TO, "--where", "prompt >"), "expected", id="half a filter"
        ),
        pytest.param(
            ("--from", FROM, "--to", TO, "--documents", "missing.txt"),
            "cannot be read",
            id="no such file",
        ),
        pytest.param(
            ("--from", FROM, "--to", "tickets-baseline-1"), "belongs to one workload", id="tickets"
        ),
    ],
)
def test_what_cannot_be_asked_for_is_told_in_a_line(
    place: Path, arguments: tuple[str, ...], message: str
) -> None:
    told = command(place, "replay", *arguments, "--reason", REASON, status=1)
    assert message in told
    assert "Traceback" not in told
    assert told.count("\n") == 1
