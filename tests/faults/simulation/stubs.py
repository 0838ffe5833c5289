"""What is not real: files, parsing, rules, capabilities. Each is put in place of one name.

Belongs here: every replacement, in one table, with what it stands for. Does not belong here:
planted bugs (`mutations.py`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import polars as pl
from sqlalchemy import text

from pipeline_assets.accept import judge_batches
from pipeline_assets.accept.judge import Judged
from pipeline_assets.collect import collect_batches, evidence, settle
from pipeline_assets.operating import Operating, operating
from pipeline_assets.prepare import retries
from pipeline_assets.provider_jobs import hand_over, monitor, operate, results
from pipeline_assets.provider_jobs.clients import LazyClient
from pipeline_assets.provider_jobs.fetch import DownloadFailed, Fetched
from pipeline_assets.publish import publish_accepted
from pipeline_assets.workloads.workload import AnswerInvalid
from resources.catalogue import NO_CATALOGUE
from resources.contracts import PLACES, STAGING
from resources.ledger import journal
from resources.ledger.engine import Ledger
from resources.ledger.leases import Lease
from resources.ledger.manifests import BatchPlan, ManifestChanged, ManifestDigest
from resources.providers.capabilities import find_capability
from resources.providers.port import BatchClient, RemoteFile
from resources.record_ids import batch_key, custom_id, reference
from resources.spilled import rows_of
from tests.faults.simulation.memory import MemoryStore
from tests.faults.simulation.provider import ENDPOINT, MODEL, NAME, Client, Reader, request_line

if TYPE_CHECKING:
    from resources.context import Context

PARSER_KEY = "parser-1"
_FINDINGS = {
    "rule": pl.String,
    "rule_version": pl.Int64,
    "severity": pl.String,
    "field": pl.String,
    "note": pl.String,
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
}


@dataclass(frozen=True)
class Replacement:
    """A name of a module, and what stands in its place during schedules."""

    module: Any
    name: str
    value: Any


def check_answer(text: str) -> str:
    """An answer's normal form.

    Raises:
        AnswerInvalid: it has none.
    """
    if not text.startswith("{"):
        raise AnswerInvalid("not of the form")
    return text


def echoed(answer: pl.Expr) -> pl.Expr:
    """What an answer calls its document."""
    return answer.str.extract(r'"reference":"([^"]*)"')


WORKLOAD = SimpleNamespace(
    name="simulated",
    fields=(),
    check_answer=check_answer,
    echoed=echoed,
    identical_duplicates="count_once",
    acceptances={
        "1": SimpleNamespace(rules=(), batch_rules=(), repairs=(), places=False),
    },
)


def judge(
    context: Context, _version: object, _lease: Lease, answers: Any, _known: object
) -> Judged:
    """Judging without rules: the answer must name its own document and be sure of itself."""
    store = cast(MemoryStore, context.artifacts)
    store.verify("frame", answers.collected)
    return judge_frame(context.ledger, store.frames[answers.collected])


def judge_frame(ledger: Ledger, collected: pl.DataFrame) -> Judged:
    """The judgement of collected answers."""
    with ledger.read() as connection:
        names = dict(
            connection.exec_driver_sql("SELECT record_no, record_id FROM records").fetchall()
        )
    rows = []
    for attempt_no, record_no, answer in collected.iter_rows():
        own = f'"reference":"{reference(names[record_no])}","sure":1' in answer
        rows.append(
            (
                attempt_no,
                record_no,
                "accepted" if own else "awaiting_review",
                answer,
                hashlib.sha256(answer.encode()).hexdigest(),
                "title",
                "",
                "",
                "en",
            )
        )
    staging = pl.DataFrame(rows, schema=dict(STAGING.schema), orient="row")
    return Judged(staging, pl.DataFrame(schema=_FINDINGS), PLACES.empty())


def ask_again(
    again: Any, manifest_id: str, rows: pl.DataFrame, _heart: object
) -> tuple[list[BatchPlan], pl.DataFrame]:
    """The requests of a retry manifest, in batches of the same size as those before."""
    store = cast(MemoryStore, again.context.artifacts)
    most = max(1, *rows["parent_records"].to_list())
    about = rows.drop("pages", "pages_sent", "tokens", "redactions", "request_digest")
    plans = [
        batch_of(store, again.context.ledger.ledger_id, manifest_id, ordinal, part)
        for ordinal, part in enumerate(about.iter_slices(most))
    ]
    return plans, pl.DataFrame(schema={"row": pl.Int64, "detail": pl.String})


def batch_of(
    store: MemoryStore, ledger_id: str, manifest_id: str, ordinal: int, rows: pl.DataFrame
) -> BatchPlan:
    """A batch whose requests are one word a document.

    Args:
        store: where the request file goes.
        ledger_id: part of the batch's key.
        manifest_id: part of the batch's key.
        ordinal: part of the batch's key.
        rows: what `BatchPlan.rows` holds, but for digests and places.
    """
    key = batch_key(ledger_id, manifest_id, ordinal)
    lines = [
        request_line(custom_id(key, index), reference(name))
        for index, name in enumerate(rows["record_id"])
    ]
    stored = store.put("request", b"".join(line + b"\n" for line in lines))
    made = rows.with_columns(
        request_digest=pl.Series([hashlib.sha256(line).hexdigest() for line in lines]),
        offset=pl.Series([sum(len(line) + 1 for line in lines[:i]) for i in range(len(lines))]),
        length=pl.Series([len(line) for line in lines]),
    )
    return BatchPlan(ordinal, key, stored.digest, stored.size, rows_of(made))


def fetch_file(
    store: MemoryStore,
    client: BatchClient,
    job_name: str,
    job_id: str,
    file: RemoteFile,
    *,
    on_block: Callable[[], None],
    **_rest: object,
) -> Fetched:
    """One connection, no pauses; a short body is a failed download."""
    data = b""
    with client.open_file(job_id, file, 0) as download:
        for block in download.blocks:
            data += block
            on_block()
        wanted = download.length
    if wanted is not None and len(data) != wanted:
        raise DownloadFailed(job_name, file.kind, len(data), wanted, "planned")
    return Fetched(file.kind, store.put("result", data), data.count(b"\n"))


class Scanned:
    """A frame that is asked as if it were read lazily from a file."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def filter(self, wanted: pl.Expr) -> Scanned:
        """As a lazy frame's."""
        return Scanned(self._frame.filter(wanted))

    def select(self, columns: Iterable[str]) -> Scanned:
        """As a lazy frame's."""
        return Scanned(self._frame.select(list(columns)))

    def collect(self) -> pl.DataFrame:
        """As a lazy frame's."""
        return self._frame


