"""From a dropped file to a replay of a few records, through Dagster alone.

`make replay-e2e`. One `dagster dev` with everything that `tallybook automation on` turns on, and
the emulator as the provider. New files are published without a hand; a corrected one replaces what
its first version gave; a new prompt is tried on the records that have more than one identifier,
and on those alone: the emulator's own account of what it answered says so. Then the two versions
are compared, the new one is promoted and rolled back. Prints a line a step, last
`called=<n> expected=<n>`, and exits with 1 where something is not as it should be.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.cli.dagster_instance import open_instance
from resources.context import open_context
from resources.settings import Settings, load_settings
from tests.e2e.providers import emulator, post, runs_under_way, wait_for_run
from tests.provider_emulator.environment import environment
from tests.support.command import one_json, tallybook
from tests.support.dagster_ui import UserInterface, place_of, user_interface

FIRST, SECOND = "manuals-first-prompt", "manuals-second-prompt"
WHERE = "identifiers > 1"
REASON = "series were read as one model"
STEP_SECONDS = 120
LIMIT_SECONDS = 420
_BODY = """User Manual

Introduction

The {name} {cover} is made for small workshops and gardens. It is driven by an electric motor and
made for continuous use. Read this manual before you switch the machine on for the first time.

Safety

Keep children away from the machine while it is running. Pull the plug of the {first} before you
clean the housing, and use a damp cloth only. Never lift the machine by its cable.
"""
SERIES = {
    "printer.txt": ("Label Printer", ("LP-310", "LP-320")),
    "blower.txt": ("Leaf Blower", ("LB-40", "LB-50")),
}
SINGLE = {
    "pump.txt": ("Circulation Pump", ("WP-100",)),
    "fan.txt": ("Ventilator", ("VF-20",)),
    "saw.txt": ("Band Saw", ("BS-7",)),
}


class NotAsExpected(AssertionError):
    """A step came to something else than it should."""


@dataclass(frozen=True)
class Desk:
    """Everything that a step looks at."""

    settings: Settings
    folder: Path
    ui: UserInterface
    emulator: str

    def drop(self, name: str, kind: str, identifiers: tuple[str, ...]) -> None:
        """Put a document into the folder, as somebody who knows nothing of Dagster does."""
        cover = ", ".join(identifiers)
        body = _BODY.format(
            name=kind.lower(), cover=" and ".join(identifiers), first=identifiers[0]
        )
        (self.folder / name).write_text(f"{kind} {cover}\n{body}", encoding="utf-8")

    def query(self, sql: str, schema: dict[str, Any]) -> pl.DataFrame:
        """Rows of the ledger."""
        with open_context(self.settings) as context, context.ledger.read() as connection:
            return context.ledger.dialect.fetch(connection, sql, schema)

    def shown(self) -> dict[str, str]:
        """Document → the version that the archive shows of it."""
        rows = self.query(
            "SELECT d.document_id, v.key FROM archive_heads h "
            "JOIN archive_entries e ON e.entry_no = h.entry_no "
            "JOIN documents d ON d.document_no = h.document_no "
            "JOIN processing_versions v ON v.version_no = e.version_no",
            {"document": pl.String, "key": pl.String},
        )
        return dict(rows.iter_rows())

    def history(self, document: str) -> list[tuple[str, int]]:
        """The checksum that each entry of a document is of, oldest first, and is it visible?"""
        return self.query(
            "SELECT r.checksum, CASE WHEN e.valid_to IS NULL THEN 1 ELSE 0 END "
            "FROM archive_entries e "
            "JOIN records r ON r.record_no = e.record_no "
            "JOIN documents d ON d.document_no = e.document_no "
            f"WHERE d.document_id = '{document}' ORDER BY e.archive_version",
            {"checksum": pl.String, "visible": pl.Int64},
        ).rows()

    def asked(self) -> dict[str, Counter[str]]:
        """Version → document → answers that the emulator gave, by its own account."""
        with urllib.request.urlopen(f"{self.emulator}/_control/executed", timeout=30) as answer:
            executed: dict[str, dict[str, int]] = json.load(answer)
        attempts = self.query(
            "SELECT b.batch_key, a.attempt_no - b.first_attempt_no, v.key, d.document_id "
            "FROM attempts a JOIN batches b ON b.batch_no = a.batch_no "
            "JOIN records r ON r.record_no = a.record_no "
            "JOIN documents d ON d.document_no = r.document_no "
            "JOIN processing_versions v ON v.version_no = b.version_no",
            {"batch": pl.String, "row": pl.Int64, "key": pl.String, "document": pl.String},
        )
        names = {f"{batch}-{row}": (key, name) for batch, row, key, name in attempts.iter_rows()}
        found: dict[str, Counter[str]] = {FIRST: Counter(), SECOND: Counter()}
        for rows in executed.values():
            for custom_id, times in rows.items():
                # What is of no batch of records is the canary's.
                if custom_id in names:
                    key, document = names[custom_id]
                    found[key][document] += times
        return found

    def wait(self, what: str, done: Callable[[], bool]) -> None:
        """Let time pass at the provider until something is so."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise NotAsExpected(f"{what}: not within {LIMIT_SECONDS} seconds")
            if not runs_under_way(self.ui):
                # Between runs only: a run's lease is counted by the same clock.
                post(f"{self.emulator}/_control/advance", {"seconds": STEP_SECONDS})
            time.sleep(2)
        while runs_under_way(self.ui):
            time.sleep(1)
        print(what, flush=True)

    def command(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
        """What a command prints."""
        done = tallybook(*arguments, cwd=self.folder, timeout=180.0, **place_of(self.settings))
        if done.returncode not in expected:
            raise NotAsExpected(f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def replay(self, where: str) -> None:
        """Materialise the second version's manifest and what follows, as the UI does."""
        config = {
            "ops": {"manifest": {"config": {"replay_from": FIRST, "where": where, "note": REASON}}}
        }
        found = self.ui.query(
            "mutation { launchRun(executionParams: {selector: {repositoryLocationName: "
            '"tallybook", repositoryName: "__repository__", jobName: "replay_version"}, '
            f"runConfigData: {json.dumps(json.dumps(config))}, "
            f'executionMetadata: {{tags: [{{key: "dagster/partition", value: "{SECOND}"}}]}}}}) '
            "{ __typename ... on LaunchRunSuccess { run { id } } "
            "... on RunConfigValidationInvalid { errors { message } } "
            "... on PythonError { message } } }"
        )["launchRun"]
        if "run" not in found:
            raise NotAsExpected(f"the replay was not launched: {found}")
        status = wait_for_run(self.ui, str(found["run"]["id"]))
        require("the run that freezes the replay", status, "SUCCESS")


def require(what: str, found: object, expected: object) -> None:
    """Stop where something is not as it should be."""
    if found != expected:
        raise NotAsExpected(f"{what}: found {found}, expected {expected}")


def write_place(scratch: Path) -> Settings:
    """A folder of documents, its declaration, and two versions that differ in their prompt."""
    documents, specs = scratch / "documents", scratch / "specs"
    documents.mkdir()
    specs.mkdir()
    text = (PACKAGED_SPECS / "manuals-openai-batch-4.yaml").read_text(encoding="utf-8")
    for key, prompt in ((FIRST, "2"), (SECOND, "3")):
        spec = text.replace("key: manuals-openai-batch-4", f"key: {key}")
        (specs / f"{key}.yaml").write_text(spec.replace('prompt: "3"', f'prompt: "{prompt}"'))
    (scratch / "sources.yaml").write_text(
        "sources:\n  shop:\n    kind: folder\n    path: documents\n"
        f"    workload: equipment_manuals\n    version: {FIRST}\n    settle_seconds: 2\n"
        "    allow_empty: true\n"
    )
    return load_settings(
        state=scratch / "state", sources=scratch / "sources.yaml", specs=specs, version=FIRST
    )


def new_files(desk: Desk) -> None:
    """Files that are dropped are published, and nobody did anything."""
    for name, (kind, identifiers) in {**SERIES, **SINGLE}.items():
        desk.drop(name, kind, identifiers)
    every = {f"shop/{name}": FIRST for name in {**SERIES, **SINGLE}}
    desk.wait("new files: published without a hand", lambda: desk.shown() == every)


def corrected_file(desk: Desk) -> None:
    """A corrected file takes the place of what it gave before, which stays in the history."""
    desk.drop("pump.txt", "Circulation Pump", ("WP-101",))
    desk.wait(
        "corrected file: replaced",
        lambda: [visible for _, visible in desk.history("shop/pump.txt")] == [0, 1],
    )
    before, after = (checksum for checksum, _ in desk.history("shop/pump.txt"))
    require("the two entries are of other bytes", before != after, expected=True)


def replay_of_series(desk: Desk) -> tuple[int, int]:
    """Only what has several identifiers is asked about again; calls found and expected."""
    before = desk.asked()
    require("documents of the first prompt", len(before[FIRST]), len(SERIES) + len(SINGLE))
    expected = Counter({f"shop/{name}": 1 for name in SERIES})
    plan = one_json(
        desk.command(
            *("replay", "--from", FIRST, "--to", SECOND, "--where", WHERE),
            *("--reason", REASON, "--dry-run", "--json"),
        )
    )
    require("the dry run", (plan["selected"], plan["reason"]), (len(SERIES), "new_prompt"))
    require("a dry run asks nobody", desk.asked(), before)
    desk.replay(WHERE)
    shown = {f"shop/{name}": SECOND if name in SERIES else FIRST for name in {**SERIES, **SINGLE}}
    desk.wait("replay: the selected records are published", lambda: desk.shown() == shown)
    after = desk.asked()
    require("answers of the first prompt", after[FIRST], before[FIRST])
    return sum(after[SECOND].values()), sum(expected.values()) if after[SECOND] == expected else -1


def accounts(desk: Desk) -> None:
    """Every record says why it exists, and nothing is unaccounted for."""
    for key in (FIRST, SECOND):
        report = one_json(desk.command("report", "--by", "reason", "--version", key, "--json"))
        require(f"reasons of {key} add up", report["adds_up"], expected=True)
        print(f"{key}: " + ", ".join(f"{r['records']} {r['reason']}" for r in report["reasons"]))
    story = one_json(desk.command("explain", "shop/printer.txt", "--version", SECOND, "--json"))
    require("why the record exists", story["records"][0]["replay_reason"], "new_prompt")


def compare_promote_rollback(desk: Desk) -> None:
    """The two versions are compared, the second one is taken back and shown again."""
    compared = one_json(desk.command("compare", FIRST, SECOND, "--json"))
    require("documents that both have", compared["both"], len(SERIES))
    shown = desk.shown()
    desk.command("rollback", SECOND, "--reason", "a look at the difference")
    require("after the rollback", set(desk.shown().values()), {FIRST})
    desk.command("promote", SECOND, "--reason", "it is better")
    require("after the promotion", desk.shown(), shown)
    desk.command("rollback", SECOND, "--reason", "for the end of the test")
    require("after the second rollback", set(desk.shown().values()), {FIRST})
    print("compare, rollback, promote, rollback: as it should be", flush=True)


def main() -> int:
    """Walk through every step; 0 where all of it is as it should be."""
    scratch = Path(os.environ.get("TALLYBOOK_E2E_STATE") or tempfile.mkdtemp(prefix="tallybook-"))
    settings = write_place(scratch)
    with emulator() as url:
        os.environ.update(environment(url))
        os.environ["TALLYBOOK_CLOCK_URL"] = f"{url}/_control/clock"
        settings = load_settings(
            state=settings.state, sources=settings.sources, specs=settings.specs, version=FIRST
        )
        with open_instance(settings):
            pass
        with user_interface(settings, scratch / "dagster.log") as ui:
            desk = Desk(settings, scratch / "documents", ui, url)
            desk.command("automation", "on")
            new_files(desk)
            corrected_file(desk)
            called, expected = replay_of_series(desk)
            accounts(desk)
            compare_promote_rollback(desk)
    print(f"called={called} expected={expected}")
    return 0 if called == expected else 1


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
