"""Small pictures."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from pipeline_assets.ingest.parsing import thumbnail


def picture(*marks: tuple[int, int, int, int], paper: int = 255) -> Image.Image:
    image = Image.new("L", (300, 400), paper)
    for mark in marks:
        ImageDraw.Draw(image).rectangle(mark, fill=0)
    return image


@pytest.mark.parametrize(
    ("image", "blank"),
    [
        pytest.param(picture(), True, id="white"),
        pytest.param(picture(paper=230), True, id="grey paper"),
        pytest.param(picture((5, 5, 7, 7)), True, id="a speck"),
        pytest.param(picture((50, 50, 90, 60)), False, id="a word"),
        pytest.param(picture(paper=0), False, id="black"),
    ],
)
def test_is_blank(image: Image.Image, blank: bool) -> None:
    assert thumbnail.is_blank(image) is blank


def test_encode_bounds_the_longest_side_and_repeats_itself() -> None:
    first = thumbnail.encode(picture((1, 1, 99, 99)), 100)
    assert first == thumbnail.encode(picture((1, 1, 99, 99)), 100)
    assert Image.open(io.BytesIO(first)).size == (75, 100)


def test_drawn_text() -> None:
    drawn = thumbnail.draw_text("Title\n\nText of a page", 400)
    assert drawn is not None
    assert drawn == thumbnail.draw_text("Title\n\nText of a page", 400)
    image = Image.open(io.BytesIO(drawn))
    assert max(image.size) == 400
    assert not thumbnail.is_blank(image)
    assert thumbnail.draw_text(" \n", 400) is None
