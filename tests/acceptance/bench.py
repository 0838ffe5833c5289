"""Answers through the real stages: frozen, answered, collected and judged on a ledger of their own.

Belongs here: a ledger with the documents of some answers, and reading what became of each. Does
not belong here: the answers (`gold.py`, `tricks.py`) and what they should come to.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import msgspec
import polars as pl
import yaml

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.submit import answer_embedded
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from pipeline_assets.workloads.registry import load_workload
from resources.context import Context, open_context
from resources.contracts import PARSED_TEXT, store_frame
from resources.ledger.parses import PARSE_SCHEMA, store_parses
from resources.ledger.scan_reads import SCAN_SCHEMA, keep_reads
from resources.ledger.scan_storage import FinishedPass, store_scan
from resources.ledger.source_snapshots import register_source
from resources.parser_settings import PARSER_VERSION
from resources.providers.baseline import BaselineProvider, Request, RequestBody
from resources.record_ids import reference
from resources.settings import load_settings
from resources.sources.document_id import escape_path
from tests.acceptance.corpus import Document

KEY = "adversarial-2"
SOURCE = "adv"
WORKLOAD = "equipment_manuals"
ACCEPTANCE = "2"
STOPPED_AT_COLLECT = "failure"
"""The field of a finding that stands for an answer which never came to be judged."""


@dataclass(frozen=True)
class Ask:
    """One answer about one document.

    Attributes:
        name: what it is called in reports.
        document: what it is about.
        answer: the reference of the document's record → the answer's text.
        echoes: the position in its batch whose reference it carries; None for its own.
    """

    name: str
    document: Document
    answer: Callable[[str], str]
    echoes: int | None = None


@dataclass(frozen=True)
class Finding:
    """What a rule said; for an answer that never came to be judged, the failure's class."""

    rule: str
    severity: str
    field: str
    note: str


@dataclass(frozen=True)
class Verdict:
    """What became of an answer.

    Attributes:
        ask: the answer.
        state: of its record.
        findings: in the order of rules; notes among them.
    """

    ask: Ask
    state: str
    findings: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """Would it be published unseen?"""
        return self.state in ("accepted", "published")

    @property
    def stopped_by(self) -> frozenset[str]:
        """The rules, or failure classes, that keep it from being published."""
        return frozenset(found.rule for found in self.findings if found.severity != "note")


@dataclass(frozen=True)
class Judged:
    """What became of a ledger of answers.

    Attributes:
        verdicts: batch by batch, in the order of the answers.
        alerts: (kind, message) of those that are open.
    """

    verdicts: list[list[Verdict]]
    alerts: list[tuple[str, str]] = field(default_factory=list)


def judge_answers(
    folder: Path, batches: Sequence[Sequence[Ask]], catalogue: Path | None = None
) -> Judged:
    """Take answers through the stages up to their judgement.

    Args:
        folder: an empty folder for the ledger; stays as it is afterwards.
        batches: answers that are judged together; all but the last of the same length.
        catalogue: known products; None for no catalogue.
    """
    with open_bench(folder, max(len(batch) for batch in batches), catalogue) as context:
        version = open_version(context, KEY)
        places = _load(context, version, batches)
        freeze_manifest(context, version)
        answers = _answers(context, places)
        with _answering(answers):
            submit_batches(context, version)
        collect_batches(context, version)
        judge_batches(context, version)
        return Judged(_verdicts(context, batches), _alerts(context))


