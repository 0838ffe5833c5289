"""Two tables of outcomes side by side: what is the same, what moved, whose values changed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_assets.account.reconciliation.baseline import (
    ChangedSetting,
    ChangedSubject,
    Moved,
    compare_outcomes,
    compare_settings,
)
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from resources.contracts import contract_writer

Table = dict[str, tuple[str, str | None]]
"""Subject → state and accepted digest."""


def write(file: Path, table: Table, shard: int = 2) -> Path:
    """Write a table of outcomes, a row group for so many subjects."""
    ordered = sorted(table.items(), key=lambda one: one[0].encode())
    with contract_writer(OUTCOMES, file) as writer:
        for start in range(0, len(ordered), shard):
            part = ordered[start : start + shard]
            rows = [
                dict.fromkeys(OUTCOMES.schema)
                | {
                    "subject": subject,
                    "document_id": f"of {subject}",
                    "state": state,
                    "accepted_digest": digest,
                }
                for subject, (state, digest) in part
            ]
            writer.write(OUTCOMES.conform(pl.DataFrame(rows, schema=dict(OUTCOMES.schema))))
    return file


TABLES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e", "z", "ä", "\U0001f600", "\uffff"]),
    st.tuples(st.sampled_from(["published", "rejected"]), st.sampled_from([None, "x", "y"])),
)


@settings(max_examples=150, deadline=None)
@given(before=TABLES, after=TABLES, shard=st.integers(1, 4), most=st.integers(0, 3))
def test_it_is_what_a_dictionary_says(before: Table, after: Table, shard: int, most: int) -> None:
    with TemporaryDirectory() as folder:
        found = compare_outcomes(
            write(Path(folder) / "a", before, shard),
            write(Path(folder) / "b", after, 5 - shard),
            most,
        )
    nothing = (None, None)
    every = sorted({*before, *after}, key=str.encode)
    changed = [each for each in every if before.get(each) != after.get(each)]
    assert found.same == len(every) - len(changed)
    moved = Counter((before.get(each, nothing)[0], after.get(each, nothing)[0]) for each in changed)
    expected = {states: count for states, count in moved.items() if states[0] != states[1]}
    assert {(one.before, one.after): one.subjects for one in found.moved} == expected
    assert found.values_changed == sum(
        before[each][1] != after[each][1]
        for each in changed
        if each in before and each in after and None not in (before[each][1], after[each][1])
    )
    assert [one.subject for one in found.changed] == changed[:most]
    assert found.more == max(0, len(changed) - most)


def test_a_subject_is_told_in_full(tmp_path: Path) -> None:
    before = write(tmp_path / "a", {"gone": ("published", "x"), "other": ("accepted", "x")})
    after = write(tmp_path / "b", {"new": ("dead_letter", None), "other": ("published", "y")})
    found = compare_outcomes(before, after)
    assert found.changed == (
        ChangedSubject("gone", "of gone", "published", None, "x", None),
        ChangedSubject("new", "of new", None, "dead_letter", None, None),
        ChangedSubject("other", "of other", "accepted", "published", "x", "y"),
    )
    assert found.moved == (
        Moved(None, "dead_letter", 1),
        Moved("accepted", "published", 1),
        Moved("published", None, 1),
    )
    assert (found.same, found.values_changed, found.more) == (0, 1, 0)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {}, ()),
        ({"a": "1"}, {"a": "1"}, ()),
        ({"a": "1"}, {"a": "2"}, (ChangedSetting("a", "1", "2"),)),
        ({"b": "1"}, {"a": "2"}, (ChangedSetting("a", None, "2"), ChangedSetting("b", "1", None))),
    ],
    ids=["nothing", "same", "other", "new-and-gone"],
)
def test_settings(
    before: dict[str, str], after: dict[str, str], changed: tuple[ChangedSetting, ...]
) -> None:
    assert compare_settings(before, after) == changed
