"""The one settings model: where things are, and which profile is meant.

Belongs here: every setting that a person may give, with its default. Precedence: command line,
environment (`TALLYBOOK_*`), `.env`, profile file (`profiles/<profile>.env`), defaults. Does not
belong here: anything that decides a result (processing versions) or an operating setting of a
version (the ledger journals those).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from resources.clock import Clock, is_loopback, system_clock, virtual_clock

PROJECT = Path(__file__).resolve().parent.parent
"""The folder that holds the three packages; a checkout's root when installed in place."""

MAIL_ADDRESS = r"^[^\s@,;<>\x00-\x1f]{1,64}@[^\s@,;<>\x00-\x1f]{1,255}$"
"""Enough to tell an address from a mistake; whether it exists, the mail server knows."""


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
        source: a folder of documents; where it is given, by whatever layer, it is the one source,
            and `sources` is not read.
        source_name: the name that the folder's document ids start with.
        source_workload: what is extracted from that folder's documents.
        sources: the file that declares the sources; the default may be missing, and the default
            folder is the one source then.
        workloads: a folder of one's own workloads, beside the packaged ones.
        specs: a folder of one's own processing versions, beside the packaged ones.
        catalogue: a CSV file of known products (identifier, maker, name); the default may be
            missing, a file that is named may not.
        catalogue_url: the database that has them instead (a SQLAlchemy URL); a secret, since it
            often carries a password.
        catalogue_table: the table there, as `table` or `schema.table`, with the same columns.
        parser_workers: worker processes that parse; 0 means one a core.
        shard_records: records that one step holds in memory at a time.
        owner: how leases, moves and accesses name this process's user.
        bedrock_role_arn: the service role of Bedrock batch jobs; not a secret.
        bedrock_s3_uri: `s3://bucket/prefix` for inputs and outputs of Bedrock batch jobs.
        clock_url: the clock of a provider emulator on this machine, for tests alone.
        alert_webhook_url: where alerts are posted; a secret, since it often carries a token.
        alert_webhook_secret: the key that posted alerts are signed with.
        alert_smtp_url: `smtp://user@host:587` or `smtps://user@host:465`; alerts go there as mail.
        alert_smtp_password: the password of that user.
        alert_mail_from: the address that alerts come from.
        alert_mail_to: the addresses that they go to, separated by commas.
        alert_repeat_minutes: an open alert that goes on is told again no sooner than this.
        outlet_webhook_url: where changes of the archive are posted; a secret, as it may hold one.
        outlet_webhook_secret: the key that posted changes are signed with.
        outlet_webhook_name: how deliveries name that receiver; a new name hears everything anew.
        outlet_concurrency: so many changes are under way to it at a time.
        disk_reserve_mb: work that would leave less room than this on the disk is not begun.
        traces: where spans go: nowhere, to the collector that the standard variables of
            OpenTelemetry name, or to a file in the state folder.
        trace_share: of records that neither failed nor were among the slowest, this share is
            traced too, from 0 to 1.
    """

    model_config = SettingsConfigDict(
        env_prefix="TALLYBOOK_",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        # Else an error would quote what was given, secrets included.
        hide_input_in_errors=True,
    )

    profile: Literal["dev", "staging", "prod"] = "dev"
    home: Path = PROJECT
    state: Path = Path("data/state")
    ledger_url: str | None = None
    source: Path = Path("data/manuals")
    source_name: str = Field(default="manuals", pattern=r"^[a-z0-9][a-z0-9_-]{0,30}$")
    source_workload: str = Field(default="equipment_manuals", pattern=r"^[a-z][a-z0-9_]*$")
    sources: Path = Path("sources.yaml")
    workloads: Path | None = None
    specs: Path | None = None
    catalogue: Path = Path("data/catalogue.csv")
    catalogue_url: SecretStr | None = None
    catalogue_table: str = Field(
        default="products", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$"
    )
    version: str = "manuals-baseline-2"
    parser_workers: int = Field(default=0, ge=0, le=64)
    shard_records: int = Field(default=25_000, ge=1, le=250_000)
    # With host and process it must fit the columns that name a worker.
    owner: str = Field(default="tallybook", min_length=1, max_length=48)
    bedrock_role_arn: str | None = Field(default=None, pattern=r"^arn:")
    bedrock_s3_uri: str | None = Field(default=None, pattern=r"^s3://[a-z0-9][a-z0-9.-]+(/.*)?$")
    clock_url: str | None = None
    alert_webhook_url: SecretStr | None = None
    alert_webhook_secret: SecretStr | None = None
    alert_smtp_url: str | None = None
    alert_smtp_password: SecretStr | None = None
    alert_mail_from: str | None = Field(default=None, pattern=MAIL_ADDRESS)
    alert_mail_to: str | None = None
    alert_repeat_minutes: int = Field(default=60, ge=1, le=10_080)
    outlet_webhook_url: SecretStr | None = None
    outlet_webhook_secret: SecretStr | None = None
    outlet_webhook_name: str = Field(default="webhook", pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")
    outlet_concurrency: int = Field(default=4, ge=1, le=32)
    disk_reserve_mb: int = Field(default=1024, ge=0, le=10_000_000)
    traces: Literal["off", "otlp", "file"] = "off"
    trace_share: float = Field(default=0.01, ge=0, le=1)

    @field_validator("alert_webhook_url", "outlet_webhook_url")
    @classmethod
    def _webhook_is_encrypted(cls, given: SecretStr | None) -> SecretStr | None:
        if given is not None:
            url = given.get_secret_value()
            parts = _parts_of(url)
            if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
                raise ValueError("expected an https:// URL (http:// only to this machine itself)")
        return given

    @field_validator("alert_smtp_url")
    @classmethod
    def _mail_server_is_one(cls, given: str | None) -> str | None:
        if given is not None:
            parts = _parts_of(given)
            if parts.scheme not in ("smtp", "smtps") or parts.path.strip("/") or parts.query:
                raise ValueError("expected smtp://user@host:587 or smtps://user@host:465")
            if parts.password is not None:
                raise ValueError(
                    "the password does not belong into the URL, which is shown: give it as "
                    "TALLYBOOK_ALERT_SMTP_PASSWORD"
                )
        return given

    @field_validator("alert_mail_to")
    @classmethod
    def _recipients_are_addresses(cls, given: str | None) -> str | None:
        if given is not None and not all(
            re.fullmatch(MAIL_ADDRESS, address) for address in _listed(given)
        ):
            raise ValueError("expected mail addresses such as ops@example.com, with commas between")
        return given

    @model_validator(mode="after")
    def _mail_is_whole(self) -> Settings:
        parts = (self.alert_smtp_url, self.alert_mail_from, self.alert_mail_to)
        if any(parts) and not all(parts):
            raise ValueError(
                "TALLYBOOK_ALERT_SMTP_URL, TALLYBOOK_ALERT_MAIL_FROM and TALLYBOOK_ALERT_MAIL_TO "
                "belong together: give all three, or none"
            )
        user = self.alert_smtp_url is not None and urlsplit(self.alert_smtp_url).username
        if bool(user) != (self.alert_smtp_password is not None):
            raise ValueError(
                "the user in TALLYBOOK_ALERT_SMTP_URL and TALLYBOOK_ALERT_SMTP_PASSWORD belong "
                "together: give both, or none"
            )
        return self

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

    @property
    def alert_recipients(self) -> tuple[str, ...]:
        """The addresses that alerts go to."""
        return tuple(_listed(self.alert_mail_to or ""))

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
    def source_given(self) -> bool:
        """Was one folder named as the source, so that no file of sources is read?"""
        return "source" in self.model_fields_set

    @property
    def sources_file(self) -> Path:
        """The file that declares the sources, absolute."""
        return self.place(self.sources)

    @property
    def workload_folder(self) -> Path | None:
        """The folder of one's own workloads, absolute."""
        return None if self.workloads is None else self.place(self.workloads)

    @property
    def spec_folders(self) -> list[Path]:
        """Folders of processing versions: the packaged one, then one's own."""
        packaged = PROJECT / "partitions" / "versions"
        return [packaged] if self.specs is None else [packaged, self.place(self.specs)]

    @property
    def ledger_place(self) -> str:
        """The ledger's URL: `ledger_url`, or a file in the state folder."""
        return self.ledger_url or f"sqlite:///{self.state_folder / 'ledger.sqlite'}"


def _parts_of(url: str) -> SplitResult:
    """A URL's parts; never quotes the URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("it is not a URL") from None
    if not parts.hostname or port == 0 or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError("it is not a URL with a host")
    return parts


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")] if text else []


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