@contextmanager
def open_bench(
    folder: Path, batch_records: int, catalogue: Path | None = None
) -> Iterator[Context]:
    """An empty ledger with a version that judges by the newest acceptance."""
    specs = folder / "specs"
    specs.mkdir(parents=True)
    workload = load_workload(WORKLOAD)
    acceptance = workload.acceptances[ACCEPTANCE]
    rules = (*acceptance.rules, *acceptance.batch_rules)
    spec = {
        "key": KEY,
        "workload": WORKLOAD,
        "provider": "baseline",
        "mode": "embedded",
        "model": "scripted-1",
        "schema_version": workload.schema_version,
        "parser": {"version": PARSER_VERSION, "ocr_pages": 12, "max_pages": 2000},
        "acceptance": ACCEPTANCE,
        "rules": {rule.id: rule.version for rule in rules},
        "repairs": {repair.id: repair.version for repair in acceptance.repairs} or None,
        "batch_records": batch_records,
    }
    (specs / f"{KEY}.yaml").write_text(
        yaml.safe_dump({name: value for name, value in spec.items() if value is not None})
    )
    none = folder / "no-catalogue.csv"
    none.write_text("identifier,maker,name\n")
    settings = load_settings(
        state=folder / "state", specs=specs, version=KEY, catalogue=catalogue or none
    )
    with open_context(settings, rng=random.Random(5)) as context:
        yield context


def _load(
    context: Context, version: OpenVersion, batches: Sequence[Sequence[Ask]]
) -> dict[str, Ask]:
    """Put the documents into the ledger as ingest would leave them: document id → answer."""
    key = parser_settings(version.spec).key
    image = context.artifacts.put("thumbnail", b"thumbnail").digest
    source_no = register_source(
        context.ledger, SOURCE, "scripted", "memory", workload=version.spec.workload
    )
    scans: list[dict[str, object]] = []
    places: dict[str, Ask] = {}
    for number, batch in enumerate(batches):
        parses: list[dict[str, object]] = []
        pages: list[tuple[str, int, str, int, str]] = []
        for index, ask in enumerate(batch):
            document = ask.document
            last = escape_path(PurePosixPath(document.name).name.encode())
            name = f"{SOURCE}/{number:04d}/{index:05d}/{last}"
            # The same bytes twice would be one record: each place has its own.
            checksum = hashlib.sha256(f"{name}{document.checksum}".encode()).hexdigest()
            places[name] = ask
            scans.append(_scan_row(name, checksum))
            parses.append(_parse_row(context, document, checksum, key, image))
            pages.extend((checksum, page, "text", 0, text) for page, text in document.pages)
        frame = pl.DataFrame(pages, schema=dict(PARSED_TEXT.schema), orient="row")
        pack = store_frame(context.artifacts, "text", PARSED_TEXT, [frame.sort("checksum", "page")])
        rows = pl.DataFrame([row | {"text_pack": pack.digest} for row in parses], PARSE_SCHEMA)
        with context.ledger.write() as connection:
            store_parses(connection, context.ledger, rows)
    scan = pl.DataFrame(scans, SCAN_SCHEMA)
    finished = FinishedPass(
        scanned_at_ns=0,
        listed=0,
        kept=scan.height,
        removed=pl.Series(dtype=pl.Int64),
        complete=True,
    )
    with context.ledger.write() as connection:
        keep_reads(connection, context.ledger, source_no, scan)
        store_scan(connection, context.ledger, source_no, finished)
    return places


def _scan_row(name: str, checksum: str) -> dict[str, object]:
    return {
        "document_id": name,
        "checksum": checksum,
        "size": 1000,
        "mtime_ns": 0,
        "device": "0",
        "inode": "0",
        "mark": None,
        "scanned_at_ns": 0,
        "excluded": None,
        "detail": "",
    }


def _parse_row(
    context: Context, document: Document, checksum: str, key: str, image: str
) -> dict[str, object]:
    return {
        "checksum": checksum,
        "parser_key": key,
        "excluded": None,
        "detail": "",
        "media_type": document.media_type,
        "page_count": document.page_count,
        "language": document.language,
        "languages": " ".join(document.languages),
        "partial": 0,
        "notes": "",
        "thumbnail": image,
        "wall_ms": 0,
        "cpu_ms": 0,
        "peak_rss_bytes": 0,
        "cacheable": 1,
        "parsed_at": context.ledger.now(),
    }


