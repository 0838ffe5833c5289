"""The page of a report: nothing of a document gets out of its place, and everybody can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline_assets.account.reconciliation import page as page_module
from pipeline_assets.account.reconciliation import plots
from pipeline_assets.account.reconciliation.kept import MadeReport, made_report
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from pipeline_assets.account.reconciliation.page import Closing, page_of
from pipeline_assets.account.reconciliation.tally import named_losses
from pipeline_assets.account.violations import pending_sentence
from pipeline_assets.costs.charges import MEANINGS
from resources.contracts import read_frame, read_shards
from tests.support.small_archive import KEY, Archive

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = '<script>alert("1")</script>\u202e<img src=x onerror=alert(2)>&'


def page(made: MadeReport, frame: pl.DataFrame | None = None, **more: Closing) -> str:
    shards = read_shards(OUTCOMES, made.outcomes) if frame is None else iter([frame])
    return "".join(page_of(made.report, shards, made.digest, **more))


@pytest.fixture
def made(read_archive: Archive) -> Iterator[MadeReport]:
    """Return a report of the small archive."""
    with made_report(read_archive.context, KEY) as found:
        yield found


class Outline(HTMLParser):
    """The tags of a page, and whether they close each other."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in ("meta", "br"):
            self.open.pop()


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    return found


def test_the_page_stands_alone(made: MadeReport) -> None:
    text = page(made)
    found = outline(text)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert not {"script", "img", "link", "iframe", "form", "a"} & set(found.tags)
    assert "default-src 'none'" in text.replace("&#39;", "'")
    assert "url(" not in text.replace("url(#", "")
    assert not re.findall(r'(?:src|href)="(?!#)', text)
    # Every reference of a drawing is to something in the page.
    wanted = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert wanted <= set(found.ids)


def test_the_page_says_the_facts(made: MadeReport) -> None:
    text = page(made)
    assert "The account adds up." in text
    assert made.digest in text
    assert made.report.details.outcomes.merkle_root in text
    assert "duplicate content" in text
    assert text.count('role="img"') >= 3
    for head in made.report.account.journal.heads:
        assert head.head in text


def test_the_same_report_gives_the_same_page(made: MadeReport) -> None:
    assert page(made) == page(made)


def test_nothing_of_a_document_is_taken_for_the_page(made: MadeReport) -> None:
    frame = read_frame(OUTCOMES, made.outcomes).with_columns(
        document_id=pl.lit(HOSTILE), reason=pl.lit(HOSTILE), state=pl.lit("dead_letter")
    )
    account = replace(
        made.report.account, violations=(HOSTILE,), invariant_holds=False, excluded={HOSTILE: 1}
    )
    hostile = replace(made, report=replace(made.report, account=account))
    text = page(hostile, frame, closing=Closing(HOSTILE, "2026-11-30T01:02:03.000004Z", HOSTILE))
    assert "script" not in outline(text).tags
    assert "<script" not in text
    assert "<img" not in text
    assert text.count("&lt;script&gt;") >= 9


def changed(made: MadeReport, **account: object) -> str:
    other = replace(made.report.account, **account)
    return page(replace(made, report=replace(made.report, account=other)))


@pytest.mark.parametrize(
    ("account", "told", "untold"),
    [
        pytest.param({"state": "held"}, ["<strong>Held</strong>", "adds up"], [], id="held"),
        pytest.param(
            {"pending": 2, "violations": (pending_sentence(2),), "invariant_holds": False},
            ["<strong>Not finished.</strong> 2 documents"],
            ["adds up", "add up"],
            id="pending",
        ),
        pytest.param(
            {
                "pending": 2,
                "violations": (pending_sentence(2), "a thing"),
                "invariant_holds": False,
            },
            ["does not add up", "<li>a thing</li>", "<li>2 documents"],
            ["Not finished"],
            id="wrong",
        ),
    ],
)
def test_the_top_says_how_it_stands(
    account: dict[str, object], told: list[str], untold: list[str], made: MadeReport
) -> None:
    text = changed(made, **account).split("</header>")[0]
    assert [each for each in told if each not in text] == []
    assert [each for each in untold if each in text] == []


