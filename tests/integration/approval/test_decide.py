"""Documents of a source that demands approval wait, are decided on, and wait again when changed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import insert, select

from pipeline_assets.approval.decide import (
    Selection,
    decide,
    read_list,
    select_all,
    select_documents,
    waiting_documents,
    waiting_for_approval,
)
from pipeline_assets.approval.errors import (
    ApprovalNotAsked,
    ListUnreadable,
    NotHeld,
    NothingWaits,
    NotReadable,
    OutOfDate,
    SelectionChanged,
    Unsaid,
)
from resources.ledger.approvals import Decision, decisions
from resources.ledger.schema import approvals, erasures
from resources.sources.declared import UnknownSource
from tests.integration.approval.support import ASKED, FREE, Office

A, B, C = (f"{ASKED}/{name}.txt" for name in "abc")
WORKLOAD = "equipment_manuals"


def _waiting(office: Office) -> list[str]:
    return waiting_documents(office.context)["document_id"].to_list()


def _decide(office: Office, decision: Decision, *names: str) -> None:
    office.clock.advance(1)
    selection = select_documents(office.context, names)
    decide(office.context, selection, decision, reason="looked at it", actor="ann")


def _decided(office: Office) -> list[str]:
    return decisions(office.context.ledger, WORKLOAD)["decision"].to_list()


def test_every_readable_document_waits(office: Office) -> None:
    assert _waiting(office) == [A, B, C]
    assert waiting_for_approval(office.context.ledger, office.context.settings) == {ASKED: 3}
    assert decisions(office.context.ledger, WORKLOAD).is_empty()


def test_a_decision_is_kept_with_who_and_why(office: Office) -> None:
    _decide(office, "approved", A)
    _decide(office, "refused", B)
    assert _waiting(office) == [C]
    found = decisions(office.context.ledger, WORKLOAD)
    assert found.select("decision", "reason", "actor").rows() == [
        ("approved", "looked at it", "ann"),
        ("refused", "looked at it", "ann"),
    ]
    assert decisions(office.context.ledger, "another_workload").is_empty()
    assert waiting_for_approval(office.context.ledger, office.context.settings) == {ASKED: 1}


def test_the_newest_decision_counts_and_the_others_are_kept(office: Office) -> None:
    _decide(office, "approved", A)
    _decide(office, "refused", A)
    assert _decided(office) == ["refused"]
    with office.context.ledger.read() as connection:
        assert len(connection.execute(select(approvals)).all()) == 2


def test_changed_bytes_wait_again_and_old_ones_stay_decided(office: Office) -> None:
    _decide(office, "approved", A)
    office.write(ASKED, "a.txt", "corrected")
    office.scan()
    assert _waiting(office) == [B, C, A]
    office.write(ASKED, "a.txt", "a.txt")
    office.scan()
    assert _waiting(office) == [B, C]


def test_a_removed_document_does_not_wait(office: Office) -> None:
    office.remove(ASKED, "a.txt")
    office.scan()
    assert _waiting(office) == [B, C]


def test_an_erased_document_does_not_wait(office: Office) -> None:
    number = waiting_documents(office.context)["document_no"][0]
    with office.context.ledger.write() as connection:
        connection.execute(
            insert(erasures).values(
                document_no=number, reason="r", actor="ann", begun_at="2030", purged="{}"
            )
        )
    assert _waiting(office) == [B, C]


def test_a_selection_of_bytes_that_changed_is_out_of_date(office: Office) -> None:
    selection = select_documents(office.context, [A, B])
    office.write(ASKED, "a.txt", "corrected")
    office.scan()
    with pytest.raises(OutOfDate, match=r"inbox/a\.txt changed"):
        decide(office.context, selection, "approved", reason="r", actor="ann")
    assert _decided(office) == []


def test_bytes_that_are_named_must_be_the_present_ones(office: Office) -> None:
    checksum = waiting_documents(office.context)["checksum"][0]
    _decide(office, "approved", f"{A}@{checksum[:12]}")
    assert _decided(office) == ["approved"]
    with pytest.raises(OutOfDate):
        select_documents(office.context, [f"{A}@{'0' * 12}"])


def test_all_of_a_source_are_those_that_wait(office: Office) -> None:
    _decide(office, "refused", B)
    selection = select_all(office.context, ASKED)
    assert selection.documents["document_id"].to_list() == [A, C]
    decide(office.context, selection, "approved", reason="r", actor="ann")
    assert sorted(_decided(office)) == ["approved", "approved", "refused"]
    with pytest.raises(NothingWaits):
        select_all(office.context, ASKED)


def test_a_confirmed_selection_must_be_the_same_one(office: Office) -> None:
    shown = select_all(office.context, ASKED)
    again = select_all(office.context, ASKED)
    assert shown.digest == again.digest
    office.write(ASKED, "d.txt", "d")
    office.scan()
    later = select_all(office.context, ASKED)
    with pytest.raises(SelectionChanged):
        decide(office.context, later, "approved", reason="r", actor="ann", confirmed=shown.digest)
    decide(office.context, later, "approved", reason="r", actor="ann", confirmed=later.digest)


def test_a_refusal_says_how_many_were_processed_before(office: Office) -> None:
    row = waiting_documents(office.context).row(0, named=True)
    office.add_record(row["document_no"], row["source_version_no"], row["checksum"])
    selection = select_documents(office.context, [A, B])
    done = decide(office.context, selection, "refused", reason="r", actor="ann")
    assert (done.documents, done.with_records, done.examples) == (2, 1, (A, B))


@pytest.mark.parametrize(
    ("names", "error"),
    [
        pytest.param([f"{ASKED}/nowhere.txt"], NotHeld, id="unknown"),
        pytest.param([f"{FREE}/free.txt"], ApprovalNotAsked, id="another source"),
        pytest.param([f"{ASKED}/empty.txt"], NotReadable, id="excluded"),
        pytest.param([A, f"{FREE}/free.txt"], ApprovalNotAsked, id="one of two"),
    ],
)
def test_what_cannot_be_decided_on(
    office: Office, names: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        select_documents(office.context, names)


def test_a_removed_document_is_not_held(office: Office) -> None:
    office.remove(ASKED, "a.txt")
    office.scan()
    with pytest.raises(NotHeld):
        select_documents(office.context, [A])


@pytest.mark.parametrize(
    ("source", "error"), [(FREE, ApprovalNotAsked), ("nowhere", UnknownSource)]
)
def test_a_source_that_asks_for_nothing(
    office: Office, source: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        waiting_documents(office.context, source)


@pytest.mark.parametrize(
    ("reason", "actor"),
    [
        pytest.param(" \n ", "ann", id="no reason"),
        pytest.param("r", " ", id="nobody"),
        pytest.param("r", "x" * 129, id="a name that is too long"),
    ],
)
def test_somebody_decides_for_a_reason(office: Office, reason: str, actor: str) -> None:
    selection: Selection = select_documents(office.context, [A])
    with pytest.raises(Unsaid):
        decide(office.context, selection, "approved", reason=reason, actor=actor)


def test_a_list_of_documents(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(f"{A}\r\n\n{B}\n".encode())
    assert read_list(file) == [A, B]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="not there"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"\n \n", id="empty"),
    ],
)
def test_a_list_that_cannot_be_used(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "list.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ListUnreadable):
        read_list(file)


def test_many_documents_are_looked_up_in_groups(office: Office) -> None:
    names = [f"many-{number}.txt" for number in range(1_001)]
    for name in names:
        office.write(ASKED, name, name)
    office.scan()
    selection = select_documents(office.context, [f"{ASKED}/{name}" for name in names])
    assert selection.documents.height == 1_001
    assert decide(office.context, selection, "approved", reason="r", actor="ann").documents == len(
        names
    )
    assert decisions(office.context.ledger, WORKLOAD).filter(
        pl.col("decision") == "approved"
    ).height == len(names)
