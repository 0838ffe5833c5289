"""What is told of somebody else's database: never a piece of its URL that may be secret."""

from __future__ import annotations

import pytest

from resources.sources.sql_connection import UnusableDatabase, database_url, shown

NAME = "TICKETS_URL"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(
            "postgresql://ada:se:cr/et@db:5432/shop", "postgresql://db:5432/shop", id="plain"
        ),
        pytest.param(
            "postgresql://db/shop?password=secret", "postgresql://db/shop", id="in_an_option"
        ),
        pytest.param("sqlite:////data/@home/a.db", "sqlite:////data/@home/a.db", id="file"),
    ],
)
def test_no_piece_of_a_password_is_told(given: str, told: str) -> None:
    assert shown(database_url({NAME: given}, NAME)) == told


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("postgresql://ada:se@cret@db/shop", id="at"),
        pytest.param("postgresql://ada:s@e/c:r@et@db:5432/shop", id="signs_of_all_kinds"),
        pytest.param("mysql://ada:s@ecret@db/shop", id="another_database"),
        pytest.param("postgresql://ada:se@cret@[::1]:5432/shop", id="no_port"),
    ],
)
def test_a_password_that_would_be_taken_for_the_host_is_refused(given: str) -> None:
    with pytest.raises(UnusableDatabase, match=f"{NAME} holds") as caught:
        database_url({NAME: given}, NAME)
    for piece in ("cret", "ecret", "et@", "c:r", "ada"):
        assert piece not in str(caught.value)
    assert caught.value.__cause__ is None
