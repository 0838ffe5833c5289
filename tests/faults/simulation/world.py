"""Everything that a schedule runs in, made once a process and emptied between schedules.

Belongs here: putting ledger, store, provider and oracles together, and the rows that are there
before anything runs. Does not belong here: what workers do.
"""

from __future__ import annotations

import copy
import hashlib
import random
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
from greenlet import greenlet

from pipeline_assets.versions import OpenVersion
from resources.context import Context, SilentProgress
from resources.ledger.schema import metadata
from resources.ledger.versions import find, freeze
from tests.faults.simulation.gate import Gate, SimulatedClock
from tests.faults.simulation.memory import MemoryDialect, MemoryStore, open_memory
from tests.faults.simulation.oracles import Oracles
from tests.faults.simulation.plan import Plan
from tests.faults.simulation.provider import MODEL, NAME, Client, Provider, SimulatedJob
from tests.faults.simulation.stubs import PARSER_KEY, WORKLOAD

DOCUMENTS = 6
KEY = "simulated-1"
THUMBNAIL = hashlib.sha256(b"thumbnail").hexdigest()
_AT = "2030-01-01T00:00:00.000000Z"
_KEPT = frozenset(
    {
        "ledger_info",
        "sources",
        "snapshots",
        "documents",
        "source_versions",
        "source_entries",
        "parses",
        "processing_versions",
        "moves",
    }
)
"""Tables whose rows are there before a schedule and stay; of moves only the first two."""


_OLDER_SEARCH = (
    "INSERT INTO archive_search (rowid,title,identifiers,description,language) "
    "VALUES (?,'older','','','en')"
)


@dataclass(frozen=True)
class Snapshot:
    """A moment of a schedule: rows by insert statement, artifacts, and the provider's jobs."""

    tables: list[tuple[str, list[tuple[Any, ...]]]]
    moment: datetime
    files: dict[tuple[str, str], bytes]
    frames: dict[str, pl.DataFrame]
    jobs: dict[str, SimulatedJob]
    run_counts: dict[str, int]


def checksum(document_no: int) -> str:
    """The checksum of a document's bytes."""
    return hashlib.sha256(f"document {document_no}".encode()).hexdigest()


