"""Every link of the documentation leads somewhere, and every page is found from the README."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.documentation.blocks import anchors, links, pages

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = pages(REPOSITORY)
_IDS = [str(page.relative_to(REPOSITORY)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=_IDS)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    broken = [
        f"{page.name}:{line}: {target}: {problem}"
        for line, target in links(page)
        if (problem := _problem(page, target)) is not None
    ]
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, todo = set(), [REPOSITORY / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        todo += [target for _, link in links(page) for target in _pages_behind(page, link)]
    assert [str(p.relative_to(REPOSITORY)) for p in PAGES if p not in reached] == []


def test_every_picture_is_shown() -> None:
    shown = {_place(page, link) for page in PAGES for _, link in links(page)}
    pictures = sorted((REPOSITORY / "docs" / "images").iterdir())
    assert [picture.name for picture in pictures if picture not in shown] == []


def _problem(page: Path, target: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme in ("http", "https"):
        return None if parts.hostname in ("127.0.0.1", "localhost") else "leads out of the project"
    place = _place(page, target)
    if not place.exists():
        return "there is no such file"
    if not place.is_relative_to(REPOSITORY):
        return "leads out of the repository"
    if parts.fragment and parts.fragment not in anchors(place):
        return "the page has no such heading"
    return None


def _pages_behind(page: Path, link: str) -> list[Path]:
    place = _place(page, link)
    if place.is_dir():
        return sorted(place.glob("*.md"))
    return [place] if place.suffix == ".md" else []


def _place(page: Path, target: str) -> Path:
    path = unquote(urlsplit(target).path)
    return (page.parent / path).resolve() if path else page
