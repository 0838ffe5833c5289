"""From the command line to settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.cli.options import (
    NothingHere,
    counted,
    make_settings,
    name_of_source,
    open_existing,
    state_in_use,
)
from resources.settings import PROJECT
from resources.sources.document_id import check_source_name


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("manuals", "manuals"),
        ("Old Manuals (2019)", "old-manuals-2019"),
        ("Gerätehandbücher", "geratehandbucher"),
        ("руководства", "source"),
        ("__x__", "x"),
        ("files.d", "files-d"),
        ("a" * 40, "a" * 31),
        ("", "source"),
        ("-", "source"),
    ],
)
def test_name_of_source(folder: str, name: str) -> None:
    assert name_of_source(Path("/somewhere") / folder if folder else Path("/")) == name


@given(st.text(alphabet=st.characters(exclude_characters="/\x00"), min_size=1))
def test_every_folder_has_a_usable_name(folder: str) -> None:
    check_source_name(name_of_source(Path("/x") / folder))


def test_paths_count_from_where_the_command_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "My Docs").mkdir()
    monkeypatch.chdir(tmp_path)
    settings = make_settings(state=Path("here"), source=Path("My Docs"), version="v-2")
    assert settings.state_folder == tmp_path / "here"
    assert settings.source_folder == tmp_path / "My Docs"
    assert (settings.source_name, settings.version) == ("my-docs", "v-2")
    assert state_in_use.get() == tmp_path / "here"


def test_without_options_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = make_settings()
    assert settings.state_folder == PROJECT / "data" / "state"
    assert (settings.source_folder, settings.source_name) == (PROJECT / "data/manuals", "manuals")


def test_the_default_folder_keeps_its_name_however_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "another name"
    link.symlink_to(PROJECT / "data" / "manuals")
    monkeypatch.setenv("TALLYBOOK_SOURCE_NAME", "chosen")
    assert make_settings(source=link).source_name == "chosen"
    assert make_settings(source=link, source_name="given").source_name == "given"


def test_reading_makes_no_state(tmp_path: Path) -> None:
    with pytest.raises(NothingHere, match=re.escape(f"no ledger in {tmp_path / 'none'}")):
        open_existing(make_settings(state=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("count", "one", "many", "said"),
    [
        (1, "record", None, "1 record"),
        (0, "record", None, "0 records"),
        (2, "batch", "batches", "2 batches"),
    ],
)
def test_counted(count: int, one: str, many: str | None, said: str) -> None:
    assert counted(count, one, many) == said


@pytest.mark.parametrize(
    ("place", "own"),
    [
        ("state/pilots/p-1", True),
        ("state/proofs/manuals-1", True),
        ("state", False),
        ("pilots", False),
    ],
)
def test_a_pilot_is_never_looked_at_in_the_database_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, own: bool
) -> None:
    url = "postgresql://archive.example.com/ledger"
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", url)
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "ledger.sqlite").touch()
    assert make_settings(state=folder).ledger_url == (None if own else url)
