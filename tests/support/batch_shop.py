"""A small archive for a provider's batch mode: documents, a spec with small batches, settings.

Belongs here: what a process needs to work on it, whoever starts that process. Does not belong here:
the work (`batch_worker.py`) and what must come of it (`kill_oracles.py`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import yaml

from partitions.processing_version import Spec
from resources.settings import PROJECT, Settings, load_settings
from tests.integration.stages.support import manual

SOURCE_NAME = "shop"
DOCUMENTS = 12
BATCH_RECORDS = 3
"""Few enough that a small archive has several batches."""
SCRUBBED_PREFIXES = (
    *("TALLYBOOK_", "DAGSTER_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "AWS_"),
)


@dataclass(frozen=True)
class BatchShop:
    """An archive of its own in a folder of its own.

    Attributes:
        folder: holds documents, specs and state.
        provider: whose batches.
        key: the processing version.
        ledger_url: where the ledger is; None for a SQLite file in the state folder.
        titles: document id → the title that it must be published with.
    """

    folder: Path
    provider: str
    key: str
    ledger_url: str | None
    titles: dict[str, str]

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / "state"

    def variables(self) -> dict[str, str]:
        """The settings as environment variables, for processes of any kind."""
        found = {
            "TALLYBOOK_STATE": str(self.state),
            "TALLYBOOK_SOURCE": str(self.folder / "documents"),
            "TALLYBOOK_SOURCE_NAME": SOURCE_NAME,
            "TALLYBOOK_SPECS": str(self.folder / "specs"),
            "TALLYBOOK_VERSION": self.key,
            "TALLYBOOK_PARSER_WORKERS": "1",
        }
        return (
            found if self.ledger_url is None else found | {"TALLYBOOK_LEDGER_URL": self.ledger_url}
        )

    def settings(self) -> Settings:
        """The same for this process."""
        return load_settings(
            state=self.state,
            source=self.folder / "documents",
            source_name=SOURCE_NAME,
            specs=self.folder / "specs",
            version=self.key,
            parser_workers=1,
            ledger_url=self.ledger_url,
        )


def make_shop(
    folder: Path, provider: str, ledger_url: str | None = None, documents: int = DOCUMENTS
) -> BatchShop:
    """Write documents and a spec."""
    source, specs = folder / "documents", folder / "specs"
    source.mkdir(parents=True)
    specs.mkdir()
    titles = {}
    for number in range(documents):
        identifier = f"WP-{100 + number}"
        (source / f"d{number}.txt").write_text(manual("Circulation Pump", identifier))
        titles[f"{SOURCE_NAME}/d{number}.txt"] = f"Circulation Pump {identifier} User Manual"
    packaged = PROJECT / "partitions" / "versions" / f"manuals-{provider}-batch-1.yaml"
    key = f"small-{provider}-batch-1"
    spec = yaml.safe_load(packaged.read_text(encoding="utf-8")) | {
        "key": key,
        "batch_records": BATCH_RECORDS,
    }
    Spec.model_validate(spec)
    (specs / f"{key}.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    return BatchShop(folder, provider, key, ledger_url, titles)


def scrubbed(variables: dict[str, str]) -> dict[str, str]:
    """The present environment without the settings and keys of whoever runs this, plus these."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(SCRUBBED_PREFIXES)
    }
    return kept | variables
