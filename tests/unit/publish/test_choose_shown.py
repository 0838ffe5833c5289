"""Which entry a document shows that came back, as a table."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.publish.withdraw import choose_shown

COLUMNS = {
    "document_no": pl.Int64,
    "record_no": pl.Int64,
    "version_no": pl.Int64,
    "entry_no": pl.Int64,
    "archive_version": pl.Int64,
    "ended_by": pl.String,
    "removed": pl.Int64,
    "shown_version_no": pl.Int64,
    "shown_current": pl.Int64,
}
Row = tuple[int, int, int, int, int, str | None, int, int | None, int]


def _row(
    record: int,
    archive_version: int,
    ended_by: str | None,
    *,
    version: int = 1,
    removed: bool = False,
    shown: int | None = None,
    current: bool = False,
) -> Row:
    return (
        7,
        record,
        version,
        record * 10,
        archive_version,
        ended_by,
        int(removed),
        shown,
        int(current),
    )


LEFT = _row(1, 2, "removal", removed=True)


@pytest.mark.parametrize(
    ("rows", "manual", "entries", "waiting"),
    [
        pytest.param([], [], [], [], id="nothing"),
        pytest.param([LEFT], [], [10], [], id="shown when it was removed"),
        pytest.param([LEFT], [1], [], [1], id="its version publishes by command"),
        pytest.param([LEFT], [2], [10], [], id="another version publishes by command"),
        pytest.param([_row(1, 1, "publish")], [], [10], [], id="replaced by bytes that are gone"),
        pytest.param([_row(1, 1, None)], [], [10], [], id="ended before changes were kept"),
        pytest.param([_row(1, 1, "rollback")], [], [], [], id="rolled back"),
        pytest.param([_row(1, 1, "removal")], [], [], [], id="taken away for another reason"),
        pytest.param(
            [LEFT, _row(2, 3, "publish", version=2)],
            [],
            [10],
            [],
            id="what was shown at the removal wins over what is newer",
        ),
        pytest.param(
            [LEFT, _row(2, 5, "removal", version=2, removed=True)],
            [],
            [20],
            [],
            id="of two removals, the later one",
        ),
        pytest.param(
            [_row(1, 2, "removal", removed=True, shown=1)], [], [10], [], id="shows gone bytes"
        ),
        pytest.param(
            [_row(1, 2, "removal", removed=True, shown=1, current=True)],
            [],
            [],
            [],
            id="shows its present bytes already",
        ),
        pytest.param(
            [_row(1, 2, "removal", removed=True, shown=2)],
            [],
            [],
            [],
            id="shows values of another version",
        ),
    ],
)
def test_choose_shown(
    rows: list[Row], manual: list[int], entries: list[int], waiting: list[int]
) -> None:
    former = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    chosen = choose_shown(former, manual)
    assert chosen.entries.to_list() == entries
    assert chosen.waiting.to_list() == waiting
