"""Synthetic documents, answers and ledgers for the benchmark.

Belongs here: making the input, deterministic from a seed, in bounded memory. Does not belong
here: measuring (`pipeline.py`) and the floor (`floor.py`).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

import msgspec
import polars as pl

from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.contracts import PARSED_TEXT, store_frame
from resources.ledger.parses import PARSE_SCHEMA, store_parses
from resources.ledger.scan_reads import SCAN_SCHEMA, keep_reads
from resources.ledger.scan_storage import FinishedPass, store_scan
from resources.ledger.source_snapshots import register_source

PACK = 2_000
"""Documents a text pack."""
SHARE_UNCERTAIN, SHARE_MALFORMED, SHARE_INVALID, SHARE_FOLDED = 0.04, 0.01, 0.01, 0.05
"""Of answers: uncertain ones go to review, malformed and invalid ones to the dead letters; a
folded quote is not found as it stands and needs the slow comparison."""

_WORDS = (
    "pump motor valve filter display sensor cable battery switch relay panel cover screw "
    "pressure temperature voltage current signal output input mount clean replace connect "
    "remove install check adjust press hold turn open close before after never always"
).split()


class Document:
    """One synthetic manual: its texts, and the answer that a provider gives for it."""

    def __init__(self, number: int, seed: int) -> None:
        self.rng = random.Random(f"{seed}:{number}")
        self.number = number
        self.model = f"XT-{1000 + number}"
        kind = self.rng.choice(("Circulation Pump", "Label Printer", "Air Compressor", "Oven"))
        self.title = f"{kind} {self.model} User Manual"
        self.sentence = f"The {self.model} is a {kind.lower()} for workshops and small plants."
        self.checksum = hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()

    @property
    def document_id(self) -> str:
        return f"bench/{self.number // 1000:05d}/{self.number:09d}.pdf"

    def pages(self) -> list[str]:
        body = " ".join(self.rng.choices(_WORDS, k=120))
        return [
            f"{self.title}\n\n{self.sentence}\n{body}",
            " ".join(self.rng.choices(_WORDS, k=150)),
        ]

    def answer(self, reference: str) -> bytes:
        rng = random.Random(f"answer:{self.number}")
        draw = rng.random()
        if draw < SHARE_MALFORMED:
            return b'{"document": "' + reference.encode()
        status = "found" if draw > SHARE_UNCERTAIN + SHARE_MALFORMED else "uncertain"
        quote = self.sentence
        if rng.random() < SHARE_FOLDED:
            quote = quote.replace(" ", "\n", 1).replace("The", "THE")
        value = {
            "document": reference,
            "title": _field(self.title, "found", 1, self.title),
            "product_identifiers": [_field(self.model, status, 1, self.title)],
            "language": _field("en", "found", 1, self.sentence),
            "description": _field(self.sentence, "found", 1, quote),
        }
        if rng.random() < SHARE_INVALID:
            del value["language"]
        return msgspec.json.encode(value)


def _field(value: str, status: str, page: int, quote: str) -> dict[str, object]:
    return {"value": value, "status": status, "evidence": [{"page": page, "quote": quote}]}


def documents(count: int, seed: int) -> Iterator[Document]:
    return (Document(number, seed) for number in range(count))


def load_documents(context: Context, version: OpenVersion, count: int, seed: int) -> None:
    """Put `count` parsed documents into the ledger, as ingest would leave them."""
    # As rows of a table, whose bytes are kept in the text packs: no file for each.
    source_no = register_source(
        context.ledger, "bench", "table", "memory", workload=version.spec.workload
    )
    thumbnail = context.artifacts.put("thumbnail", b"thumbnail").digest
    key = parser_settings(version.spec).key
    scans = []
    for start in range(0, count, PACK):
        part = [Document(n, seed) for n in range(start, min(start + PACK, count))]
        pages = [
            (d.checksum, number, "text", 0, text)
            for d in part
            for number, text in enumerate(d.pages(), start=1)
        ]
        frame = pl.DataFrame(pages, schema=dict(PARSED_TEXT.schema), orient="row")
        pack = store_frame(context.artifacts, "text", PARSED_TEXT, [frame.sort("checksum", "page")])
        rows = pl.DataFrame(
            {
                "checksum": [d.checksum for d in part],
                "parser_key": key,
                "excluded": None,
                "detail": "",
                "media_type": "application/pdf",
                "page_count": 2,
                "language": "en",
                "languages": "",
                "partial": 0,
                "notes": "",
                "text_pack": pack.digest,
                "thumbnail": thumbnail,
                "wall_ms": 0,
                "cpu_ms": 0,
                "peak_rss_bytes": 0,
                "cacheable": 1,
                "parsed_at": context.ledger.now(),
            },
            schema=PARSE_SCHEMA,
        )
        with context.ledger.write() as connection:
            store_parses(connection, context.ledger, rows)
        scans.append(
            pl.DataFrame(
                {
                    "document_id": [d.document_id for d in part],
                    "checksum": [d.checksum for d in part],
                    "size": 1000,
                    "mtime_ns": 0,
                    "device": "0",
                    "inode": "0",
                    "mark": None,
                    "scanned_at_ns": 0,
                    "excluded": None,
                    "detail": "",
                },
                schema=SCAN_SCHEMA,
            )
        )
    scan = pl.concat(scans)
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