def store_frame(
    store: MemoryStore, kind: Any, _contract: object, shards: Iterable[pl.DataFrame]
) -> Any:
    """A frame in memory."""
    parts = list(shards)
    return store.put_frame(kind, parts[0] if len(parts) == 1 else pl.concat(parts))


def all_replacements(
    store: MemoryStore, client: Client, ledger: Ledger, lease_spies: list[Replacement]
) -> list[Replacement]:
    """Everything that is not real, and the spies on leases."""
    capability = find_capability(NAME, MODEL, ENDPOINT, "batch")
    settings: Operating = operating(ledger, 1)

    @contextmanager
    def job_client(_context: object, _version: object) -> Iterator[LazyClient]:
        yield LazyClient(lambda: cast(BatchClient, client))

    def verify_manifest(path: object, manifest_id: str, frozen: str) -> None:
        digest = ManifestDigest()
        digest.add(store.frames[cast(str, path)])
        if digest.hexdigest() != frozen:
            raise ManifestChanged(manifest_id, frozen, digest.hexdigest())

    def no_collector() -> AbstractContextManager[None]:
        return nullcontext()

    reader = Reader()
    collect, accept, publish = collect_batches, judge_batches, publish_accepted
    found = [
        Replacement(collect, "settle_canaries", lambda *_: {}),
        Replacement(collect, "job_client", job_client),
        Replacement(collect, "operating", lambda *_: settings),
        Replacement(collect, "without_garbage_collector", no_collector),
        Replacement(evidence, "result_reader", lambda _version: reader),
        Replacement(evidence, "verify_manifest", verify_manifest),
        Replacement(evidence, "scan_frame", lambda _contract, path: Scanned(store.frames[path])),
        Replacement(settle, "store_frame", store_frame),
        Replacement(settle, "operating", lambda *_: settings),
        Replacement(retries, "store_frame", store_frame),
        Replacement(retries, "operating", lambda *_: settings),
        Replacement(retries, "least_records", lambda _version: 1),
        Replacement(retries, "require_room", lambda *_, **__: None),
        Replacement(retries, "parser_settings", lambda _spec: SimpleNamespace(key=PARSER_KEY)),
        Replacement(retries._Again, "_asked", ask_again),
        Replacement(results, "fetch_file", fetch_file),
        # A thread of a frozen process is frozen too: no lease is kept alive behind its back.
        Replacement(hand_over, "BackgroundHeartbeat", lambda *_: nullcontext()),
        Replacement(monitor, "operating", lambda *_: settings),
        Replacement(monitor, "capability_of", lambda _job: capability),
        Replacement(operate, "operating", lambda *_: settings),
        Replacement(operate, "capability_of", lambda _job: capability),
        Replacement(accept, "_judge", judge),
        Replacement(accept, "load_catalogue", lambda _settings: NO_CATALOGUE),
        Replacement(accept, "operating", lambda *_: settings),
        Replacement(accept, "parser_settings", lambda _spec: SimpleNamespace(key=PARSER_KEY)),
        Replacement(accept, "store_frame", store_frame),
        Replacement(accept, "without_garbage_collector", no_collector),
        Replacement(publish, "read_frame", lambda _contract, path: store.frames[path]),
        Replacement(publish, "parser_settings", lambda _spec: SimpleNamespace(key=PARSER_KEY)),
        Replacement(publish, "without_garbage_collector", no_collector),
    ]
    return [*found, *_texts_read_once(), *_digests_made_once(), *lease_spies]


