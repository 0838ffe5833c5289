"""Which visible records came from a flawed configuration."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from pipeline_assets.known_version import known_version
from pipeline_assets.selection import blame as blame_module
from pipeline_assets.selection.blame import Blame, blame, replay_filter
from pipeline_assets.selection.errors import UnknownFact
from pipeline_assets.selection.parse import parse_where
from pipeline_assets.selection.select import fields_reader, select_records
from pipeline_assets.workloads.workload import PublishedField
from resources.context import Context
from resources.ledger.schema import (
    archive_heads,
    attempts,
    dispositions,
    judgements,
    processing_versions,
)
from tests.support.small_archive import FAN, KEY, PUMP, SAW, Archive
from tests.support.widened_archive import DOUBLE, SECOND, process_second


def _blame(archive: Archive, text: str) -> Blame:
    return blame(archive.context, parse_where(text), documents=True)


def _documents(found: Blame) -> list[tuple[str, str]]:
    assert sum(group.records for group in found.groups) == found.records == len(found.documents)
    return [(version, name.removeprefix("manuals/")) for version, name in found.documents]


def _selected(archive: Archive, text: str) -> list[str]:
    """Return the documents whose records of the first version a filter selects."""
    version = known_version(archive.context, KEY)
    found = select_records(archive.context, version, parse_where(text))
    return [name.removeprefix("manuals/") for name in found["document_id"]]


def _number(archive: Archive, name: str) -> int:
    where = parse_where(f"document = manuals/{name}")
    return select_records(archive.context, known_version(archive.context, KEY), where)[
        "record_no"
    ].item()


def _another_attempt(archive: Archive, name: str, revision: str) -> None:
    """Another attempt at a record, judged otherwise, of which nothing is published yet."""
    record = _number(archive, name)
    with archive.context.ledger.write() as connection:
        first = connection.execute(select(attempts).where(attempts.c.record_no == record)).one()
        number = 100 + record
        connection.execute(
            attempts.insert().values(
                {**first._mapping, "attempt_no": number, "ordinal": 2, "recovery_path": "replay"}
            )
        )
        answer = connection.execute(
            select(dispositions).where(dispositions.c.attempt_no == first.attempt_no)
        ).one()
        connection.execute(
            dispositions.insert().values(
                {**answer._mapping, "attempt_no": number, "model_revision": revision}
            )
        )
        connection.execute(
            judgements.insert().values(
                attempt_no=number,
                record_no=record,
                outcome="awaiting_review",
                values_digest="0" * 64,
            )
        )


def test_of_one_version(read_archive: Archive) -> None:
    found = _blame(read_archive, "identifiers > 1 or corrected = true")
    assert _documents(found) == [(KEY, DOUBLE), (KEY, SAW)]
    assert found.visible == 4
    assert {group.version for group in found.groups} == {KEY}
    assert {group.model_revision for group in found.groups} == {"rules-1"}
    assert {group.replay for group in found.groups} == {None}
    assert found.versions == [KEY]
    assert not found.skipped


def test_none(read_archive: Archive) -> None:
    assert _documents(_blame(read_archive, "model_revision = other")) == []


def test_an_unknown_fact(read_archive: Archive) -> None:
    with pytest.raises(UnknownFact):
        _blame(read_archive, "titel = x")


def test_the_attempt_whose_values_are_shown(archive: Archive) -> None:
    _another_attempt(archive, FAN, "other")
    _another_attempt(archive, SAW, "other")
    assert _selected(archive, "model_revision = other") == [FAN, SAW]
    # The newest judgement has no findings, and stands for the record; what is shown has some.
    assert _selected(archive, "finding is null") == [FAN, SAW]
    assert _selected(archive, "corrected = true or disposition != succeeded") == []
    assert _selected(archive, "path = replay and attempts = 2") == [FAN, SAW]
    assert _documents(_blame(archive, "model_revision = other")) == []
    assert (KEY, FAN) in _documents(_blame(archive, "path = first and finding is not null"))
    assert (KEY, SAW) in _documents(_blame(archive, "corrected = true"))


def test_of_several_versions(archive: Archive) -> None:
    process_second(archive)
    found = _blame(archive, "identifiers > 0")
    assert {version for version, _ in found.documents} == {KEY, SECOND}
    assert found.records == found.visible == 4
    # The corrected saw waits for a reviewer under the second version, and shows the first's values.
    assert _documents(_blame(archive, f"version = {KEY}")) == [(KEY, SAW)]
    assert _documents(_blame(archive, f"version = {SECOND}")) == [
        (SECOND, FAN),
        (SECOND, DOUBLE),
        (SECOND, PUMP),
    ]
    assert found.versions == [SECOND, KEY]
    assert all(group.first_published <= group.last_published for group in found.groups)
    former = select_records(
        archive.context,
        known_version(archive.context, KEY),
        parse_where(replay_filter(parse_where("identifiers = 1 or title like x"))),
    )
    assert former["document_id"].to_list() == [f"manuals/{SAW}"]


def test_a_version_of_a_workload_without_the_field(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_second(archive)
    with archive.context.ledger.write() as connection:
        connection.execute(
            update(processing_versions)
            .where(processing_versions.c.key == SECOND)
            .values(workload="other")
        )

    def fields(context: Context, workload: str) -> Callable[[], tuple[PublishedField, ...]]:
        return (lambda: ()) if workload == "other" else fields_reader(context, workload)

    monkeypatch.setattr(blame_module, "fields_reader", fields)
    found = _blame(archive, "identifiers > 0")
    assert _documents(found) == [(KEY, SAW)]
    assert list(found.skipped) == [SECOND]
    assert "there is no fact 'identifiers'" in found.skipped[SECOND]


def test_an_archive_that_shows_nothing(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(archive_heads.delete())
    assert _documents(_blame(archive, "title = x")) == []
    with pytest.raises(UnknownFact):
        _blame(archive, "titel = x")


def test_entries_whose_attempt_is_unknown(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(update(judgements).values(values_digest="1" * 64))
    found = _blame(archive, "model_revision = rules-1 and finding is not null")
    assert found.records > 0
