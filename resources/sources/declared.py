"""The sources that are declared: their file `sources.yaml`, and what each kind needs.

Belongs here: reading and checking the declarations. Does not belong here: opening a source
(`opening.py`) and listing it (a module for each kind). Passwords are never in the file: a
database's URL is named by an environment variable, a bucket's keys are where its client looks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from resources.settings import Settings
from resources.sources.document_id import DocumentIdError, check_source_name
from resources.strict_yaml import YamlUnreadable, read_yaml

DEFAULT_MAX_FILE_BYTES = 256 * 1024 * 1024
_COLUMN = r"^[A-Za-z_][A-Za-z0-9_ ]{0,62}$"
_TABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$"
Column = Annotated[str, Field(pattern=_COLUMN)]


def _nameable(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("expected a path without a NUL character")
    return path


Place = Annotated[Path, AfterValidator(_nameable)]


def _without_secret(address: str) -> str:
    wrong = (
        "expected an address without user, password and options; credentials come from the "
        "environment"
    )
    try:
        parts = urlsplit(address)
    except ValueError:
        raise ValueError(wrong) from None
    if parts.username or parts.password or parts.query or parts.fragment or not parts.hostname:
        raise ValueError(wrong)
    return address


Address = Annotated[str, AfterValidator(_without_secret)]


class InvalidSources(ValueError):
    """The file of sources cannot be used."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(
            f"the sources file {file.name} {problem}. Nothing was scanned: correct it, or name "
            "another one with TALLYBOOK_SOURCES."
        )