def _digests_made_once() -> list[Replacement]:
    """The proof of the journal meets the same moves before thousands of schedules.

    Only the proof: what the product writes into the journal is digested anew.
    """
    digest_row, digest_members = journal.move_digest, journal.digest_of_members

    @lru_cache(maxsize=20_000)
    def of_row(items: tuple[tuple[str, Any], ...]) -> str:
        return digest_row(dict(items))

    @lru_cache(maxsize=10_000)
    def of_members(members: tuple[int, ...]) -> str:
        return digest_members(pl.Series(members, dtype=pl.Int64))

    return [
        Replacement(journal, "move_digest", lambda row: of_row(tuple(row.items()))),
        Replacement(journal, "digest_of_members", lambda members: of_members(tuple(members))),
    ]


def _texts_read_once() -> list[Replacement]:
    """The product writes most statements where it runs them; each is read once a process."""
    read_once = lru_cache(maxsize=None)(text)
    return [
        Replacement(module, "text", read_once)
        for name, module in sorted(sys.modules.items())
        if name.startswith(("resources.", "pipeline_assets."))
        and getattr(module, "text", None) is text
    ]


@contextmanager
def installed(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Put replacements in place for the length of a block.

    Raises:
        AttributeError: the product has no such name any more; the simulation must follow it.
    """
    before: list[Replacement] = []
    try:
        for each in replacements:
            before.append(Replacement(each.module, each.name, getattr(each.module, each.name)))
            setattr(each.module, each.name, each.value)
        yield
    finally:
        for each in reversed(before):
            setattr(each.module, each.name, each.value)
