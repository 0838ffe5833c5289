"""The development corpus: every file one outcome, languages and refusals as labelled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.ingest.parsing.model import (
    MIB,
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseReport,
    ParseTask,
)
from pipeline_assets.ingest.parsing.pool import ParserPool

pytestmark = pytest.mark.slow

Labels = dict[str, dict[str, Any]]
Reports = dict[str, ParseReport]


@pytest.fixture(scope="module")
def labels(dev_corpus: Path) -> Labels:
    lines = (dev_corpus / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    return {label["file"]: label for label in map(json.loads, lines)}


@pytest.fixture(scope="module")
def reports(dev_corpus: Path, labels: Labels) -> Iterator[Reports]:
    """Every file parsed once, with the usual limits."""
    with ParserPool(2, ParseLimits()) as pool:
        if not pool.ocr_available:
            pytest.skip("the extra ocr is not installed: half of the labels speak of scans")
        tasks = [ParseTask(file, dev_corpus / file) for file in labels]
        yield {report.key: report for report in pool.parse_many(tasks)}


def test_every_file_has_one_outcome_within_bounds(reports: Reports, labels: Labels) -> None:
    assert set(reports) == set(labels)
    assert max(report.peak_rss_bytes for report in reports.values()) < 1024 * MIB
    for file, report in reports.items():
        assert report.sha256 in (None, labels[file]["sha256"])


def test_every_readable_document_has_text_in_its_language(reports: Reports, labels: Labels) -> None:
    wrong: dict[str, object] = {}
    for file, label in labels.items():
        if not label.get("labelled"):
            continue
        outcome = reports[file].outcome
        if not isinstance(outcome, ParsedDocument):
            wrong[file] = outcome
        elif outcome.language != label["language"] and not label.get("ambiguous"):
            wrong[file] = outcome.language
        elif label.get("pages") not in (None, outcome.page_count):
            wrong[file] = outcome.page_count
    assert wrong == {}


def test_what_the_labels_call_missing_from_the_text_is_read_by_ocr(
    reports: Reports, labels: Labels
) -> None:
    for file, label in labels.items():
        if label.get("text_layer") not in ("none", "watermark_only", "partly_garbled"):
            continue
        outcome = reports[file].outcome
        assert isinstance(outcome, ParsedDocument)
        assert "ocr" in outcome.notes
        assert outcome.pages[0].origin == "ocr"


def test_refusals_are_as_expected(reports: Reports, labels: Labels) -> None:
    wrong: dict[str, object] = {}
    for file, label in labels.items():
        expected = label.get("expect") or ""
        outcome = reports[file].outcome
        found = outcome.reason if isinstance(outcome, ParseFailure) else "pages"
        allowed: set[str] | None = None
        if "needs password" in expected:
            allowed = {"encrypted"}
        elif expected.startswith("not a PDF"):
            allowed = {"type_mismatch"}
        elif expected == "clear failure":
            allowed = {"unreadable", "empty"}
        elif "no text" in expected:
            allowed = {"no_text"}
        if allowed is not None and found not in allowed:
            wrong[file] = found
    assert wrong == {}
