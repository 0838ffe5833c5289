"""Where the commands of a page are typed: what has happened before, and what its words stand for.

Belongs here: a place for every page that has commands. Does not belong here: typing them
(`walk.py`).

Every place is a copy of the project at one and the same path, so that a state folder that was made
once can be put back: ledgers hold the paths of their sources.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import yaml
from sqlalchemy.engine import URL

from resources.context import open_context
from resources.settings import load_settings
from tests.documentation.walk import copy_project
from tests.provider_emulator.environment import OPENAI_KEY
from tests.support.alert_receivers import webhook_receiver
from tests.support.emulator import RunningEmulator, running_emulator
from tests.support.messy_run import KEY, MessyRun, messy_run, write_manuals
from tests.support.outlet_receiver import outlet_receiver
from tests.support.postgres import fresh_database, postgres_server
from tests.support.provider_walk import ProviderWalk

EARLIER, NEWEST = "manuals-baseline-1", "manuals-baseline-2"
FINE = {0, 3}
"""Exit statuses of a run that did what it should."""


@dataclass(frozen=True)
class Place:
    """A place to type commands in.

    Attributes:
        folder: a copy of the project.
        variables: settings and keys.
        words: what stands for the words and examples that a reader replaces; text of a shell, so
            it may be a command whose output is meant.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def but(
        self,
        words: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Place:
        """The same place with more words, and variables."""
        return replace(
            self,
            variables={**self.variables, **(variables or {})},
            words={**self.words, **(words or {})},
        )


_BROKEN_PROMPT = "--where-rule title_present --reason 'a broken prompt'"

AlsoHappens = Callable[[RunningEmulator, MessyRun], None]
MakePlace = Callable[["Builder", ExitStack], Place]


class Builder:
    """Makes places below one folder, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.project = folder / "tallybook"

    def fresh(self) -> Place:
        """A clone in which nothing was processed."""
        self._clear()
        return Place(copy_project(self.project))

    def sample(self) -> Place:
        """A clone in which the sample manuals were processed, under two versions."""
        kept = self._folder / "kept"
        if not kept.exists():
            place = self.fresh()
            for version in (EARLIER, NEWEST):
                run_here(place, "run", "--version", version)
            shutil.copytree(self.project, kept, symlinks=True)
            return place
        self._clear()
        shutil.copytree(kept, self.project, symlinks=True)
        return Place(self.project)

    def messy(self, stack: ExitStack, then: AlsoHappens | None = None) -> Place:
        """A clone whose state has everything that can go wrong, with its provider still there."""
        place = self.fresh()
        emulator = emulated(stack)
        shop = self._folder / "shop"
        shutil.rmtree(shop, ignore_errors=True)
        with messy_run(emulator, shop) as run:
            settings = run.settings
            if then is not None:
                then(emulator, run)
        return place.but(
            {"DOCUMENT": shlex.quote("shop/line-1/manual 01.txt")},
            emulator.environment()
            | {
                "TALLYBOOK_STATE": str(settings.state_folder),
                "TALLYBOOK_SOURCE": str(settings.source_folder),
                "TALLYBOOK_SOURCE_NAME": settings.source_name,
                "TALLYBOOK_SPECS": str(shop / "specs"),
                "TALLYBOOK_VERSION": KEY,
                "TALLYBOOK_PARSER_WORKERS": "1",
            },
        )

    def _clear(self) -> None:
        shutil.rmtree(self.project, ignore_errors=True)


def run_here(place: Place, *words: str) -> str:
    """Run a command in a place; what it printed.

    Raises:
        AssertionError: it failed.
    """
    done = subprocess.run(
        [str(place.folder / ".venv" / "bin" / "tallybook"), *words],
        cwd=place.folder,
        env={**os.environ, **place.variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in FINE, done.stdout + done.stderr
    return done.stdout


def emulated(stack: ExitStack) -> RunningEmulator:
    """Emulated providers, until the place is left; this process asks them too."""
    emulator = stack.enter_context(running_emulator())
    stack.enter_context(patch.dict(os.environ, emulator.environment()))
    return emulator


def answered(
    emulator: RunningEmulator, place: Place, provider: str, key: str, promote: str = "auto"
) -> None:
    """Process the place's documents under a version of a provider, on the emulator's clock."""
    settings = load_settings(
        state=place.folder / "data" / "state",
        sources=place.folder / "sources.yaml",
        version=key,
        parser_workers=1,
    )
    clock = emulator.world.clock.now
    with open_context(settings, clock=clock, rng=random.Random(1)) as context:
        walk = ProviderWalk(emulator.world, provider, key, context, {})
        walk.prepare()
        walk.set_operating("promote", promote)
        walk.pass_canary()
        walk.settle()


def empty_database(stack: ExitStack) -> tuple[str, dict[str, str]]:
    """An empty PostgreSQL database: its address as a shell takes it, its password as a variable."""
    url = stack.enter_context(fresh_database(stack.enter_context(postgres_server())))
    plain = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    return shlex.quote(plain.render_as_string()), {"PGPASSWORD": url.password or ""}


def first(listing: str, key: str, *patterns: str) -> str:
    """A word's meaning: what a listing says first, when the command is typed."""
    wanted = " ".join(shlex.quote(pattern) for pattern in patterns)
    return f"$(tallybook {listing} --json | pick {key} {wanted})"


def _sample(builder: Builder, _: ExitStack) -> Place:
    return builder.sample().but(
        {"DOCUMENT": "manuals/dosing-pump-dp-200.pdf", "KEY": NEWEST, "TIME": _now()}
    )


def _readme(builder: Builder, stack: ExitStack) -> Place:
    place = builder.sample()
    emulator = emulated(stack)
    place = place.but(variables=emulator.environment())
    # By command: the archive goes on showing what the built-in rules gave.
    answered(emulator, place, "openai", "manuals-openai-batch-3", promote="manual")
    receiver = stack.enter_context(outlet_receiver())
    place = place.but(variables={"TALLYBOOK_OUTLET_WEBHOOK_URL": receiver.url})
    mine = place.folder / "mine"
    (mine / "my-manuals").mkdir(parents=True)
    manuals = place.folder / "data" / "manuals"
    for name in ("dosing-pump-dp-200.pdf", "label-printers-lp-310-lp-320-lp-330.pdf"):
        shutil.copy2(manuals / name, mine / "my-manuals" / name)
    (mine / "my-manuals" / "dosing-pump-dp-200.pdf").rename(mine / "my-manuals" / "pump.pdf")
    return place.but(
        {
            "DOCUMENT": "my-manuals/pump.pdf",
            "MY-KEY": OPENAI_KEY,
            "TIME": _now(),
            "/data": str(mine),
            "manuals/pump.pdf": "manuals/horno-hc-30.html",
        }
    )


def _first_run(builder: Builder, _: ExitStack) -> Place:
    place = builder.fresh()
    mine = place.folder / "my"
    shutil.copytree(place.folder / "data" / "manuals" / "scans", mine / "scans")
    return place.but(
        {
            "REVIEW": first("review list", "review_no"),
            "MY-DOCUMENTS": "my/scans",
            "MY-STATE": "my/state",
        }
    )


def _publication(builder: Builder, stack: ExitStack) -> Place:
    """The second archive version is that of the newest processing version."""
    return _sample(builder, stack).but({"ARCHIVE-VERSION": "2"})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _audit(builder: Builder, stack: ExitStack) -> Place:
    return _sample(builder, stack).but(
        {"ROOT": first("report", "merkle_root"), "DIGEST": first("audit", "journal_digest")}
    )


def _backup(builder: Builder, stack: ExitStack) -> Place:
    text, password = empty_database(stack)
    return _sample(builder, stack).but(
        {"BACKUPS": "backups", "NEW": "restored", "ANOTHER": "elsewhere", "LEDGER-URL": text},
        password,
    )


def _live_canary(builder: Builder, stack: ExitStack) -> Place:
    return _sample(builder, stack).but({"PROOF": f"data/state/proofs/{NEWEST}-1"})


def _outlets(builder: Builder, stack: ExitStack) -> Place:
    return _sample(builder, stack).but({"A": EARLIER, "B": NEWEST})


def _pilot(builder: Builder, stack: ExitStack) -> Place:
    place = _sample(builder, stack)
    lines = (place.folder / "data" / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    known = [json.loads(line) for line in lines]
    truth = [each | {"document_id": f"manuals/{each['file']}"} for each in known]
    (place.folder / "truth.jsonl").write_text(
        "".join(f"{json.dumps(each)}\n" for each in truth), encoding="utf-8"
    )
    return place.but(
        {
            "PILOT": first("pilot list", "pilot_id"),
            "TRUTH.jsonl": "truth.jsonl",
            "PAGE.html": "page.html",
        }
    )


def _report(builder: Builder, stack: ExitStack) -> Place:
    """Everything is reviewed, so that the report may be closed."""
    place = _sample(builder, stack)
    waiting = run_here(place, "review", "list", "--version", NEWEST, "--json").splitlines()
    numbers = [str(json.loads(line)["review_no"]) for line in waiting]
    run_here(place, "review", "accept", *numbers, "--reason", "looked at the page")
    run_here(place, "run")
    return place.but(
        {
            "N": first("report list", "report_no", f"key={NEWEST}"),
            "BATCH": first("batch list --all", "id", f"id={NEWEST}-*"),
            "NAME": "ada",
            "TEXT": "'the collection is complete'",
        }
    )


def _traces(builder: Builder, stack: ExitStack) -> Place:
    place = builder.fresh().but(
        {"RECORD": "manuals/dosing-pump-dp-200.pdf"},
        {"TALLYBOOK_TRACES": "file", "TALLYBOOK_TRACE_SHARE": "1"},
    )
    run_here(place, "run")
    return place


def _fresh(builder: Builder, _: ExitStack) -> Place:
    return builder.fresh()


def _providers(builder: Builder, stack: ExitStack) -> Place:
    """The version answers online, so that nobody has to wait for a job."""
    return builder.sample().but({"MY-KEY": OPENAI_KEY, "KEY": "manuals-openai-online-2"})


def _postgresql(builder: Builder, stack: ExitStack) -> Place:
    text, password = empty_database(stack)
    place = builder.fresh()
    (place.folder / "metrics").mkdir()
    return place.but({"LEDGER-URL": text, "LEDGER-DATABASE": text, "FOLDER": "metrics"}, password)


def _messy(builder: Builder, stack: ExitStack, then: AlsoHappens | None = None) -> Place:
    return builder.messy(stack, then).but(
        {
            "KEY": KEY,
            "BATCH": first("batch list --all", "id", "id=messy-*", "state=completed"),
            "QUARANTINED": first("batch list", "id", "state=quarantined"),
            "DEAD": first("dead-letter list", "document_id"),
            "SUBJECT": first("alerts list", "subject"),
            "REVIEW": first("review list --kind findings", "review_no"),
            "REVISION": first("review list --kind findings", "revision"),
            "QUOTE": "the drum",
            "DIGEST": first(f"review reject {_BROKEN_PROMPT} --version {KEY}", "selection"),
            "CLASS": "refused",
            "WRONG-VERSION": KEY,
            "EARLIER-VERSION": "manuals-baseline-2",
            "HELD-VERSION": KEY,
        }
    )


def _runbook(builder: Builder, stack: ExitStack) -> Place:
    """The key of another account: with the right one a quarantined submission is found at once."""
    return _messy(builder, stack).but(
        {"BATCH": first("batch list", "id", "kind=batch", "state=submitted")},
        {"OPENAI_API_KEY": "key-of-another-account"},
    )


def _costs(builder: Builder, stack: ExitStack) -> Place:
    """The version is held, as by a budget that is used up."""
    place = _messy(builder, stack)
    run_here(place, "hold", "--reason", "the budget is used up")
    return place


def _recovery(builder: Builder, stack: ExitStack) -> Place:
    """Another dead letter: one is requeued, one discarded."""

    def refuse_one(emulator: RunningEmulator, run: MessyRun) -> None:
        write_manuals(run.settings.source_folder, range(90, 93))
        walk = ProviderWalk(emulator.world, "openai", KEY, run.context, {})
        walk.prepare()
        walk.plant("row", "refused", times=1)
        walk.settle(4)
        emulator.world.faults.clear()

    return _messy(builder, stack, refuse_one)


def _alerts(builder: Builder, stack: ExitStack) -> Place:
    receiver = stack.enter_context(webhook_receiver())
    return _messy(builder, stack).but(variables={"TALLYBOOK_ALERT_WEBHOOK_URL": receiver.url})


def _replay(builder: Builder, stack: ExitStack) -> Place:
    place = _sample(builder, stack)
    emulator = emulated(stack)
    answered(emulator, place, "openai", "manuals-openai-batch-3")
    return place.but(variables=emulator.environment())


def _sources(builder: Builder, _: ExitStack) -> Place:
    """A source that asks for approval, and a queue of events with one that cannot be used."""
    place = builder.fresh()
    declared = yaml.safe_load((place.folder / "sources.yaml").read_text(encoding="utf-8"))
    manuals = {"kind": "folder", "workload": "equipment_manuals"}
    declared["sources"] |= {
        "inbox": manuals | {"path": "inbox", "approval": True},
        "drop": {
            "kind": "queue",
            "workload": "equipment_manuals",
            "transport": "folder",
            "path": "events",
            "documents": {"kind": "folder", "path": "incoming"},
            "tries": 1,
        },
    }
    (place.folder / "sources.yaml").write_text(yaml.safe_dump(declared), encoding="utf-8")
    text = (place.folder / "data" / "manuals" / "vesy-lv-600.txt").read_text(encoding="utf-8")
    for folder in ("inbox", "incoming", "events"):
        (place.folder / folder).mkdir()
    for name in ("inbox/a.txt", "inbox/b.txt", "inbox/c.txt", "inbox/d.txt", "incoming/e.txt"):
        (place.folder / name).write_text(f"{name}\n{text}", encoding="utf-8")
    (place.folder / "events" / "1.json").write_text('{"document": "e.txt"}')
    (place.folder / "events" / "2.json").write_text('{"document": "../x.txt"}')
    # No file has such a name, so a look at it fails, whoever looks.
    (place.folder / "events" / "3.json").write_text(json.dumps({"document": "x" * 300 + ".txt"}))
    (place.folder / "list.txt").write_text("inbox/d.txt\n", encoding="utf-8")
    return place.but(
        {
            "DOCUMENT": first("sources waiting", "document_id"),
            "CHECKSUM": first("sources waiting", "checksum"),
            "EVENT": first("sources events", "event_no", "state=dead", "document_id=drop*"),
        }
    )


PLACES: dict[str, MakePlace] = {
    "README.md": _readme,
    "acceptance.md": _fresh,
    "alerts.md": _alerts,
    "audit.md": _audit,
    "automation.md": _sample,
    "backup.md": _backup,
    "costs.md": _costs,
    "first-run.md": _first_run,
    "live-canary.md": _live_canary,
    "metrics.md": _sample,
    "outlets.md": _outlets,
    "pilot.md": _pilot,
    "postgresql.md": _postgresql,
    "provenance.md": _sample,
    "providers.md": _providers,
    "publication.md": _publication,
    "quality.md": _messy,
    "recovery.md": _recovery,
    "replay.md": _replay,
    "report.md": _report,
    "retention.md": _messy,
    "review.md": _messy,
    "runbook.md": _runbook,
    "selection.md": _sample,
    "simulation.md": _fresh,
    "sources.md": _sources,
    "status.md": _sample,
    "traces.md": _traces,
    "workloads.md": _fresh,
}
"""Page → the place that its commands are typed in."""


@contextmanager
def place_of(page: str, builder: Builder) -> Iterator[Place]:
    """The place of a page, as long as the block runs."""
    with ExitStack() as stack:
        yield PLACES[page](builder, stack)