class UnknownSource(LookupError):
    """A source that is not declared."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"there is no source {name!r}; declared are {', '.join(known) or 'none'}. Correct the "
            "name, or declare it in the sources file."
        )


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class _Declared(_Strict):
    """What every source says.

    Attributes:
        name: what its document ids start with; the key in the file.
        workload: what is extracted from its documents.
        version: the processing version under which automation processes what is new; none: it
            is left to people.
        removed: what becomes of published documents that the source no longer holds.
        approval: must somebody approve each document before it is processed?
        settle_seconds: automation leaves a document alone that changed so recently.
        allow_empty: may the source hold nothing at all?
    """

    name: str
    workload: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: str | None = None
    removed: Literal["keep", "withdraw"] = "keep"
    approval: bool = False
    settle_seconds: int = Field(default=5, ge=0, le=86_400)
    allow_empty: bool = False

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        try:
            return check_source_name(name)
        except DocumentIdError as error:
            raise ValueError(str(error)) from error


class FolderSource(_Declared):
    """A folder; every file below it is a document."""

    kind: Literal["folder"]
    path: Place
    max_file_bytes: int = Field(default=DEFAULT_MAX_FILE_BYTES, ge=1)


class _Rows(_Declared):
    """Rows as documents.

    Attributes:
        key: the column whose value is the row's identity, stable and unique.
        text: the columns that make up the document, in this order.
        changed: a column that is another value whenever the row changed; rows whose value is
            known are not read again.
        max_row_bytes: longer documents are excluded.
    """

    key: Column
    text: list[Column] = Field(min_length=1, max_length=50)
    changed: Column | None = None
    max_row_bytes: int = Field(default=1_000_000, ge=1)


class TableSource(_Rows):
    """A CSV or Parquet file; a row is a document."""

    kind: Literal["table"]
    path: Place

    @field_validator("path")
    @classmethod
    def _is_a_table(cls, path: Path) -> Path:
        if path.suffix.lower() not in (".csv", ".parquet"):
            raise ValueError("expected a file that ends in .csv or .parquet")
        return path


class SqlSource(_Rows):
    """A table, or a query, of a database.

    Attributes:
        url_env: the environment variable that holds the database's URL (SQLAlchemy's form).
        table: the table, as `table` or `schema.table`.
        query: a SELECT instead of a table.
        page_rows: rows that are fetched at a time.
    """

    kind: Literal["sql"]
    url_env: str = Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")
    table: str | None = Field(default=None, pattern=_TABLE)
    query: str | None = Field(default=None, min_length=1)
    page_rows: int = Field(default=10_000, ge=1, le=100_000)

    @model_validator(mode="after")
    def _one_of_two(self) -> SqlSource:
        if (self.table is None) == (self.query is None):
            raise ValueError("expected either 'table' or 'query'")
        return self


class BucketSource(_Declared):
    """A bucket behind the S3 API; every object below the prefix is a document.

    Attributes:
        url: `s3://bucket` or `s3://bucket/prefix`.
        endpoint: another server than Amazon's, `https://…`, or `http://…` on this machine.
        region: where the bucket is.
        anonymous: ask without credentials, for a public bucket.
    """

    kind: Literal["bucket"]
    url: str = Field(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,62}(/.*)?$")
    endpoint: Address | None = None
    region: str = "us-east-1"
    anonymous: bool = False
    max_file_bytes: int = Field(default=DEFAULT_MAX_FILE_BYTES, ge=1)


class FolderPlace(_Strict):
    """A folder that events name files of."""

    kind: Literal["folder"]
    path: Place
    max_file_bytes: int = Field(default=DEFAULT_MAX_FILE_BYTES, ge=1)


class BucketPlace(_Strict):
    """A bucket that events name objects of."""

    kind: Literal["bucket"]
    url: str = Field(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,62}(/.*)?$")
    endpoint: Address | None = None
    region: str = "us-east-1"
    anonymous: bool = False
    max_file_bytes: int = Field(default=DEFAULT_MAX_FILE_BYTES, ge=1)


DocumentPlace = Annotated[FolderPlace | BucketPlace, Field(discriminator="kind")]


class QueueSource(_Declared):
    """Events that name documents of a folder or a bucket.

    Attributes:
        transport: `folder`: event files that are dropped into a folder; `sqs`: a queue behind
            the SQS API.
        path: the folder of event files.
        queue_url: the queue.
        endpoint, region: as for a bucket.
        documents: where the named documents are: a folder or a bucket, declared like a source
            (only kind, path, url, endpoint, region and max_file_bytes are asked).
        tries: an event is given up after so many failed looks.
        owner: whom events that were given up belong to.
    """

    kind: Literal["queue"]
    transport: Literal["folder", "sqs"]
    path: Place | None = None
    queue_url: Address | None = None
    endpoint: Address | None = None
    region: str = "us-east-1"
    documents: DocumentPlace
    tries: int = Field(default=5, ge=1, le=1000)
    owner: str = Field(default="operators", min_length=1, max_length=128)

    @model_validator(mode="after")
    def _has_its_place(self) -> QueueSource:
        if self.transport == "folder" and self.path is None:
            raise ValueError("transport 'folder' needs 'path'")
        if self.transport == "sqs" and self.queue_url is None:
            raise ValueError("transport 'sqs' needs 'queue_url'")
        return self


DeclaredSource = Annotated[
    FolderSource | TableSource | SqlSource | BucketSource | QueueSource,
    Field(discriminator="kind"),
]


class _File(_Strict):
    sources: list[DeclaredSource]


def declared_sources(settings: Settings) -> list[DeclaredSource]:
    """Every source of these settings, sorted by name.

    Raises:
        InvalidSources: the file cannot be read or used, or two sources have one name.
    """
    if settings.source_given:
        return [_the_folder(settings)]
    file = settings.sources_file
    if not file.exists() and "sources" not in settings.model_fields_set:
        return [_the_folder(settings)]
    return sorted(read_sources(file), key=lambda source: source.name)


def source_named(settings: Settings, name: str) -> DeclaredSource:
    """The declaration of one source.

    Raises:
        InvalidSources: the file cannot be used.
        UnknownSource: it is not declared.
    """
    declared = declared_sources(settings)
    for source in declared:
        if source.name == name:
            return source
    raise UnknownSource(name, [source.name for source in declared])


def approval_by_declaration(settings: Settings) -> dict[str, bool]:
    """Does a source demand approval? By the name of every source that is declared anywhere.

    Where one folder was named instead of the file, the file is read for this: documents of its
    sources that were scanned before are there still, and naming a folder must let none pass.

    Raises:
        InvalidSources: a file cannot be used, so it is not known what demands approval.
    """
    declared = declared_sources(settings)
    if settings.source_given and settings.sources_file.is_file():
        declared = [*declared, *read_sources(settings.sources_file)]
    asked = dict.fromkeys((source.name for source in declared), False)
    return asked | {source.name: True for source in declared if source.approval}


def read_sources(file: Path) -> list[DeclaredSource]:
    """The sources that a file declares, in its order.

    Raises:
        InvalidSources: it cannot be read or used.
    """
    try:
        return _declarations(file, read_yaml(file))
    except YamlUnreadable as error:
        raise InvalidSources(file, error.problem) from error
    except RecursionError:
        raise InvalidSources(file, "is nested too deeply, or holds itself") from None


def _declarations(file: Path, content: Any) -> list[DeclaredSource]:
    if not isinstance(content, dict) or not isinstance(content.get("sources"), dict):
        raise InvalidSources(file, "does not hold a mapping 'sources' of names to declarations")
    rows = [
        {**_placed(given, file.parent), "name": name} if isinstance(given, dict) else {"name": name}
        for name, given in content["sources"].items()
    ]
    try:
        return _File.model_validate({**content, "sources": rows}).sources
    except ValidationError as error:
        raise InvalidSources(file, _explain(error, rows)) from error


def _placed(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The declaration with paths that count from the file's own folder."""
    placed = dict(given)
    if isinstance(given.get("path"), str):
        placed["path"] = str(folder / Path(given["path"]).expanduser())
    if isinstance(given.get("documents"), dict):
        placed["documents"] = _placed(given["documents"], folder)
    return placed


def _explain(error: ValidationError, rows: list[dict[str, object]]) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        place = list(problem["loc"])
        if len(place) > 1 and place[0] == "sources" and isinstance(place[1], int):
            place[:2] = [str(rows[place[1]]["name"])]
        name = ".".join(str(part) for part in place)
        lines.append(f"{name}: {problem['msg']}")
    return "cannot be used: " + "; ".join(lines)


def _the_folder(settings: Settings) -> FolderSource:
    return FolderSource(
        name=settings.source_name,
        kind="folder",
        path=settings.source_folder,
        workload=settings.source_workload,
    )
