"""The table of metrics, and that the documentation and the example rules name no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pipeline_assets.account.metric_table import METRICS, Declared

NAME = re.compile(r"\btallybook_[a-z_]+\b")
DEPLOY = "deploy/prometheus"


def queried() -> set[str]:
    """Every name that a query may begin with."""
    return {
        f"{metric.family}{ending}"
        for metric in METRICS
        for ending in ENDINGS.get(metric.kind, ("_bucket", "_count", "_sum", "_gcount", "_gsum"))
    }


ENDINGS = {"gauge": ("",), "counter": ("_total",)}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_well_named(metric: Declared) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", metric.name)
    assert not metric.name.endswith("_total")
    assert metric.family.endswith(metric.unit)
    assert metric.meaning.endswith(".")
    assert len(set(metric.labels)) == len(metric.labels)
    # A label of these would name somebody or something without an end.
    assert not {"document", "record", "batch", "owner", "reviewer", "subject"} & set(metric.labels)


def test_no_family_is_declared_twice() -> None:
    families = [metric.family for metric in METRICS]
    assert len(set(families)) == len(families)


def test_the_rules_name_only_metrics_that_exist(repository: Path) -> None:
    rules = yaml.safe_load((repository / DEPLOY / "tallybook.rules.yml").read_text())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    named = {name for expression in expressions for name in NAME.findall(expression)}
    assert len(named) > 5
    assert named <= queried()


def test_the_rules_name_only_labels_that_exist(repository: Path) -> None:
    rules = yaml.safe_load((repository / DEPLOY / "tallybook.rules.yml").read_text())
    labels = {metric.sample: set(metric.labels) for metric in METRICS}
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert set(rule) >= {"alert", "expr", "labels", "annotations"}
            for name, inner in re.findall(r"(tallybook_[a-z_]+)\{([^}]*)\}", rule["expr"]):
                assert set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", inner)) <= labels[name]


def test_the_scrape_configuration(repository: Path) -> None:
    configuration = yaml.safe_load((repository / DEPLOY / "prometheus.yml").read_text())
    for file in configuration["rule_files"]:
        assert (repository / DEPLOY / file).is_file()
    (job,) = configuration["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:9464"]


def test_the_page_has_every_metric_and_no_other(repository: Path) -> None:
    page = (repository / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)` \| (\S+) \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    assert rows == [
        (
            metric.sample if metric.kind in ENDINGS else metric.family,
            metric.kind,
            ", ".join(metric.labels),
            metric.meaning,
        )
        for metric in METRICS
    ]
    text = page.partition("## All of them")[0]
    known = queried() | {metric.family for metric in METRICS}
    assert set(NAME.findall(text)) <= known
