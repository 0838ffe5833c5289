"""The folder of a live proof, and the documents in it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pipeline_assets.canary.live import texts_of
from pipeline_assets.canary.proof_errors import ProofDamaged
from pipeline_assets.canary.proof_place import ProofPlace, proof_place
from pipeline_assets.workloads.equipment_manuals.workload import load as load_manuals
from pipeline_assets.workloads.support_tickets.workload import load as load_tickets
from pipeline_assets.workloads.workload import Workload
from resources.settings import load_settings

KEY = "manuals-baseline-2"


def place(tmp_path: Path) -> ProofPlace:
    return proof_place(load_settings(state=tmp_path), KEY)


def test_a_proof_is_gone_on_with_until_its_verdict(tmp_path: Path) -> None:
    first = place(tmp_path)
    assert first.name == f"{KEY}-1"
    assert stat.S_IMODE(first.folder.stat().st_mode) == 0o700
    assert not first.begun
    first.write_documents({"a.txt": "one\u2028line\r\n"})
    again = place(tmp_path)
    assert again == first
    assert again.begun
    assert (again.documents / "a.txt").read_bytes() == "one\u2028line\r\n".encode()
    again.note_forced("a failure")
    again.note_forced("another")
    assert place(tmp_path).forced() == ["a failure", "another"]
    again.note_verdict({"holds": False})
    assert place(tmp_path).name == f"{KEY}-2"


def test_another_version_has_another_proof(tmp_path: Path) -> None:
    first = place(tmp_path)
    other = proof_place(load_settings(state=tmp_path), "manuals-baseline-1")
    assert other.name == "manuals-baseline-1-1"
    assert place(tmp_path) == first


def test_a_broken_mark_is_told(tmp_path: Path) -> None:
    (place(tmp_path).folder / "verdict.json").write_text("{")
    with pytest.raises(ProofDamaged, match=r"verdict\.json cannot be read"):
        place(tmp_path)


def test_nothing_of_the_outer_state_is_used(tmp_path: Path) -> None:
    outer = load_settings(
        state=tmp_path / "state",
        ledger_url="postgresql+psycopg://user@127.0.0.1/production",
        specs=tmp_path / "specs",
        workloads=tmp_path / "workloads",
    )
    found = proof_place(outer, KEY)
    inner = found.settings(outer, "equipment_manuals")
    assert inner.ledger_place == f"sqlite:///{found.folder / 'ledger.sqlite'}"
    assert inner.state_folder == found.folder
    assert inner.source_given
    assert inner.source_folder == found.documents
    assert not inner.place(inner.catalogue).exists()
    assert inner.spec_folders == outer.spec_folders
    assert inner.workload_folder == outer.workload_folder


@pytest.mark.parametrize("least", [0, 1, 8, 30, 100])
@pytest.mark.parametrize(
    "workload",
    [pytest.param(load_manuals(), id="manuals"), pytest.param(load_tickets(), id="tickets")],
)
def test_documents_are_different_ones(workload: Workload, least: int) -> None:
    documents = list(workload.canary())
    texts = texts_of(documents, least)
    assert len(texts) == max(least, len(documents) + 1)
    assert len(set(texts.values())) == len(texts), "equal ones would be one record"
    for document, text in zip(documents, texts.values(), strict=False):
        assert text.split("\f") == list(document.pages)
