"""All four providers, batch and online, through Dagster's sensor, against the emulator.

`make providers-e2e`. An archive of more than 120 documents is processed by the built-in rules and
by every provider's two modes, in one `dagster dev` with the sensor `provider_batch_monitor` on.
The emulated models answer by the same rules, so each published archive has to be the same in
value, status and evidence. Prints a line a provider and mode, and exits with 1 if one differs.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import polars as pl

from partitions.definition import register
from partitions.processing_version import PACKAGED_SPECS, list_specs
from pipeline_assets.cli.dagster_instance import open_instance
from pipeline_assets.workloads.equipment_manuals.canary import CANARY_DOCUMENTS
from resources.context import open_context
from resources.settings import Settings, load_settings
from tests.provider_emulator.environment import environment
from tests.support.dagster_ui import UserInterface, user_interface
from tests.support.emulator_process import emulator_process

REPOSITORY = Path(__file__).resolve().parents[2]
BASELINE = "manuals-baseline-2"
PROVIDERS = ("openai", "anthropic", "gemini", "bedrock")
MODES = ("batch", "online")
TIMING = "validating=20,running=200,cancelling=5"
STEP_SECONDS = 90
LIMIT_SECONDS = 1_500
NAMES = (
    "Circulation Pump",
    "Ventilator",
    "Band Saw",
    "Dust Extractor",
    "Floor Polisher",
    "Air Dryer",
)
_BODY = """Introduction

The {id} is a {name} for small workshops and gardens. It is driven by an electric motor and
made for continuous use. Read this manual before you switch the machine on for the first time.

Safety

Keep children away from the machine while it is running. Pull the plug of the {id} before you
clean the housing, and use a damp cloth only. Never lift the machine by its cable.
"""
_LONG = (
    "Check the bearing number {number} of the {id} every month. Clean it with a dry cloth, oil it "
    "with two drops of thin oil and write the date of the work into the log of the machine.\n\n"
)


def write_archive(folder: Path) -> int:
    """Write the documents: plain ones, ones in other scripts, and some that a budget cuts."""
    folder.mkdir()
    for number in range(118):
        name, identifier = NAMES[number % len(NAMES)], f"WX-{100 + number}"
        body = _BODY.format(id=identifier, name=name.lower())
        text = f"{name} {identifier}\nUser Manual\n\n{body}"
        if number % 40 == 7:
            # A form feed ends a page: these have several, and more than a request may hold.
            text += "".join(
                ("\f" if step % 100 == 0 else "") + _LONG.format(number=step, id=identifier)
                for step in range(900)
            )
        (folder / f"manual-{number:03}.txt").write_text(text, encoding="utf-8")
    for document in CANARY_DOCUMENTS:
        path = folder / f"{document.name.replace(' ', '-')}.txt"
        path.write_text("\n\n".join(document.pages), encoding="utf-8")
    return len(list(folder.iterdir()))


def emulator() -> AbstractContextManager[str]:
    """An emulator in a process of its own; its address."""
    return emulator_process("tests.provider_emulator", "--port", "0", "--timing", TIMING)


def post(url: str, content: Any) -> None:
    """Send JSON to the emulator's control."""
    request = urllib.request.Request(url, data=json.dumps(content).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def launch(ui: UserInterface, key: str) -> str:
    """Start the whole walk of a version, as a person does on its partition; the run's id."""
    found = ui.query(
        "mutation { launchRun(executionParams: {selector: {repositoryLocationName: "
        '"tallybook", repositoryName: "__repository__", jobName: "process_version"}, '
        f'executionMetadata: {{tags: [{{key: "dagster/partition", value: "{key}"}}]}}}}) '
        "{ __typename ... on LaunchRunSuccess { run { id } } ... on PythonError { message } } }"
    )["launchRun"]
    if "run" not in found:
        raise RuntimeError(f"{key} was not launched: {found}")
    return str(found["run"]["id"])


def wait_for_run(ui: UserInterface, run_id: str) -> str:
    """Wait for a run's end; its status."""
    while True:
        text = f'{{ runOrError(runId: "{run_id}") {{ ... on Run {{ status }} }} }}'
        status = str(ui.query(text)["runOrError"]["status"])
        if status in ("SUCCESS", "FAILURE", "CANCELED"):
            return status
        time.sleep(1)


def start_sensor(ui: UserInterface) -> None:
    """Turn the sensor on, as the one click does."""
    found = ui.query(
        'mutation { startSensor(sensorSelector: {repositoryLocationName: "tallybook", '
        'repositoryName: "__repository__", sensorName: "provider_batch_monitor"}) '
        "{ __typename ... on PythonError { message } } }"
    )["startSensor"]
    if found["__typename"] != "Sensor":
        raise RuntimeError(f"the sensor did not start: {found}")


def runs_under_way(ui: UserInterface) -> int:
    """How many runs are not over."""
    found = ui.query(
        "{ runsOrError(filter: {statuses: [QUEUED, NOT_STARTED, STARTING, STARTED]}, limit: 50) "
        "{ ... on Runs { results { id } } } }"
    )["runsOrError"]
    return len(found["results"])


def open_batches(settings: Settings) -> list[str]:
    """Batches that are not complete, with their states."""
    with open_context(settings) as context, context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT batch_id, state FROM batches WHERE state NOT IN "
            "('completed', 'completed_with_errors', 'retry_required')",
            {"batch_id": pl.String, "state": pl.String},
        )
    return [f"{name} {state}" for name, state in rows.iter_rows()]


