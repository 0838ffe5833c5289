"""The product catalogue: what is read, what is refused and how, and that no secret is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from resources.catalogue import PRODUCT_SCHEMA, CatalogueUnreadable, load_catalogue
from resources.settings import Settings, SettingsError, load_settings

HEADER = "identifier,maker,name\n"
ROWS = "DX-20,Norvale,Dust extractor\nWM 7,Brenwick,Water meter\n"


def settings(home: Path, **given: Any) -> Settings:
    return load_settings(home=home, **given)


def write(home: Path, text: str | bytes, name: str = "data/catalogue.csv") -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def table(home: Path, rows: list[tuple[Any, ...]], name: str = "products") -> str:
    url = f"sqlite:///{home / 'known.sqlite'}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE {name} (identifier TEXT, maker TEXT, name TEXT)"))
        for row in rows:
            connection.execute(
                sa.text(f"INSERT INTO {name} VALUES (:a, :b, :c)"),
                dict(zip("abc", row, strict=True)),
            )
    engine.dispose()
    return url


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEADER + ROWS, id="plain"),
        pytest.param("\ufeff" + HEADER + ROWS, id="byte-order-mark"),
        pytest.param((HEADER + ROWS).replace("\n", "\r\n"), id="windows-lines"),
        pytest.param(HEADER + "\n" + ROWS + ",,\n", id="blank-lines"),
        pytest.param(
            "Name , MAKER,url,identifier\nDust extractor,Norvale,x,DX-20\n"
            "Water meter,Brenwick,,WM 7\n",
            id="other-order-and-a-further-column",
        ),
        pytest.param(HEADER + ROWS.replace("DX-20", ' "DX-20"'[1:]), id="quoted"),
    ],
)
def test_a_file_that_is_read(text: str, tmp_path: Path) -> None:
    write(tmp_path, text)
    catalogue = load_catalogue(settings(tmp_path))
    assert catalogue.products.schema == PRODUCT_SCHEMA
    assert catalogue.products.rows() == [
        ("dx20", "Norvale", "Dust extractor"),
        ("wm7", "Brenwick", "Water meter"),
    ]


def test_a_table_says_the_same_as_a_file(tmp_path: Path) -> None:
    write(tmp_path, HEADER + ROWS)
    url = table(
        tmp_path, [("wm-7", "Brenwick", "Water meter"), ("DX-20", "Norvale", "Dust extractor")]
    )
    from_file = load_catalogue(settings(tmp_path))
    from_table = load_catalogue(settings(tmp_path, catalogue_url=url))
    assert from_file.digest == from_table.digest is not None
    assert from_file.products.equals(from_table.products)


def test_another_product_is_another_digest(tmp_path: Path) -> None:
    write(tmp_path, HEADER + ROWS)
    first = load_catalogue(settings(tmp_path)).digest
    write(tmp_path, HEADER + ROWS.replace("Brenwick", "Brenwyck"))
    assert load_catalogue(settings(tmp_path)).digest != first


def test_no_catalogue_where_none_is_named(tmp_path: Path) -> None:
    catalogue = load_catalogue(settings(tmp_path))
    assert catalogue.products.is_empty()
    assert catalogue.digest is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "names no column", id="empty"),
        pytest.param("id,maker,name\n", "names no column identifier", id="no-identifier"),
        pytest.param("identifier;maker;name\n", "with commas between", id="semicolons"),
        pytest.param(HEADER + "DX-20,Norvale\n", "line 2 has 2 columns", id="short-line"),
        pytest.param(HEADER + "DX-20,,Extractor\n", "line 2: identifier, maker", id="no-maker"),
        pytest.param(HEADER + "- -,Norvale,Pump\n", "line 2: identifier, maker", id="only-hyphens"),
        pytest.param(
            HEADER + ROWS + "dx 20,Norvale,Dust extractor\n", "line 4 repeats line 2", id="repeated"
        ),
        pytest.param(
            HEADER + ROWS + "DX20,Other,Oven\n", "line 4 contradicts line 2", id="contradicting"
        ),
        pytest.param(
            HEADER + "A1,,x\n" * 9, "line 6 and 4 more: identifier, maker", id="many-faults"
        ),
        pytest.param(HEADER + '"DX-20,Norvale,x\n', "is no CSV", id="open-quotation-mark"),
        pytest.param(b"identifier,maker,name\nDX-20,M\xfcller,x\n", "no UTF-8", id="latin-1"),
    ],
)
def test_a_file_that_is_refused(text: str | bytes, told: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CatalogueUnreadable) as refused:
        load_catalogue(settings(tmp_path))
    assert told in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_named_and_missing(tmp_path: Path) -> None:
    with pytest.raises(CatalogueUnreadable, match="Correct TALLYBOOK_CATALOGUE"):
        load_catalogue(settings(tmp_path, catalogue=Path("known.csv")))


def test_a_folder_is_no_catalogue(tmp_path: Path) -> None:
    (tmp_path / "data" / "catalogue.csv").mkdir(parents=True)
    with pytest.raises(CatalogueUnreadable, match="cannot be read"):
        load_catalogue(settings(tmp_path))


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("no url s3cret", id="no-url"),
        pytest.param("nothing://u:s3cret@host/db", id="unknown-database"),
        pytest.param("postgresql+psycopg://u:s3cret@127.0.0.1:1/db", id="nobody-answers"),
        pytest.param("sqlite:////nowhere/s3cret.sqlite", id="no-file"),
        pytest.param("postgresql+psycopg://u:s3cret@host:port/db", id="no-port"),
    ],
)
def test_a_database_that_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueUnreadable) as refused:
        load_catalogue(settings(tmp_path, catalogue_url=url))
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(CatalogueUnreadable, match="does not exist"):
        load_catalogue(settings(tmp_path, catalogue_url=f"sqlite:///{tmp_path / 'new.sqlite'}"))
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize(
    ("rows", "name", "asked", "told"),
    [
        pytest.param([], "products", "others", "TALLYBOOK_CATALOGUE_TABLE", id="no-table"),
        pytest.param(
            [("A1", "M", "x"), ("a-1", "N", "y")],
            "products",
            "products",
            "product 'a-1' contradicts product 'A1'",
            id="contradicting",
        ),
        pytest.param([("A1", None, "x")], "products", "products", "product 'A1'", id="null"),
    ],
)
def test_a_table_that_is_refused(
    rows: list[tuple[Any, ...]], name: str, asked: str, told: str, tmp_path: Path
) -> None:
    url = table(tmp_path, rows, name)
    with pytest.raises(CatalogueUnreadable) as refused:
        load_catalogue(settings(tmp_path, catalogue_url=url, catalogue_table=asked))
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["a; drop table x", "a b", "1a", "a.b.c", "", 'a"b'])
def test_names_that_no_table_has(name: str) -> None:
    with pytest.raises(SettingsError, match="TALLYBOOK_CATALOGUE_TABLE"):
        load_settings(catalogue_table=name)


def test_a_table_may_have_a_schema(tmp_path: Path) -> None:
    url = table(tmp_path, [("A1", "M", "x")])
    catalogue = load_catalogue(
        settings(tmp_path, catalogue_url=url, catalogue_table="main.products")
    )
    assert catalogue.products.rows() == [("a1", "M", "x")]
