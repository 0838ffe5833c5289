"""A state folder after a run in which much went wrong: what reports and status have to tell.

Belongs here: the documents, the faults, and the acts of people. Does not belong here: what must be
said of it. Two versions run over one folder: the built-in rules, and OpenAI's batch API on the
emulator, whose jobs fail, expire, answer twice, leave rows out and get lost on the way.

`python -m tests.support.messy_run FOLDER` leaves such a folder behind, to look at by hand.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import polars as pl
import yaml

from pipeline_assets.ingest import parse_documents as parsing
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.quality.draw import draw_sample
from pipeline_assets.recovery.dead_letter_choice import Selection
from pipeline_assets.recovery.dead_letters import discard
from pipeline_assets.review.decisions import Decision, asked_of, decide
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.settings import PROJECT, Settings, load_settings
from tests.integration.stages.support import InProcessPool
from tests.provider_emulator.faults import Fault
from tests.support.emulator import RunningEmulator, running_emulator
from tests.support.provider_walk import ProviderWalk

BASELINE = "manuals-baseline-2"
KEY = "messy-openai-batch-1"
BATCH_RECORDS = 12
GOOD = 64
SECOND_DELIVERY = 14
"""Two batches more: one is quarantined, the other still runs when everybody goes home."""
DAYS = 4 * 86400
"""So long ago it began: by now everything has an age."""
NAMES = ("Circulation Pump", "Band Saw", "Dust Extractor", "Air Dryer", "Floor Polisher")
_BODY = """{name} {id}
User Manual

Introduction

The {id} is a {kind} for small workshops and gardens. It is driven by an electric motor and
made for continuous use. Read this manual before you switch the machine on for the first time.

Safety

Keep children away from the machine while it is running. Pull the plug of the {id} before you
clean the housing, and use a damp cloth only. Never lift the machine by its cable.
"""
_GERMAN = """{name} {id}
Bedienungsanleitung

Einleitung

Die {id} ist eine Maschine für kleine Werkstätten und Gärten. Lesen Sie diese Anleitung, bevor Sie
die Maschine zum ersten Mal einschalten, und bewahren Sie sie in der Nähe der Maschine auf.

Sicherheit

Halten Sie Kinder von der laufenden Maschine fern. Ziehen Sie den Stecker der {id}, bevor Sie das
Gehäuse reinigen, und verwenden Sie nur ein feuchtes Tuch.
"""
_DOUBTFUL = """the drum should be cleaned after every use because dust that stays on it burns the
wood and shortens the life of the belt. a soft brush is enough. after cleaning turn the drum by
hand and look for cracks, worn places and loose screws. never use water or solvents on the drum {n}.
"""


@dataclass(frozen=True)
class MessyRun:
    """What is left.

    Attributes:
        settings: of the state folder; their version is that of OpenAI.
        context: open, on the emulator's clock.
    """

    settings: Settings
    context: Context


def write_documents(folder: Path) -> None:
    """Good ones in two languages, doubtful ones, and files that nobody can read."""
    folder.mkdir(parents=True)
    write_manuals(folder, range(GOOD))
    for number in range(4):
        text = _DOUBTFUL.format(n=number)
        (folder / f"doubtful {number}.txt").write_text(text, encoding="utf-8")
    (folder / "line-0" / "manual 00 (copy).txt").write_bytes(
        (folder / "line-0" / "manual 00.txt").read_bytes()
    )
    (folder / "empty.txt").touch()
    (folder / "noise.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 8)
    (folder / "<script>alert(1) & co.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    locked = PROJECT / "data" / "manuals" / "water-meter-wm-7-service.pdf"
    (folder / "locked.pdf").write_bytes(locked.read_bytes())


def write_manuals(folder: Path, numbers: Iterable[int]) -> None:
    """Good ones, every sixth in German, in three folders."""
    for number in numbers:
        name, identifier = NAMES[number % len(NAMES)], f"MX-{100 + number}"
        body = _GERMAN if number % 6 == 5 else _BODY
        place = folder / f"line-{number % 3}"
        place.mkdir(exist_ok=True)
        (place / f"manual {number:02}.txt").write_text(
            body.format(name=name, kind=name.lower(), id=identifier), encoding="utf-8"
        )


def write_spec(folder: Path) -> None:
    """The packaged version of OpenAI's batches, with small batches."""
    folder.mkdir(parents=True)
    packaged = PROJECT / "partitions" / "versions" / "manuals-openai-batch-4.yaml"
    spec = yaml.safe_load(packaged.read_text(encoding="utf-8")) | {
        "key": KEY,
        "batch_records": BATCH_RECORDS,
    }
    (folder / f"{KEY}.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")


@contextmanager
def messy_run(
    emulator: RunningEmulator, folder: Path, ledger_url: str | None = None
) -> Iterator[MessyRun]:
    """Make such a folder, and keep its ledger open; the SDKs' variables must be set already."""
    write_documents(folder / "documents")
    write_spec(folder / "specs")
    settings = load_settings(
        state=folder / "state",
        source=folder / "documents",
        source_name="shop",
        specs=folder / "specs",
        version=KEY,
        parser_workers=1,
        ledger_url=ledger_url,
        owner="ada",
    )
    # Before anything began: later it only goes on.
    emulator.world.clock.offset_seconds = -float(DAYS)
    clock = emulator.world.clock.now
    with (
        patch.object(parsing, "ParserPool", InProcessPool),
        open_context(settings, clock=clock, rng=random.Random(20261130)) as context,
    ):
        _run_baseline(emulator, context)
        _run_openai(emulator, context)
        _act(context)
        _deliver_more(emulator, folder / "documents", context)
        _change_sources(folder / "documents", context)
        emulator.world.clock.advance(5 * 3600)
        yield MessyRun(settings, context)


