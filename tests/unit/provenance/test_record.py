"""The record of a materialisation: its plain form, its counts, and what it is about."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from partitions.processing_version import UnknownVersion
from pipeline_assets.provenance import record
from pipeline_assets.provenance.record import Input, Provenance, Subject
from resources.context import open_context
from resources.settings import Settings
from tests.support.small_archive import KEY

WHOLE = Provenance(
    contract_version=1,
    asset="manifest",
    processing_version=KEY,
    workload="equipment_manuals",
    spec_digest="d" * 64,
    code_version="1",
    release="0.4.0",
    ledger_id="0" * 16,
    run_id="r",
    data_version="v",
    inputs=(Input("parsed_documents", None, KEY),),
    counts={"expected": 2},
    replay_id=None,
    made_at="2026-11-30T01:02:03.000004Z",
)


def test_the_plain_form_is_json() -> None:
    plain = WHOLE.as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert set(plain) == set(vars(WHOLE))
    assert plain["inputs"] == [
        {"asset": "parsed_documents", "data_version": None, "partition": KEY}
    ]


@pytest.mark.parametrize(
    ("value", "counted"),
    [(3, True), (0, True), (True, False), (1.5, False), ("3", False), ({"a": 1}, False)],
)
def test_whole_numbers_are_counts(value: object, counted: bool) -> None:
    assert record.counts_of({"x": value}) == ({"x": value} if counted else {})


def test_numbers_that_dagster_reads_are_no_counts_of_ours() -> None:
    assert record.counts_of({"dagster/row_count": 3, "documents": 3}) == {"documents": 3}


def test_a_version_that_was_never_used_has_a_workload_and_no_digest(tmp_path: Path) -> None:
    with open_context(Settings(state=tmp_path)) as context:
        assert record.subject_of(context, KEY) == Subject("equipment_manuals", None)
        assert record.subject_of(context, None) == Subject(None, None)
        assert record.replay_of_run(context, KEY, "0" * 32) is None
        assert record.replay_of_run(context, None, "0" * 32) is None
        with pytest.raises(UnknownVersion):
            record.subject_of(context, "never-written-1")


def test_a_package_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert record.release() == record.NOT_INSTALLED
