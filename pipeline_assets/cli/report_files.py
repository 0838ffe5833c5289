"""The files of `tallybook report`: the page and the table of outcomes.

Belongs here: writing them whole to names that a person gave. Does not belong here: what stands in
them (`pipeline_assets/account/reconciliation`).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline_assets.account.reconciliation.facts import FullReport
    from pipeline_assets.account.reconciliation.kept import OpenedReport
    from pipeline_assets.account.reconciliation.page import Closing


@dataclass(frozen=True)
class Files:
    """Which files are wanted, and whether they may replace others."""

    html: Path | None
    outcomes: Path | None
    force: bool

    def __bool__(self) -> bool:
        """Is any wanted?"""
        return self.html is not None or self.outcomes is not None

    def write(
        self, report: FullReport, outcomes: Path, digest: str, closing: Closing | None = None
    ) -> None:
        """Write what is wanted of a report.

        Args:
            report: the report.
            outcomes: the file of its table of outcomes.
            digest: of its content.
            closing: who closed it.

        Raises:
            FileRefused: a name is taken, or cannot be one.
        """
        from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
        from pipeline_assets.account.reconciliation.page import page_of
        from pipeline_assets.account.whole_file import whole_file
        from resources.contracts import read_shards

        if self.html is not None:
            with (
                whole_file(self.html.expanduser(), force=self.force) as fresh,
                fresh.open("w", encoding="utf-8", errors="replace") as stream,
            ):
                shards = read_shards(OUTCOMES, outcomes)
                stream.writelines(page_of(report, shards, digest, closing))
        self._copy(outcomes)

    def write_kept(self, kept: OpenedReport) -> None:
        """The same of a kept report; the page of a closed one is the very page that was closed.

        Raises:
            FileRefused: a name is taken, or cannot be one.
        """
        from pipeline_assets.account.reconciliation.page import Closing
        from pipeline_assets.account.whole_file import whole_file

        row = kept.row
        if kept.page is None:
            closing = None
            if row.closed_by is not None and row.closed_at is not None:
                closing = Closing(row.closed_by, row.closed_at, row.closing_reason or "")
            self.write(kept.report, kept.outcomes, row.digest, closing)
            return
        if self.html is not None:
            with whole_file(self.html.expanduser(), force=self.force) as fresh:
                shutil.copyfile(kept.page, fresh)
        self._copy(kept.outcomes)

    def say(self) -> None:
        """Tell where they are."""
        from pipeline_assets.cli import output

        if self.html is not None:
            output.say(f"Page written to {self.html}")
        if self.outcomes is not None:
            output.say(f"Outcomes written to {self.outcomes}")

    def _copy(self, outcomes: Path) -> None:
        from pipeline_assets.account.whole_file import whole_file

        if self.outcomes is not None:
            with whole_file(self.outcomes.expanduser(), force=self.force) as fresh:
                shutil.copyfile(outcomes, fresh)
