"""Three documents, one for each way through the pipeline, and settings for them."""

from __future__ import annotations

from pathlib import Path

from resources.settings import Settings, load_settings

KEY = "manuals-baseline-2"
"""A processing version that answers inside the run."""

PUBLISHED = """Drum Sander KX-40
Operating Instructions

Introduction

The drum sander KX-40 smooths boards and panels up to forty centimetres wide. Read these
instructions before you switch the machine on for the first time and keep them near it.

Safety

Never reach into the machine while the drum of the KX-40 is turning. Wear ear protection and
connect the dust extraction before you start. Pull the plug before you change the abrasive belt.

Operation

Set the height of the table with the hand wheel. Switch the KX-40 on, wait until the drum runs at
full speed and feed the board slowly against the direction of rotation.
"""
DOUBTFUL = """the drum should be cleaned after every use because dust that stays on it burns the
wood and shortens the life of the belt. a soft brush is enough. after cleaning turn the drum by
hand and look for cracks, worn places and loose screws. never use water or solvents on the drum.
the belt should be changed when it no longer cuts well, and the height set again afterwards.
"""


def make_documents(folder: Path) -> Path:
    """Make one document to publish, one that a person must look at, and one to exclude."""
    folder.mkdir()
    (folder / "sander.txt").write_text(PUBLISHED, encoding="utf-8")
    (folder / "cleaning.txt").write_text(DOUBTFUL, encoding="utf-8")
    (folder / "empty.txt").touch()
    return folder


def settings_for(folder: Path, *, state: Path | None = None) -> Settings:
    """Return settings for the documents in `folder` and, by default, a state folder beside them."""
    return load_settings(
        state=state or folder / "state",
        source=folder / "documents",
        source_name="shop",
        parser_workers=1,
    )
