"""`tallybook show --provenance`: what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

from pipeline_assets.cli.app import main
from pipeline_assets.review.corrections import Wish
from resources.ledger.schema import accesses
from resources.settings import Settings
from tests.integration.erasure.support import Erasable
from tests.integration.provenance.test_field_provenance import accept_saw
from tests.integration.replay.support import PUMP as WORKS_PUMP
from tests.integration.replay.support import TWO, Works
from tests.integration.stages.support import ON_ONE_DATABASE
from tests.support.small_archive import KEY, PUMP, SAW, Archive


class Command:
    """The command line over an open archive."""

    def __init__(
        self,
        settings: Settings,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("TALLYBOOK_LEDGER_URL", str(settings.ledger_url))
        self._state = str(settings.state)
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Status, output (white space folded) and errors."""
        self._capsys.readouterr()
        status = main([*words, "--state", self._state])
        out = self._capsys.readouterr()
        return status, " ".join(out.out.split()), " ".join(out.err.split())


@pytest.fixture
def command(
    read_archive: Archive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return Command(read_archive.settings, monkeypatch, capsys)


@pytest.fixture
def changing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return Command(archive.settings, monkeypatch, capsys)


def test_the_chain_of_each_value_is_printed(command: Command) -> None:
    status, out, _ = command("show", PUMP, "--provenance")
    assert status == 0
    assert "Title Water Pump WP-100 User Manual (found) from built-in rules" in out
    assert "read on page 1, characters 0 to" in out
    assert "made because new_source" in out
    assert f"processing version {KEY}, digest" in out
    assert "raw result line" in out
    assert "shown until now" in out
    assert '"' not in out
    assert "prompt" not in out


def test_as_json_what_all_fields_share_stands_once(command: Command) -> None:
    status, out, _ = command("show", PUMP, "--provenance", "--json")
    assert status == 0
    told = json.loads(out)
    assert set(told) == {"document_id", "erased", "answer", "publication", "fields"}
    assert told["erased"] is None
    assert told["answer"]["processing_version"] == KEY
    (title,) = [one for one in told["fields"] if one["field"] == "title"]
    assert set(title) == {
        "field",
        "label",
        "item",
        "value",
        "status",
        "origin",
        "evidence",
        "findings",
        "review",
    }
    assert title["evidence"][0]["quote"] is None


def test_quotes_are_printed_and_recorded(command: Command, read_archive: Archive) -> None:
    status, out, _ = command("show", PUMP, "--provenance", "--quotes", "--why", "a complaint")
    assert status == 0
    assert "characters 0 to" in out
    assert '"Water Pump WP-100' in out
    with read_archive.context.ledger.read() as connection:
        whys = [row.why for row in connection.execute(accesses.select())]
    assert whys[-1] == "a complaint"


@ON_ONE_DATABASE
def test_a_correction_names_its_reviewer(changing: Command, archive: Archive) -> None:
    number = accept_saw(archive, Wish("product_identifiers", "KS-9"))
    _, out, _ = changing("show", SAW, "--provenance")
    assert "KS-9 (found) from reviewer" in out
    assert "review ada changed this value" in out
    assert f"read the cover (review {number})" in out
    assert "review ada left this value as it was" in out
    assert "finding " in out


@ON_ONE_DATABASE
def test_an_erased_document_shows_its_tombstone(changing: Command, archive: Archive) -> None:
    Erasable(archive).erase(PUMP)
    status, out, _ = changing("show", PUMP, "--provenance")
    assert status == 0
    assert "erased on 20" in out
    assert "by Ada because: asked by its owner" in out
    assert "WP-100 User" not in out
    assert json.loads(changing("show", PUMP, "--provenance", "--json")[1])["fields"] == []


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        pytest.param(("--quotes",), 2, "--provenance", id="quotes-alone"),
        pytest.param(("--archive-version", "1"), 2, "--provenance", id="version-alone"),
        pytest.param(("--provenance", "--page", "1"), 2, "--page", id="page"),
        pytest.param(
            ("--provenance", "--archive-version", "1", "--as-of", "2026-01-01"),
            2,
            "not both",
            id="two-times",
        ),
        pytest.param(
            ("--provenance", "--archive-version", "7"), 1, "no archive version 7; it has 1", id="no"
        ),
        pytest.param(("--provenance", "--as-of", "1999-01-01"), 1, "was not published", id="early"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    command: Command, words: tuple[str, ...], status: int, complaint: str
) -> None:
    found, out, err = command("show", PUMP, *words)
    assert found == status
    assert complaint in err
    assert out == ""


@ON_ONE_DATABASE
def test_show_and_explain_name_the_replay(
    works: Works, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works.fill().run()
    works.replay(where='title like "*Pump*"', note="titles were cut")
    works.go_on(TWO)
    command = Command(works.context.settings, monkeypatch, capsys)
    for words in (
        ("show", WORKS_PUMP, "--provenance"),
        ("explain", WORKS_PUMP, "--version", TWO),
    ):
        status, out, _ = command(*words)
        assert status == 0
        assert "replay r-1, new_model by ada: titles were cut" in out
        assert 'replayed where title like "*Pump*"' in out