def archive_of(settings: Settings, key: str) -> dict[str, Any]:
    """What a version published: document → values with status and evidence."""
    with open_context(settings) as context, context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, e.content FROM archive_entries e "
            "JOIN documents d ON d.document_no = e.document_no "
            "JOIN processing_versions v ON v.version_no = e.version_no WHERE v.key = ?",
            {"document_id": pl.String, "content": pl.String},
            (key,),
        )
    found = {name: json.loads(content) for name, content in rows.iter_rows()}
    for values in found.values():
        values.pop("document", None)  # the reference is another one for each version
    return found


def cut_documents(settings: Settings, key: str) -> dict[str, tuple[int, int]]:
    """Documents of which not all pages were sent: pages sent, pages."""
    with open_context(settings) as context, context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, n.pages_sent, n.pages FROM renderings n "
            "JOIN attempts a ON a.attempt_no = n.attempt_no "
            "JOIN records r ON r.record_no = a.record_no "
            "JOIN documents d ON d.document_no = r.document_no "
            "JOIN processing_versions v ON v.version_no = r.version_no "
            "WHERE v.key = ? AND n.pages_sent < n.pages ORDER BY d.document_id",
            {"document_id": pl.String, "pages_sent": pl.Int64, "pages": pl.Int64},
            (key,),
        )
    return {name: (sent, pages) for name, sent, pages in rows.iter_rows()}


def difference(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    """How an archive differs from the baseline's; None where it does not."""
    if missing := sorted(expected.keys() - found.keys()):
        return f"{len(missing)} documents are not published, e.g. {missing[0]}"
    if extra := sorted(found.keys() - expected.keys()):
        return f"{len(extra)} documents are published beyond it, e.g. {extra[0]}"
    other = sorted(name for name in expected if expected[name] != found[name])
    if other:
        fields = [f for f in expected[other[0]] if expected[other[0]][f] != found[other[0]].get(f)]
        return f"{len(other)} documents have other values, e.g. {other[0]} in {', '.join(fields)}"
    return None


def key_of(provider: str, mode: str) -> str:
    """The newest packaged version of a provider and mode, which has the rules of the baseline's."""
    stem = f"manuals-{provider}-{mode}-"
    numbers = [
        int(key.removeprefix(stem)) for key in list_specs([PACKAGED_SPECS]) if key.startswith(stem)
    ]
    return f"{stem}{max(numbers)}"


def walk(settings: Settings, url: str, log: Path) -> None:
    """Run every version to its end through `dagster dev`."""
    keys = [BASELINE, *(key_of(p, m) for p in PROVIDERS for m in MODES)]
    with open_instance(settings) as instance:
        register(instance, keys)
    with user_interface(settings, log) as ui:
        for key in keys:
            status = wait_for_run(ui, launch(ui, key))
            print(f"{key}: first run {status}", flush=True)
        start_sensor(ui)
        deadline = time.monotonic() + LIMIT_SECONDS
        while left := open_batches(settings):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not done in time: {left}")
            if not runs_under_way(ui):
                # Between runs only: a run's lease is counted by the same clock.
                post(f"{url}/_control/advance", {"seconds": STEP_SECONDS})
            time.sleep(4)
        while runs_under_way(ui):
            time.sleep(2)


def main() -> int:
    """Run it; 0 where every archive equals the baseline's."""
    scratch = Path(os.environ.get("TALLYBOOK_E2E_STATE") or tempfile.mkdtemp(prefix="tallybook-"))
    with emulator() as url:
        os.environ.update(environment(url))
        os.environ["TALLYBOOK_CLOCK_URL"] = f"{url}/_control/clock"
        count = write_archive(scratch / "documents")
        settings = load_settings(
            state=scratch / "state", source=scratch / "documents", source_name="shop"
        )
        print(f"{count} documents", flush=True)
        walk(settings, url, scratch / "dagster.log")
        return report(settings)


def report(settings: Settings) -> int:
    """Print the result of every provider and mode."""
    expected = archive_of(settings, BASELINE)
    print(f"baseline: {len(expected)} documents published")
    status = 0 if expected else 1
    for provider in PROVIDERS:
        for mode in MODES:
            key = key_of(provider, mode)
            cut = cut_documents(settings, key)
            for name, (sent, pages) in cut.items():
                print(f"  {key} cut: {name} ({sent} of {pages} pages sent)")
            problem = difference(expected, archive_of(settings, key))
            if problem is not None:
                status = 1
            print(f"{provider} {mode} " + ("equal" if problem is None else f"differs: {problem}"))
    return status


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
