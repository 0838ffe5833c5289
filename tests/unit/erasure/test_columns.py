"""Every column that may hold text is decided about where erasures are."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import String, Text

from resources.ledger.schema import metadata

_ROW = re.compile(
    r"^\| (?P<table>[a-z_]+) \| (?P<emptied>[^|]*)\| (?P<stays>[^|]*)\|$", re.MULTILINE
)
_EMPTIED = {
    "archive_entries": {"content"},
    "findings": {"note"},
    "parses": {"detail", "languages", "language", "media_type", "notes", "text_pack", "thumbnail"},
    "replay_members": {"slice"},
    "reviews": {"corrected_content"},
}


def test_the_decision_names_every_text_column(repository: Path) -> None:
    page = (repository / "docs" / "adr" / "023-erasure.md").read_text(encoding="utf-8")
    told = {match["table"]: match for match in _ROW.finditer(page)}
    for table in metadata.sorted_tables:
        columns = {column.name for column in table.c if isinstance(column.type, String | Text)}
        if not columns:
            continue
        assert table.name in told, f"docs/adr/023-erasure.md says nothing of {table.name}"
        emptied = _names(told[table.name]["emptied"])
        stays = _names(told[table.name]["stays"])
        assert columns <= emptied | stays, f"nothing is decided about columns of {table.name}"
        assert emptied & columns == _EMPTIED.get(table.name, set())


def _names(cell: str) -> set[str]:
    """The columns that a cell names: what follows a colon or stands in brackets is a reason."""
    return set(re.sub(r"\([^)]*\)|:.*", "", cell).replace(",", " ").split())
