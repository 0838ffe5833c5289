"""What a pilot is: its id, its plan in a file, its folder and the settings that hold in it.

Belongs here: making, finding and dropping plans. Does not belong here: carrying one out (`run.py`)
and what it came to (`report.py`).

A pilot is a state folder of its own inside the state folder: its ledger and its artifacts are not
those of the archive, so nothing of it is published, counted or erased with the archive.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from pipeline_assets.pilot.errors import (
    DropReasonMissing,
    JobsStillOut,
    PilotDamaged,
    UnknownPilot,
)
from pipeline_assets.pilot.population import StratumCount, Taken
from resources.clock import to_text
from resources.context import Context, make_private
from resources.ledger.jobs import OPEN_AT_PROVIDER, UNDECIDED, find_jobs
from resources.settings import Settings

FOLDER = "pilots"
PLAN = "plan.json"
DROPPED = "dropped.jsonl"
_ID = r"p-[0-9a-f]{12}"


class Plan(msgspec.Struct, frozen=True):
    """A pilot as it was made; it never changes.

    Attributes:
        pilot_id: `p-` and twelve hexadecimal digits.
        versions: keys, in the order in which they were named.
        workload: of all of them.
        sample: documents that were asked for.
        seed: what the order of the documents was made of.
        made_at: UTC.
        source: the folder that was named as the one source; None: the declared sources.
        source_name: its name.
        strata: what the sources held.
        taken: the documents.
        left_out: why → documents that are in no stratum.
        known: documents of the strata whose stratum the main ledger's parses told.
    """

    pilot_id: str
    versions: tuple[str, ...]
    workload: str
    sample: int
    seed: int
    made_at: str
    source: str | None
    source_name: str | None
    strata: tuple[StratumCount, ...]
    taken: tuple[Taken, ...]
    left_out: dict[str, int]
    known: int


def pilot_id_of(
    digests: Mapping[str, str],
    sample: int,
    seed: int,
    folder: str | None,
    documents: Sequence[str],
) -> str:
    """The id of a pilot: the same versions on the same documents are the same pilot.

    Args:
        digests: version → its digest: one whose prompt was changed since is another one.
        sample: documents that were asked for.
        seed: what their order was made of.
        folder: the folder that was named as the one source, since another one may have documents
            of the same names; None: the declared sources.
        documents: ids of the documents that are taken.
    """
    content = msgspec.json.encode(
        (sorted(digests.items()), sample, seed, folder, sorted(documents))
    )
    return f"p-{hashlib.sha256(content).hexdigest()[:12]}"


def pilots_folder(settings: Settings) -> Path:
    """Where the pilots of a state folder are."""
    return settings.state_folder / FOLDER


def pilot_folder(settings: Settings, pilot_id: str) -> Path:
    """The state folder of one pilot."""
    return pilots_folder(settings) / pilot_id


def pilot_settings(settings: Settings, plan: Plan) -> Settings:
    """The settings that hold inside a pilot: the same sources, another state folder.

    The ledger is a file of that folder, also where the archive's is on a server.
    """
    changed: dict[str, object] = {"version": plan.versions[0]}
    if plan.source is not None:
        changed |= {
            "source": Path(plan.source),
            "source_name": plan.source_name,
            "source_workload": plan.workload,
        }
    return inside(settings, plan.pilot_id).model_copy(update=changed)


def inside(settings: Settings, pilot_id: str) -> Settings:
    """The settings of a pilot's state folder, whatever its plan says."""
    return settings.model_copy(
        update={"state": pilot_folder(settings, pilot_id), "ledger_url": None}
    )


def store_plan(settings: Settings, plan: Plan) -> Path:
    """Write the plan, whole or not at all; its folder."""
    make_private(settings.state_folder)
    make_private(pilots_folder(settings))
    folder = make_private(pilot_folder(settings, plan.pilot_id))
    fresh = folder / f"{PLAN}.{os.getpid()}"
    fresh.write_bytes(msgspec.json.encode(plan))
    fresh.replace(folder / PLAN)
    return folder


def has_plan(settings: Settings, pilot_id: str) -> bool:
    """Was this pilot made?"""
    return (pilot_folder(settings, pilot_id) / PLAN).is_file()


def find_plan(settings: Settings, pilot_id: str) -> Plan:
    """The plan of a pilot.

    Raises:
        UnknownPilot: there is none of that id.
        PilotDamaged: its file cannot be read.
    """
    require_pilot(settings, pilot_id)
    file = pilot_folder(settings, pilot_id) / PLAN
    try:
        return msgspec.json.decode(file.read_bytes(), type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PilotDamaged(file, type(error).__name__) from error


def require_pilot(settings: Settings, pilot_id: str) -> None:
    """Refuse an id that no pilot has.

    Raises:
        UnknownPilot: there is none of that id.
    """
    if not re.fullmatch(_ID, pilot_id) or not has_plan(settings, pilot_id):
        raise UnknownPilot(pilot_id, pilot_ids(settings))


def pilot_ids(settings: Settings) -> list[str]:
    """Ids of the pilots of a state folder, sorted."""
    folder = pilots_folder(settings)
    if not folder.is_dir():
        return []
    return sorted(
        entry.name
        for entry in folder.iterdir()
        if re.fullmatch(_ID, entry.name) and (entry / PLAN).is_file()
    )


def drop_pilot(
    settings: Settings, pilot: Context | None, pilot_id: str, reason: str, *, force: bool
) -> int:
    """Remove a pilot with its ledger and its artifacts; returns the bytes that went.

    What was dropped, why and by whom is noted beside the pilots that are left.

    Args:
        settings: of the main state folder.
        pilot: the pilot, open, to ask for jobs that are still out; None: there is nothing to ask.
        pilot_id: its id; its plan may be damaged.
        reason: why.
        force: drop it although jobs are at a provider.

    Raises:
        UnknownPilot: there is none of that id.
        DropReasonMissing: the reason is empty.
        JobsStillOut: jobs are at a provider.
    """
    require_pilot(settings, pilot_id)
    if not reason.strip():
        raise DropReasonMissing()
    if pilot is not None and not force:
        out = find_jobs(pilot.ledger, (*OPEN_AT_PROVIDER, *UNDECIDED))
        if out:
            raise JobsStillOut(pilot_id, [job.id for job in out])
    folder = pilot_folder(settings, pilot_id)
    size = bytes_below(folder)
    note = {
        "pilot_id": pilot_id,
        "bytes": size,
        "reason": reason,
        "actor": settings.owner,
        "dropped_at": to_text(settings.clock()),
    }
    with (pilots_folder(settings) / DROPPED).open("ab") as file:
        file.write(msgspec.json.encode(note) + b"\n")
    # Without its plan it is no pilot any more, so one that is half removed is not taken for whole.
    (folder / PLAN).unlink(missing_ok=True)
    shutil.rmtree(folder)
    return size


def bytes_below(folder: Path) -> int:
    """The size of all files below a folder."""
    return sum(
        (Path(root) / name).lstat().st_size for root, _, names in os.walk(folder) for name in names
    )
