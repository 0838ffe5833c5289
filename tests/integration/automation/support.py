"""Declared sources, ticks of the sensors, and files whose age a test chooses."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import dagster as dg
import msgspec

from pipeline_assets.account.report import build_report
from pipeline_assets.automation.new_files import Found, Remembered
from pipeline_assets.automation.source_sensor import new_source_files, read_memory
from pipeline_assets.automation.source_work import SourceWork, look_at_sources
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from resources.context_resource import ContextOpening, ContextResource
from tests.integration.replay.support import ONE, Works
from tests.integration.stages.support import manual

OLD_SECONDS = 1_000.0


class Desk(Works):
    """The folder of `Works`, declared as a source that automation processes under ONE."""

    def declare(self, *names: str, version: str | None = ONE, **more: object) -> None:
        """Declare folders of these names as sources; `shop` is the one of `Works`."""
        said = {"version": version, "settle_seconds": 5, "allow_empty": True} | more
        lines = ["sources:"]
        for name in names:
            path = "documents" if name == "shop" else name
            lines += [f"  {name}:", "    kind: folder", f"    path: {path}"]
            lines += ["    workload: equipment_manuals"]
            lines += [
                f"    {word}: {str(value).lower() if isinstance(value, bool) else value}"
                for word, value in said.items()
                if value is not None
            ]
        self.context.settings.sources_file.write_text("\n".join(lines) + "\n")

    @property
    def root(self) -> Path:
        """Where the folders of sources are."""
        return self.folder.parent

    def drop(self, name: str, identifier: str, *, age: float = OLD_SECONDS) -> Path:
        """Put a document into the folder that was changed so many seconds ago."""
        path = self.folder / name
        path.write_text(manual("Circulation Pump", identifier))
        self.age(path, age)
        return path

    @staticmethod
    def age(path: Path, seconds: float) -> None:
        """Let a file have been changed so many seconds ago."""
        then = time.time() - seconds
        os.utime(path, (then, then))

    def prepare(self, key: str = ONE) -> None:
        """Everything up to the manifest."""
        scan_declared(self.context)
        version = self.version(key)
        parse_documents(self.context, parser_settings(version.spec), version.spec.workload)
        freeze_manifest(self.context, version)

    def process(self, key: str = ONE) -> None:
        """What a run of `process_version` does."""
        self.prepare(key)
        self.go_on(key)

    def look(self, memory: dict[str, Remembered] | None = None) -> SourceWork:
        """A look at every source."""
        return look_at_sources(self.context, memory or {})

    def found(self, source: str = "shop") -> Found:
        """What a look finds of one source."""
        (each,) = [found for found in self.look().found if found.source == source]
        return each

    def tick(
        self, instance: dg.DagsterInstance, cursor: str | None = None
    ) -> tuple[list[dg.RunRequest], str, str]:
        """A tick of `new_source_files`: its requests, its cursor, and why it asked for nothing."""
        opening = ContextOpening(self.context.settings, EXPECTED_ERRORS, clock=self.context.clock)
        with dg.build_sensor_context(
            instance=instance,
            cursor=cursor,
            resources={"tallybook": ContextResource(opening=opening)},
        ) as given:
            found = new_source_files(given)
        assert isinstance(found, dg.SensorResult)
        told = "" if found.skip_reason is None else str(found.skip_reason.skip_message)
        return list(found.run_requests or []), str(found.cursor), told

    def adds_up(self, key: str = ONE) -> bool:
        """Does the account of a version hold?"""
        return build_report(self.context, key).invariant_holds


def looked_at(cursor: str, seconds_ago: float) -> str:
    """The cursor of a tick that came so many seconds ago."""
    then = time.time() - seconds_ago
    memory = {
        name: replace(kept, looked_at=then, listed_at=then)
        for name, kept in read_memory(cursor).items()
    }
    return msgspec.json.encode(memory).decode()
