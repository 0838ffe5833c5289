"""Documents that need approval need it whatever is declared in the run at hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline_assets.approval.decide import decide, select_documents
from pipeline_assets.barred_documents import barred_documents
from resources.context import Context
from resources.ledger.source_snapshots import present_documents
from resources.settings import load_settings
from resources.sources.declared import InvalidSources
from tests.integration.approval.support import ASKED, FREE, SOURCES, Office

WORKLOAD = "equipment_manuals"


def barred(context: Context) -> dict[str, str]:
    """Present documents that may not be processed → why."""
    version = cast("Any", SimpleNamespace(spec=SimpleNamespace(workload=WORKLOAD)))
    present = present_documents(context.ledger, WORKLOAD)
    found = barred_documents(context, version, present)
    names = dict(present.select("document_no", "document_id").iter_rows())
    return {names[row["document_no"]]: row["reason"] for row in found.iter_rows(named=True)}


def with_folder_named(office: Office, name: str) -> Context:
    """The context of a run that was told `--source FOLDER`."""
    settings = load_settings(
        state=office.context.settings.state_folder,
        source=office.folder / name,
        source_name=name,
        sources=office.folder / "sources.yaml",
    )
    assert settings.source_given
    return replace(office.context, settings=settings)


def approve(office: Office, name: str) -> None:
    selection = select_documents(office.context, [f"{ASKED}/{name}"])
    decide(office.context, selection, "approved", reason="looked at it", actor="ann")


@pytest.mark.parametrize("named", [FREE, ASKED])
def test_naming_a_folder_lets_nothing_pass(office: Office, named: str) -> None:
    approve(office, "a.txt")
    waits = {f"{ASKED}/b.txt": "awaiting_approval", f"{ASKED}/c.txt": "awaiting_approval"}
    assert barred(office.context) == waits
    assert barred(with_folder_named(office, named)) == waits


def test_what_a_broken_file_demands_is_not_guessed(office: Office) -> None:
    (office.folder / "sources.yaml").write_text("sources: [", encoding="utf-8")
    with pytest.raises(InvalidSources):
        barred(with_folder_named(office, FREE))


def test_a_source_that_is_declared_no_more_still_demands_it(office: Office) -> None:
    approve(office, "a.txt")
    asked, free = SOURCES.index(f"  {ASKED}:"), SOURCES.index(f"  {FREE}:")
    (office.folder / "sources.yaml").write_text(SOURCES[:asked] + SOURCES[free:], encoding="utf-8")
    assert set(barred(office.context)) == {f"{ASKED}/b.txt", f"{ASKED}/c.txt"}
    approve(office, "b.txt")
    assert set(barred(office.context)) == {f"{ASKED}/c.txt"}


def test_a_source_that_is_declared_without_it_demands_it_no_more(office: Office) -> None:
    approve(office, "a.txt")
    free = SOURCES.replace("    approval: true\n", "")
    (office.folder / "sources.yaml").write_text(free, encoding="utf-8")
    assert barred(office.context) == {}