def test_a_plot_that_is_cut_says_so(made: MadeReport) -> None:
    (batch,) = made.report.details.batches
    several = tuple(replace(batch, batch_id=f"b{number}") for number in range(plots.MOST_BARS + 1))
    details = replace(made.report.details, batches=several)
    text = page(replace(made, report=replace(made.report, details=details)))
    assert "The first 24 of 25 are drawn; the table has all of them." in text
    assert "are drawn" not in page(made)
    for each in several:
        assert f'<th scope="row">{each.batch_id}</th>' in text


def test_what_is_not_known_of_the_cost_is_said(made: MadeReport) -> None:
    cost = made.report.details.cost | {
        "unknown": {"no_answer": 3},
        "cost_per_accepted_usd": None,
        "at_least_per_accepted_usd": "0.25",
        "review": {"decided": 5, "timed": 2, "untimed": 3, "minutes": "1.500", "usd": None},
    }
    details = replace(made.report.details, cost=cost)
    text = page(replace(made, report=replace(made.report, details=details)))
    assert f"<li>3: {MEANINGS['no_answer']}</li>" in text
    assert "unknown, at least 0.250000 US$" in text
    assert "5 decisions, 2 of them timed: 1.500 min, unknown; of the others no time" in text


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (None, "unknown"),
        ("0", "0.00 US$"),
        ("0.0004064487", "0.000406 US$"),
        ("0.0000004", "less than 0.000001 US$"),
        ("1.005", "1.00 US$"),
        ("1234567.5", "1\u202f234\u202f567.50 US$"),
    ],
)
def test_money(amount: str | None, said: str) -> None:
    assert page_module._money(amount) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"),
        (0, "0 s"),
        (1.154, "1.15 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (172_800, "2 days"),
        (229_000, "2.65 days"),
        (86_400 * 1234.4, "1\u202f234 days"),
    ],
)
def test_durations(seconds: float | None, said: str) -> None:
    assert page_module._duration(seconds) == said


def test_long_lists_are_cut_and_counted() -> None:
    frame = pl.DataFrame(
        {
            name: pl.Series(
                [f"doc-{number:04}" for number in range(450)]
                if name in ("subject", "document_id")
                else [None] * 450,
                dtype=dtype,
            )
            for name, dtype in OUTCOMES.schema.items()
        }
    ).with_columns(
        state=pl.lit("excluded"),
        reason=pl.lit("empty"),
        attempts=pl.lit(0, dtype=pl.Int64),
        present=pl.lit(value=True),
    )
    (kind,) = named_losses(frame.iter_slices(100))
    assert (kind.what, kind.why, kind.subjects) == ("excluded", "empty", 450)
    assert (len(kind.first), kind.more) == (200, 250)
    assert kind.first[-1].document_id == "doc-0199"


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(plots.bars("a", "d", []), id="no-bars"),
        pytest.param(plots.bars("a", "d", [plots.Bar("x", (0.0,), "0")]), id="only-zeros"),
        pytest.param(plots.intervals("a", "d", []), id="no-intervals"),
    ],
)
def test_nothing_is_drawn_of_nothing(drawn: str) -> None:
    assert drawn == ""


def test_labels_are_no_formulas_and_no_markup() -> None:
    drawn = plots.bars("a", 'say "<b>"', [plots.Bar("$x^2$ <b>&", (1.0, 2.0), "3")], ("one", "two"))
    assert "$x^2$ &lt;b&gt;&amp;" in drawn
    assert "<b>" not in drawn
    assert 'aria-label="say &quot;&lt;b&gt;&quot;"' in drawn


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_everybody_can_read_it(
    made: MadeReport, scheme: str, chromium: Path, tmp_path: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    file = tmp_path / "report.html"
    file.write_text(page(made), encoding="utf-8")
    with sync_playwright() as playwright:
        browser: Browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            for width in (390, 1280):
                # The page forbids scripts, and the checker is one.
                place = browser.new_context(
                    viewport={"width": width, "height": 900},
                    color_scheme="dark" if scheme == "dark" else "light",
                    bypass_csp=True,
                )
                shown = place.new_page()
                shown.goto(file.as_uri())
                assert shown.evaluate("document.documentElement.scrollWidth") <= width
                found = Axe().run(shown).response["violations"]
                grave = [each["id"] for each in found if each["impact"] in ("serious", "critical")]
                assert grave == []
        finally:
            browser.close()