def _run_baseline(emulator: RunningEmulator, context: Context) -> None:
    walk = ProviderWalk(emulator.world, "openai", BASELINE, context, {})
    walk.prepare()
    walk.step()


def _run_openai(emulator: RunningEmulator, context: Context) -> None:
    walk = ProviderWalk(emulator.world, "openai", KEY, context, {})
    walk.prepare()
    walk.pass_canary()
    for op, kind, times, after, args in _FAULTS:
        emulator.world.faults.add(Fault("openai", op, kind, times=times, after=after, args=args))
    walk.settle()
    version = open_version(context, KEY)
    for _ in range(2):
        walk.advance(4 * 3600)
        freeze_retries(context, version)
        walk.settle()
    emulator.world.faults.clear()


_FAULTS: tuple[tuple[str, str, int | None, int, dict], ...] = (
    ("row", "error", 3, 4, {"status": 500, "code": "server_error", "message": "try again"}),
    ("row", "refused", 2, 9, {}),
    ("row", "truncated", 2, 14, {}),
    ("row", "prose", 2, 20, {}),
    ("row", "null_values", 2, 30, {}),
    ("job", "expired", 1, 2, {"done": 0.5}),
    ("lines", "missing", 1, 0, {}),
    ("lines", "duplicate_differs", 1, 1, {}),
    ("lines", "alien", 1, 3, {"custom_id": "somebody-elses-row"}),
    ("lines", "shuffle", None, 0, {}),
    ("create", "drop_before", 1, 4, {}),
)


def _deliver_more(emulator: RunningEmulator, folder: Path, context: Context) -> None:
    """A second delivery: one of its batches may have reached the provider or not, one runs."""
    write_manuals(folder, range(GOOD, GOOD + SECOND_DELIVERY))
    walk = ProviderWalk(emulator.world, "openai", KEY, context, {})
    walk.prepare()
    plan = emulator.world.faults
    plan.add(Fault("openai", "job", "stuck", after=1))
    plan.add(Fault("openai", "create", "drop_after"))
    plan.add(Fault("openai", "list", "status", times=1, args={"status": 503}))
    walk.step()
    plan.clear()
    walk.advance(1800)
    # Somebody changed the key meanwhile: what the first account has, the second cannot tell.
    with patch.dict(os.environ, {"OPENAI_API_KEY": "key-of-another-account"}):
        walk.step()


def _act(context: Context) -> None:
    """People decide some of what waits, and leave the rest."""
    version = open_version(context, KEY)
    draw_sample(context, version, actor="grace", reason="first look")
    waiting = _open_reviews(context, version.version_no)
    findings = waiting.filter(pl.col("kind") == "findings")["review_no"].to_list()
    sampled = waiting.filter(pl.col("kind") == "quality_sample")["review_no"].to_list()
    for number, review in enumerate(findings[:3]):
        if number == 0:
            _decide(context, review, "reject", "the drum is not the machine")
        else:
            _decide(context, review, "accept", "it is so")
    for number, review in enumerate(sampled[:6]):
        _decide(context, review, "reject" if number == 2 else "accept", "looked at the page")
    dead = _records_in(context, version.version_no, "dead_letter")
    if dead:
        selection = Selection(names=tuple(dead[:1]))
        discard(context, version.version_no, version.key, selection, "a blank form")


def _open_reviews(context: Context, version_no: int) -> pl.DataFrame:
    with context.ledger.read() as connection:
        return context.ledger.dialect.fetch(
            connection,
            "SELECT review_no, kind FROM reviews WHERE version_no = ? AND decision IS NULL "
            "ORDER BY review_no",
            {"review_no": pl.Int64, "kind": pl.String},
            (version_no,),
        )


def _records_in(context: Context, version_no: int, state: str) -> list[str]:
    with context.ledger.read() as connection:
        return context.ledger.dialect.fetch(
            connection,
            "SELECT r.record_id FROM records r JOIN record_state s ON s.record_no = r.record_no "
            "WHERE r.version_no = ? AND s.state = ? ORDER BY r.record_id",
            {"record_id": pl.String},
            (version_no, state),
        )["record_id"].to_list()


def _decide(context: Context, review: int, decision: Decision, reason: str) -> None:
    asked = asked_of([(review, 0)])
    decide(context, asked, decision, reviewer="grace", reason=reason)


def _change_sources(folder: Path, context: Context) -> None:
    """One document more, one changed, one gone: scanned, and not processed yet."""
    (folder / "line-1" / "manual 99.txt").write_text(
        _BODY.format(name="Band Saw", kind="band saw", id="MX-199"), encoding="utf-8"
    )
    changed = folder / "line-2" / "manual 02.txt"
    changed.write_text(changed.read_text(encoding="utf-8") + "\nOil it every year.\n")
    (folder / "line-0" / "manual 03.txt").unlink()
    scan_declared(context)


def main() -> int:
    """Leave a folder behind."""
    with running_emulator() as emulator:
        os.environ.update(emulator.environment())
        with messy_run(emulator, Path(sys.argv[1])) as run:
            print(f"--state {run.settings.state_folder} --version {KEY}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
