"""Two folders: documents of one need approval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import insert

from pipeline_assets.ingest.scan import scan_declared
from resources.context import Context
from resources.ledger.schema import records
from tests.support.clock import FrozenClock

ASKED, FREE = "inbox", "shelf"
SOURCES = f"""
sources:
  {ASKED}:
    kind: folder
    path: {ASKED}
    workload: equipment_manuals
    approval: true
    allow_empty: true
  {FREE}:
    kind: folder
    path: {FREE}
    workload: equipment_manuals
"""


@dataclass(frozen=True)
class Office:
    """The folders, and the ledger that they are scanned into."""

    folder: Path
    context: Context
    clock: FrozenClock

    def fill(self) -> Office:
        """Declare the folders, put documents into them, and scan."""
        (self.folder / "sources.yaml").write_text(SOURCES, encoding="utf-8")
        for name in (ASKED, FREE):
            (self.folder / name).mkdir()
        for name in ("a.txt", "b.txt", "c.txt"):
            self.write(ASKED, name, name)
        self.write(ASKED, "empty.txt", "")
        self.write(FREE, "free.txt", "free")
        self.scan()
        return self

    def write(self, source: str, name: str, text: str) -> None:
        """Put a document into a folder."""
        (self.folder / source / name).write_text(text, encoding="utf-8")

    def remove(self, source: str, name: str) -> None:
        """Take a document out of a folder."""
        (self.folder / source / name).unlink()

    def scan(self) -> None:
        """Look what the folders hold."""
        self.clock.advance(60)
        scan_declared(self.context)

    def add_record(self, document_no: int, source_version_no: int, checksum: str) -> None:
        """Give a document's bytes a record."""
        with self.context.ledger.write() as connection:
            connection.execute(
                insert(records).values(
                    record_no=document_no,
                    record_id=f"equipment_manuals:{document_no}@{checksum[:12]}:some-1",
                    version_no=1,
                    document_no=document_no,
                    source_version_no=source_version_no,
                    checksum=checksum,
                    operation="extract",
                    replay_reason="new_source",
                    manifest_no=1,
                )
            )
