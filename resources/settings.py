"""The one settings model: where things are, and which profile is meant.

Belongs here: every setting that a person may give, with its default. Precedence: command line,
environment (`TALLYBOOK_*`), `.env`, profile file (`profiles/<profile>.env`), defaults. Does not
belong here: anything that decides a result (processing versions) or an operating setting of a
version (the ledger journals those).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from resources.clock import Clock, is_loopback, system_clock, virtual_clock

PROJECT = Path(__file__).resolve().parent.parent
"""The folder that holds the three packages; a checkout's root when installed in place."""


class SettingsError(ValueError):
    """A setting that cannot be used, named as the environment spells it."""


class UnsupportedPlatform(RuntimeError):
    """Tallybook was started on a system that it does not support."""


class Settings(BaseSettings):
    """Where things are.

    Attributes:
        profile: a `dev` profile refuses a ledger that was made by `prod`, and the other way.
        home: the folder that relative defaults start from.
        state: ledger, artifacts and the Dagster instance, moved together.
        ledger_url: overrides the ledger's place alone.
        source: the folder of documents.
        source_name: the name that the folder's document ids start with.
        specs: a folder of one's own processing versions, beside the packaged ones.
        catalogue: known products; optional.
        parser_workers: worker processes that parse; 0 means one a core.
        shard_records: records that one step holds in memory at a time.
        owner: how leases, moves and accesses name this process's user.
        bedrock_role_arn: the service role of Bedrock batch jobs; not a secret.
        bedrock_s3_uri: `s3://bucket/prefix` for inputs and outputs of Bedrock batch jobs.
        clock_url: the clock of a provider emulator on this machine, for tests alone.
    """

    model_config = SettingsConfigDict(
        env_prefix="TALLYBOOK_",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    profile: Literal["dev", "staging", "prod"] = "dev"
    home: Path = PROJECT
    state: Path = Path("data/state")
    ledger_url: str | None = None
    source: Path = Path("data/manuals")
    source_name: str = Field(default="manuals", pattern=r"^[a-z0-9][a-z0-9_-]{0,30}$")
    specs: Path | None = None
    catalogue: Path = Path("data/catalogue.csv")
    version: str = "manuals-baseline-1"
    parser_workers: int = Field(default=0, ge=0, le=64)
    shard_records: int = Field(default=25_000, ge=1, le=250_000)
    # With host and process it must fit the columns that name a worker.
    owner: str = Field(default="tallybook", min_length=1, max_length=48)
    bedrock_role_arn: str | None = Field(default=None, pattern=r"^arn:")
    bedrock_s3_uri: str | None = Field(default=None, pattern=r"^s3://[a-z0-9][a-z0-9.-]+(/.*)?$")
    clock_url: str | None = None

    @model_validator(mode="after")
    def _virtual_time_is_for_tests(self) -> Settings:
        if self.clock_url is not None and (
            self.profile == "prod" or not is_loopback(self.clock_url)
        ):
            raise ValueError(
                "clock_url is for tests: expected a URL on this machine, and a profile that is "
                "not prod"
            )
        return self

    @property
    def clock(self) -> Clock:
        """Where the time comes from: this machine, or the emulator that a test points at."""
        return system_clock if self.clock_url is None else virtual_clock(self.clock_url)

    def place(self, path: Path) -> Path:
        """A path of these settings, made absolute from `home`."""
        return path if path.is_absolute() else (self.home / path)

    @property
    def state_folder(self) -> Path:
        """Where the ledger, the artifacts and the Dagster instance live."""
        return self.place(self.state)

    @property
    def source_folder(self) -> Path:
        """The folder of documents, absolute."""
        return self.place(self.source)

    @property
    def spec_folders(self) -> list[Path]:
        """Folders of processing versions: the packaged one, then one's own."""
        packaged = PROJECT / "partitions" / "versions"
        return [packaged] if self.specs is None else [packaged, self.place(self.specs)]

    @property
    def ledger_place(self) -> str:
        """The ledger's URL: `ledger_url`, or a file in the state folder."""
        return self.ledger_url or f"sqlite:///{self.state_folder / 'ledger.sqlite'}"


def load_settings(**given: Any) -> Settings:
    """Settings from every layer; `given` (the command line) wins where it is not None.

    Raises:
        SettingsError: a value cannot be used.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        first = Settings(_env_file=".env", **chosen)  # pyright: ignore[reportCallIssue]
        profile_file = first.home / "profiles" / f"{first.profile}.env"
        return Settings(
            _env_file=(profile_file, ".env"),  # pyright: ignore[reportCallIssue]
            **chosen,
        )
    except ValidationError as error:
        problems = [
            f"TALLYBOOK_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
            if problem["loc"]
            else problem["msg"]
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise SettingsError("; ".join(problems)) from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            "the file .env, or the profile's file, is not UTF-8 text; save it as UTF-8"
        ) from error


def require_supported_platform(platform: str = sys.platform) -> None:
    """Refuse Windows: leases, limits and safe opening stand on POSIX.

    Raises:
        UnsupportedPlatform: `platform` is Windows.
    """
    if platform.startswith(("win", "cygwin")):
        raise UnsupportedPlatform(
            "Tallybook runs on Linux (macOS: best effort), not on Windows: use WSL 2 or a "
            "Linux machine."
        )
