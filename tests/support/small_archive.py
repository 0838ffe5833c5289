"""A small archive, processed by the real stages; only the parser is stood in for.

Each document is a text file whose pages are what stands in it, so that no worker process is
started and both databases are quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.keep_sources import keep_source
from pipeline_assets.ingest.placeholder import placeholder
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from resources.context import Context
from resources.contracts import PARSED_TEXT, store_frame
from resources.ledger.parses import PARSE_SCHEMA, missing_parses, missing_slice, store_parses
from resources.settings import Settings
from resources.sources.folder import FolderListing
from tests.support.clock import FrozenClock

KEY = "manuals-baseline-2"
PUMP, FAN, SAW, LOCKED, EMPTY, COPY = (
    "pump-wp-100.txt",
    "fan-vf-20.txt",
    "saw-ks-7.txt",
    "locked.txt",
    "empty.txt",
    "zz/pump copy.txt",
)
LOCKED_TEXT = "locked"

_BODY = """Introduction

The {id} is a {name} for small workshops and gardens. It is driven by an electric motor and
made for continuous use. Read this manual before you switch the machine on for the first time.

Safety

Keep children away from the machine while it is running. Pull the plug of the {id} before you
clean the housing, and use a damp cloth only. Never lift the machine by its cable.

Operation

Place the {id} on a firm and level floor. Switch it on, wait until the motor runs at full speed
and check that nothing is loose. Switch it off again when the work is done.

Care

Check the cable once a month and have it replaced by a workshop when it is damaged. Store the
{id} in a dry room during the winter and oil the bearings in spring.
"""


def manual(name: str, identifier: str, other: str | None = None) -> str:
    """The text of a manual; with `other`, cover and body name different models."""
    body = _BODY.format(id=other or identifier, name=name.lower())
    return f"{name} {identifier}\nUser Manual\n\n{body}"


@dataclass(frozen=True)
class Archive:
    """A folder, its settings and the context that everything is read through."""

    folder: Path
    settings: Settings
    context: Context
    clock: FrozenClock

    def write(self, name: str, text: str) -> None:
        """Put a document into the folder."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")

    def scan(self) -> None:
        """Take a snapshot alone."""
        scan_declared(self.context)

    def version(self) -> OpenVersion:
        """The version, open for work."""
        return open_version(self.context, KEY)

    def prepare(self) -> OpenVersion:
        """Scan, parse and freeze."""
        self.scan()
        version = self.version()
        self._parse(version)
        freeze_manifest(self.context, version)
        return version

    def process(self) -> None:
        """Every stage, in order."""
        version = self.prepare()
        submit_batches(self.context, version)
        collect_batches(self.context, version)
        judge_batches(self.context, version)
        publish_accepted(self.context, version)

    def _parse(self, version: OpenVersion) -> None:
        context, key = self.context, parser_settings(version.spec).key
        source = FolderListing(self.settings.source_name, self.folder)
        missing = missing_parses(context.ledger, key, version.spec.workload)
        wanted = missing_slice(context.ledger, key, missing["source_version_no"])
        rows, pages = [], []
        for checksum, document, size in wanted.iter_rows():
            text = keep_source(context.artifacts, source, document, checksum).read_text()
            locked = text == LOCKED_TEXT
            if not locked and size:
                pages.append((checksum, 1, "text", 0, text))
            reason = "encrypted" if locked else None if size else "empty"
            rows.append((checksum, reason))
        pack = None
        if pages:
            frame = pl.DataFrame(pages, schema=dict(PARSED_TEXT.schema), orient="row")
            pack = store_frame(context.artifacts, "text", PARSED_TEXT, [frame]).digest
        image = context.artifacts.put("thumbnail", placeholder()).digest
        with context.ledger.write() as connection:
            store_parses(
                connection,
                context.ledger,
                pl.DataFrame(
                    [
                        {
                            "checksum": checksum,
                            "parser_key": key,
                            "excluded": reason,
                            "detail": "a password is needed" if reason == "encrypted" else "",
                            "media_type": None if reason else "text/plain",
                            "page_count": None if reason else 1,
                            "language": None if reason else "en",
                            "languages": "",
                            "partial": 0,
                            "notes": "",
                            "text_pack": None if reason else pack,
                            "thumbnail": None if reason else image,
                            "wall_ms": 1,
                            "cpu_ms": 1,
                            "peak_rss_bytes": 1,
                            "cacheable": 1,
                            "parsed_at": context.ledger.now(),
                        }
                        for checksum, reason in rows
                    ],
                    schema=PARSE_SCHEMA,
                ),
            )


def fill_folder(archive: Archive) -> None:
    """Six documents: two to publish, one to doubt, and three to exclude."""
    archive.write(PUMP, manual("Water Pump", "WP-100"))
    archive.write(FAN, manual("Ventilation Fan", "VF-20"))
    archive.write(SAW, manual("Chain Saw", "KS-7", other="KS-9"))
    archive.write(LOCKED, LOCKED_TEXT)
    archive.write(EMPTY, "")
    archive.write(COPY, manual("Water Pump", "WP-100"))
