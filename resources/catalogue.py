"""The catalogue of known products: a CSV file, or a table of a database.

Belongs here: reading it whole, and refusing one that cannot be trusted. Does not belong here:
what follows from a product that is in it, or is not (`pipeline_assets/workloads`).
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from resources.identifiers import fold_identifier
from resources.settings import Settings

PRODUCT_SCHEMA = {"identifier": pl.String, "maker": pl.String, "name": pl.String}
"""A known product; `identifier` is folded."""

_COLUMNS = tuple(PRODUCT_SCHEMA)
_NAMED = 5
"""Faulty lines that a message names; the rest is counted."""


class CatalogueUnreadable(Exception):
    """The catalogue cannot be read, or says what cannot be right."""

    def __init__(self, place: str, found: str, remedy: str) -> None:
        super().__init__(f"the product catalogue ({place}) cannot be used: {found}. {remedy}")


@dataclass(frozen=True)
class Catalogue:
    """The known products.

    Attributes:
        products: `PRODUCT_SCHEMA`, one row an identifier, sorted by it.
        digest: SHA-256 of the products, the same for a file and a table that say the same; None
            where there is no catalogue.
    """

    products: pl.DataFrame
    digest: str | None


NO_CATALOGUE = Catalogue(pl.DataFrame(schema=PRODUCT_SCHEMA), None)
"""Nothing is known of any product."""


def load_catalogue(settings: Settings) -> Catalogue:
    """The products that the settings name.

    Where nothing is named, the file at the default place counts if it is there.

    Raises:
        CatalogueUnreadable: it cannot be read, lacks a column, or has two rows for one product.
    """
    if settings.catalogue_url is not None:
        place = "TALLYBOOK_CATALOGUE_URL"
        url = settings.catalogue_url.get_secret_value()
        return _catalogue(place, _table_rows(place, url, settings.catalogue_table))
    path = settings.place(settings.catalogue)
    if settings.catalogue == Settings.model_fields["catalogue"].default and not path.exists():
        return NO_CATALOGUE
    return _catalogue(str(path), _file_rows(path))


def _file_rows(path: Path) -> Iterator[tuple[str, Sequence[str | None]]]:
    """Where each product stands, and its columns."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        header = [name.strip().casefold() for name in next(reader, [])]
        if any(name not in header for name in _COLUMNS):
            raise CatalogueUnreadable(
                str(path),
                f"its first line names no column {_listed(set(_COLUMNS) - set(header))}",
                "Give it the columns identifier, maker and name, with commas between.",
            )
        places = [header.index(name) for name in _COLUMNS]
        for row in reader:
            where = f"line {reader.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise CatalogueUnreadable(
                    str(path),
                    f"{where} has {len(row)} columns, the first line {len(header)}",
                    "Correct the line; put quotation marks around a value with a comma.",
                )
            yield where, [row[place] for place in places]
    except csv.Error as error:
        raise CatalogueUnreadable(
            str(path),
            f"line {reader.line_num} is no CSV ({error})",
            "Correct the line; double a quotation mark inside a quoted value.",
        ) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CatalogueUnreadable(
            str(path),
            f"the file cannot be read ({error.strerror or type(error).__name__})",
            "Correct TALLYBOOK_CATALOGUE, or put the file there.",
        ) from error
    except UnicodeDecodeError as error:
        raise CatalogueUnreadable(
            str(path),
            f"byte {error.start} is no UTF-8",
            "Save the file as UTF-8 text.",
        ) from error


def _table_rows(place: str, url: str, table: str) -> Iterator[tuple[str, Sequence[str | None]]]:
    schema, _, name = table.rpartition(".")
    columns = [sa.column(column, sa.String()) for column in _COLUMNS]
    query = sa.select(*columns).select_from(sa.table(name, *columns, schema=schema or None))
    engine = _engine(place, url)
    try:
        with engine.connect() as connection:
            result = connection.execution_options(yield_per=10_000).execute(query)
            for row in result:
                yield f"product {row[0]!a}", tuple(row)
    except SQLAlchemyError as error:
        # The driver's own words may quote the URL, and so a password.
        raise CatalogueUnreadable(
            place,
            f"table {table} cannot be read ({type(error).__name__})",
            "Check that the database answers, and that the table (TALLYBOOK_CATALOGUE_TABLE) has "
            "the text columns identifier, maker and name.",
        ) from None
    finally:
        engine.dispose()


def _engine(place: str, url: str) -> sa.Engine:
    remedy = (
        "Give a URL like postgresql+psycopg://user:password@host/database, or the sqlite:/// URL "
        "of a file that is there."
    )
    try:
        parts = sa.make_url(url)
        file = parts.database if parts.get_backend_name() == "sqlite" else None
        # SQLite would make an empty database where none is.
        if file is not None and not file.startswith("file:") and not Path(file).is_file():
            raise CatalogueUnreadable(place, "its SQLite file does not exist", remedy)
        return sa.create_engine(parts)
    except (ArgumentError, ImportError, ValueError) as error:
        raise CatalogueUnreadable(
            place, f"the URL cannot be used ({type(error).__name__})", remedy
        ) from None


def _catalogue(place: str, rows: Iterable[tuple[str, Sequence[str | None]]]) -> Catalogue:
    seen: dict[str, tuple[str, str, str]] = {}
    incomplete: list[str] = []
    repeated: list[str] = []
    for where, cells in rows:
        identifier, maker, name = (str(cell or "").strip() for cell in cells)
        folded = fold_identifier(identifier)
        if not (folded and maker and name):
            incomplete.append(where)
        elif folded in seen:
            first, *before = seen[folded]
            same = "repeats" if before == [maker, name] else "contradicts"
            repeated.append(f"{where} {same} {first}")
        else:
            seen[folded] = (where, maker, name)
    if incomplete:
        raise CatalogueUnreadable(
            place,
            f"{_listed(incomplete)}: identifier, maker or name is empty",
            "Fill them in, or take the lines out.",
        )
    if repeated:
        raise CatalogueUnreadable(
            place,
            f"it has an identifier more than once, but for case, hyphens and spaces: "
            f"{_listed(repeated)}",
            "Keep one line of each.",
        )
    products = pl.DataFrame(
        [(identifier, maker, name) for identifier, (_, maker, name) in seen.items()],
        schema=PRODUCT_SCHEMA,
        orient="row",
    ).sort("identifier")
    return Catalogue(products, _digest(products))


def _digest(products: pl.DataFrame) -> str:
    return hashlib.sha256(msgspec.json.encode(products.rows())).hexdigest()


def _listed(found: Iterable[str]) -> str:
    names = list(found)
    named = ", ".join(names[:_NAMED])
    return named if len(names) <= _NAMED else f"{named} and {len(names) - _NAMED} more"
