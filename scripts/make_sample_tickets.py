"""Makes the sample tickets: `data/tickets.csv` and `data/tickets-labels.csv`.

The texts and what a faultless reading of each finds stand in `scripts/sample_tickets.yaml`; here
is only how they become tables. The result is the same each time.

Run `python scripts/make_sample_tickets.py [FOLDER]`; FOLDER is `data` beside this folder by
default.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
TEXTS = REPOSITORY / "scripts" / "sample_tickets.yaml"
FIRST_NUMBER = 1001
FIRST_TIME = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
STEP = timedelta(minutes=47)
LABELS = ("category", "priority", "product", "language", "about", "person")
SEVERAL = "|"
"""Between the values of a label of which any is right."""


def read_tickets() -> list[dict[str, Any]]:
    """The tickets in their order, as they are written."""
    return yaml.safe_load(TEXTS.read_text(encoding="utf-8"))


def make_tickets(folder: Path) -> int:
    """Write both tables into a folder; returns how many tickets they have."""
    tickets = read_tickets()
    named = [(f"T-{FIRST_NUMBER + place}", ticket) for place, ticket in enumerate(tickets)]
    _write(
        folder / "tickets.csv",
        ("ticket_id", "updated", "subject", "body"),
        (
            (
                name,
                (FIRST_TIME + place * STEP).isoformat(),
                ticket["subject"],
                ticket["body"].rstrip("\n"),
            )
            for place, (name, ticket) in enumerate(named)
        ),
    )
    _write(
        folder / "tickets-labels.csv",
        ("ticket_id", *LABELS),
        ((name, *(_label(ticket, label) for label in LABELS)) for name, ticket in named),
    )
    return len(named)


def _label(ticket: Mapping[str, Any], label: str) -> str:
    value = ticket.get(label)
    return SEVERAL.join(value) if isinstance(value, list) else value or ""


def _write(file: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main(arguments: list[str]) -> int:
    """The command; returns its exit status."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: make_sample_tickets.py [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else REPOSITORY / "data"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{make_tickets(folder)} tickets in {folder / 'tickets.csv'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
