"""Ledgers of released schemas, put into a state folder or carried into another database.

Belongs here: loading what lies in `tests/fixtures/ledgers`. Does not belong here: what must come
of it.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import tempfile
import zlib
from pathlib import Path

from resources.ledger.dump import dump_table, load_table, tables_of
from resources.ledger.engine import connect, revision_of, upgrade_within

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "ledgers"
RELEASES = ("0001", "0002", "0003", "0004", "0005")
KEYS = dict.fromkeys(RELEASES[1:], "manuals-openai-batch-1") | {"0001": "manuals-baseline-1"}
"""Release → the processing version that its ledger has."""


def load_released(release: str, state: Path, ledger_url: str) -> None:
    """Make a state folder with the ledger of a release at `ledger_url`, and its artifacts."""
    state.mkdir(mode=0o700, exist_ok=True)
    for line in (FOLDER / f"{release}.artifacts.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        place = state / "artifacts" / entry["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(zlib.decompress(base64.b64decode(entry["zlib"])))
    if ledger_url.startswith("sqlite"):
        load_file(release, Path(ledger_url.removeprefix("sqlite:///")))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        load_file(release, file)
        carry(f"sqlite:///{file}", ledger_url, Path(folder))


def load_file(release: str, file: Path) -> None:
    """Make a SQLite file of a release's ledger."""
    connection = sqlite3.connect(file)
    connection.executescript((FOLDER / f"{release}.sql").read_text(encoding="utf-8"))
    connection.close()


def carry(origin_url: str, target_url: str, folder: Path) -> None:
    """Carry a ledger as it is, in its own schema, into an empty database."""
    origin, target = connect(origin_url), connect(target_url)
    with origin.read() as connection:
        revision = revision_of(connection)
        assert revision is not None
        tables = tables_of(connection)
        for table in tables:
            dump_table(connection, origin.dialect, table, folder / f"{table.name}.parquet")
    with target.write() as connection:
        upgrade_within(connection, revision)
        for table in tables:
            load_table(connection, target.dialect, table, folder / f"{table.name}.parquet")
        target.dialect.after_load(connection, tables)
    origin.engine.dispose()
    target.engine.dispose()