class World:
    """One process's world."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.gate = Gate(self.clock)
        self.store = MemoryStore(self.gate)
        self.provider = Provider(self.gate, self.store, self.clock)
        self.client = Client(self.provider)
        self.oracles = Oracles(self.clock, self.gate, self.provider, self.store)
        self.ledger = open_memory(self.gate, self.oracles)
        self.driver = self.ledger.driver
        self.oracles.watch(self.ledger)
        self.provider.on_create = self.oracles.create_heard
        self.gate.on_failure = self.oracles.local_failure
        self.version = self._first_rows()
        self.settings: Any = None
        self.snapshots: dict[Any, Snapshot] = {}
        emptied = [t.name for t in metadata.sorted_tables if t.name not in _KEPT]
        self._empty = [f"DELETE FROM {name}" for name in emptied]

    def _first_rows(self) -> OpenVersion:
        driver = self.driver
        cause = self.context("setup", random.Random(0)).cause("first use", "setup")
        frozen = freeze(self.ledger, KEY, "simulated", "0" * 64, "{}", cause)
        freeze(self.ledger, "older-1", "simulated", "1" * 64, "{}", cause)
        driver.execute(
            "INSERT INTO sources (source_no,name,kind,location,registered_at,workload) "
            "VALUES (1,'s','d','/',?,'simulated')",
            (_AT,),
        )
        driver.execute(
            "INSERT INTO snapshots (snapshot_no,source_no,taken_at,digest,documents,excluded,added,"
            "changed,removed,complete) VALUES (1,1,?,?,6,0,6,0,0,1)",
            (_AT, "0" * 64),
        )
        for no in range(1, DOCUMENTS + 1):
            self._document(no)
        spec = SimpleNamespace(
            key=KEY,
            provider=NAME,
            model=MODEL,
            mode="batch",
            endpoint=None,
            workload="simulated",
            schema_version=1,
            request=None,
            acceptance=None,
        )
        return OpenVersion(cast(Any, spec), cast(Any, WORKLOAD), frozen)

    def _document(self, no: int) -> None:
        driver = self.driver
        driver.execute(
            "INSERT INTO documents (document_no,document_id,source_no,first_seen_at) "
            "VALUES (?,?,1,?)",
            (no, f"s/{no}.pdf", _AT),
        )
        driver.execute(
            "INSERT INTO source_versions (source_version_no,document_no,checksum,bytes,"
            "first_seen_at) VALUES (?,?,?,1,?)",
            (no, no, checksum(no), _AT),
        )
        driver.execute(
            "INSERT INTO source_entries (document_no,from_snapshot,source_version_no,size,mtime_ns,"
            "device,inode,scanned_at_ns,detail) VALUES (?,1,?,1,0,'0','0',0,'')",
            (no, no),
        )
        driver.execute(
            "INSERT INTO parses (checksum,parser_key,detail,languages,partial,notes,text_pack,"
            "thumbnail,wall_ms,cpu_ms,peak_rss_bytes,cacheable,parsed_at) "
            "VALUES (?,?,'','[]',0,'[]',?,?,0,0,0,1,?)",
            (checksum(no), PARSER_KEY, "0" * 64, THUMBNAIL, _AT),
        )

    def reset(self, plan: Plan, hub: greenlet) -> None:
        """Make everything as it was before the first schedule, for this plan."""
        driver = self.driver
        driver.execute("PRAGMA query_only=0")
        driver.execute("PRAGMA foreign_keys=OFF")
        driver.execute("BEGIN")
        self._delete_all(driver)
        driver.execute("DELETE FROM archive_search")
        for no in range(1, plan.published_before + 1):
            self._published_before(no)
        driver.execute("COMMIT")
        driver.execute("PRAGMA foreign_keys=ON")
        cast(MemoryDialect, self.ledger.dialect).note_tables(driver)
        self.gate.start(plan.disturbances, hub)
        self.store.clear()
        self.store.files[("thumbnail", THUMBNAIL)] = b"thumbnail"
        self.provider.start(plan)
        self.oracles.start(plan)

    def snapshot(self) -> Snapshot:
        """Everything as it is now, to go on from there many times."""
        tables = []
        for table in metadata.sorted_tables:
            if table.name == "moves":
                found = self.driver.execute("SELECT * FROM moves WHERE move_no > 2").fetchall()
            elif table.name in _KEPT:
                continue
            else:
                found = self.driver.execute(f"SELECT * FROM {table.name}").fetchall()
            if found:
                marks = ",".join("?" * len(found[0]))
                tables.append((f"INSERT INTO {table.name} VALUES ({marks})", found))
        provider = self.provider
        return Snapshot(
            tables=tables,
            moment=self.clock.moment,
            files=dict(self.store.files),
            frames=dict(self.store.frames),
            jobs=copy.deepcopy(provider.jobs),
            run_counts=dict(provider.run_counts),
        )

    def go_on_from(self, snapshot: Snapshot, plan: Plan, hub: greenlet) -> None:
        """Make everything as it was then, for this plan."""
        driver = self.driver
        driver.execute("PRAGMA query_only=0")
        driver.execute("PRAGMA foreign_keys=OFF")
        driver.execute("BEGIN")
        self._delete_all(driver)
        driver.execute("DELETE FROM archive_search")
        for statement, rows in snapshot.tables:
            driver.executemany(statement, rows)
        for no in range(1, plan.published_before + 1):
            driver.execute(_OLDER_SEARCH, (no,))
        driver.execute("COMMIT")
        driver.execute("PRAGMA foreign_keys=ON")
        self.gate.start(plan.disturbances, hub)
        self.clock.moment = snapshot.moment
        self.store.files = dict(snapshot.files)
        self.store.frames = dict(snapshot.frames)
        self.provider.start(plan)
        self.provider.go_on(copy.deepcopy(snapshot.jobs), dict(snapshot.run_counts))
        self.oracles.start(plan)

    def _delete_all(self, driver: sqlite3.Connection) -> None:
        for statement in self._empty:
            driver.execute(statement)
        driver.execute("DELETE FROM moves WHERE move_no > 2")
        driver.execute("UPDATE processing_versions SET state = 'active'")

    def _published_before(self, no: int) -> None:
        driver = self.driver
        content = f"older value of {no}"
        digest = hashlib.sha256(content.encode()).hexdigest()
        driver.execute(
            "INSERT INTO records (record_no,record_id,version_no,document_no,source_version_no,"
            "checksum,operation,replay_reason,manifest_no) VALUES (?,?,2,?,?,?,'extract','new',0)",
            (no, f"simulated:s/{no}.pdf@{checksum(no)[:12]}:older-1", no, no, checksum(no)),
        )
        driver.execute("INSERT INTO record_state VALUES (?,'published',3,0,NULL)", (no,))
        driver.execute(
            "INSERT INTO archive_entries (entry_no,document_no,record_no,version_no,"
            "archive_version,promotion,content,content_digest,thumbnail,valid_from) "
            "VALUES (?,?,?,2,1,1,?,?,?,?)",
            (no, no, no, content, digest, THUMBNAIL, _AT),
        )
        driver.execute("INSERT INTO archive_heads VALUES (?,?)", (no, no))
        driver.execute(_OLDER_SEARCH, (no,))
        driver.execute(
            "INSERT INTO deliveries VALUES (?,'publish',?,?,1,'published',?,?)",
            (no, "2" * 64, digest, no, _AT),
        )

    def version_now(self) -> OpenVersion:
        """The version as a new process would open it."""
        frozen = find(self.ledger, KEY)
        assert frozen is not None
        return replace(self.version, frozen=frozen)

    def context(self, worker: str, rng: random.Random) -> Context:
        """The context that one worker's process would open."""
        return Context(
            settings=cast(Any, SimpleNamespace(owner="simulation")),
            ledger=self.ledger,
            artifacts=cast(Any, self.store),
            clock=self.clock,
            rng=rng,
            progress=SilentProgress(),
            worker=worker,
        )