def _answers(context: Context, places: Mapping[str, Ask]) -> dict[str, str]:
    """Reference of a record → the text of its answer."""
    with context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT r.record_id, d.document_id FROM records r "
            "JOIN documents d ON d.document_no = r.document_no",
            {"record_id": pl.String, "document_id": pl.String},
        ).rows()
    references = {_place(document): reference(record) for record, document in rows}
    told: dict[str, str] = {}
    for document, ask in places.items():
        batch, index = _place(document)
        own = references[batch, index]
        told[own] = ask.answer(own if ask.echoes is None else references[batch, ask.echoes])
    return told


def _place(document: str) -> tuple[int, int]:
    """The batch and the position in it that a document was given."""
    _, batch, index, _ = document.split("/")
    return int(batch), int(index)


class _Scripted(BaselineProvider):
    """A provider whose answers are told beforehand."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        super().__init__("scripted-1", lambda _document, _pages: b"")
        self._told = answers
        self._asked = msgspec.json.Decoder(Request)
        self._body = msgspec.json.Decoder(RequestBody)

    def answer_line(self, request: bytes) -> bytes:
        asked = self._asked.decode(request)
        body = self._body.decode(asked.body)
        return msgspec.json.encode(
            {
                "custom_id": asked.custom_id,
                "status_code": 200,
                "body": {
                    "model": "scripted-1",
                    "text": self._told[body.document],
                    "finish_reason": "stop",
                },
            }
        )


@contextmanager
def _answering(answers: Mapping[str, str]) -> Iterator[None]:
    """Within, the built-in provider gives the scripted answers."""
    own = answer_embedded.embedded_provider
    answer_embedded.embedded_provider = lambda _version: _Scripted(answers)
    try:
        yield
    finally:
        answer_embedded.embedded_provider = own


def _verdicts(context: Context, batches: Sequence[Sequence[Ask]]) -> list[list[Verdict]]:
    states = _query(
        context,
        "SELECT d.document_id, s.state FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no "
        "JOIN documents d ON d.document_no = r.document_no ORDER BY d.document_id",
        "document_id",
        "state",
    ).rows()
    found: dict[str, list[Finding]] = {document: [] for document, _ in states}
    for document, *told in _query(
        context,
        "SELECT d.document_id, f.rule, f.severity, f.field, f.note FROM findings f "
        "JOIN records r ON r.record_no = f.record_no "
        "JOIN documents d ON d.document_no = r.document_no ORDER BY f.finding_no",
        *("document_id", "rule", "severity", "field", "note"),
    ).rows():
        found[document].append(Finding(*told))
    for document, failure, why in _query(
        context,
        "SELECT d.document_id, p.failure_class, p.diagnostics FROM dispositions p "
        "JOIN attempts a ON a.attempt_no = p.attempt_no "
        "JOIN records r ON r.record_no = a.record_no "
        "JOIN documents d ON d.document_no = r.document_no WHERE p.failure_class IS NOT NULL",
        *("document_id", "failure_class", "diagnostics"),
    ).rows():
        found[document].append(Finding(failure, "failure", "", why))
    by_place = {_place(document): (document, state) for document, state in states}
    return [
        [
            Verdict(ask, by_place[number, index][1], tuple(found[by_place[number, index][0]]))
            for index, ask in enumerate(batch)
        ]
        for number, batch in enumerate(batches)
    ]


def _alerts(context: Context) -> list[tuple[str, str]]:
    return _query(
        context,
        "SELECT kind, message FROM alerts WHERE cleared_at IS NULL ORDER BY kind, message",
        *("kind", "message"),
    ).rows()


def _query(context: Context, sql: str, *columns: str) -> pl.DataFrame:
    with context.ledger.read() as connection:
        return context.ledger.dialect.fetch(connection, sql, dict.fromkeys(columns, pl.String))
