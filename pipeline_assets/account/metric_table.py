"""Every metric that there is: its name, kind, labels and meaning.

Belongs here: the table, which the page of the documentation and the example alert rules are held
against. Does not belong here: values (`openmetrics.py`).

Names begin with `tallybook_` and end in their unit, counters in `_total` after it. A label's values
are a closed list of words, or keys of processing versions: never a document, a record or a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["gauge", "counter", "histogram", "gaugehistogram"]


@dataclass(frozen=True)
class Declared:
    """One metric.

    Attributes:
        name: without `tallybook_`, unit and `_total`.
        kind: a `gaugehistogram` is of what there is now, a `histogram` of all that ever ended.
        labels: names of its labels, in the order in which values are given.
        meaning: one sentence.
        unit: what it counts in, where that is a unit.
    """

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    meaning: str
    unit: str = ""

    @property
    def family(self) -> str:
        """The name of its family, as the text form's TYPE line has it."""
        return f"tallybook_{self.name}{'_' if self.unit else ''}{self.unit}"

    @property
    def sample(self) -> str:
        """The name that a query begins with; of a histogram, its buckets'."""
        ends = {"counter": "_total", "gauge": ""}
        return self.family + ends.get(self.kind, "_bucket")


_NOTHING: tuple[str, ...] = ()
_VERSION = ("version",)
_JOBS = ("version", "provider", "mode")


def _gauge(name: str, labels: tuple[str, ...], meaning: str, unit: str = "") -> Declared:
    return Declared(name, "gauge", labels, meaning, unit)


def _counter(name: str, labels: tuple[str, ...], meaning: str, unit: str = "") -> Declared:
    return Declared(name, "counter", labels, meaning, unit)


def _spread(
    name: str, kind: MetricKind, labels: tuple[str, ...], meaning: str
) -> Iterator[Declared]:
    """A histogram, and beside it the exact quantiles that `status` shows."""
    yield Declared(name, kind, labels, f"{meaning}.", "seconds")
    yield _gauge(
        f"{name}_quantile",
        (*labels, "quantile"),
        f"{meaning}: the exact p50 and p90 and, as quantile 1, the longest.",
        "seconds",
    )


METRICS: tuple[Declared, ...] = (
    _gauge("read_timestamp", _NOTHING, "When these figures were read.", "seconds"),
    # Where documents, records and batches stand.
    _gauge("documents", _VERSION, "Documents that the sources hold now."),
    _gauge("excluded_documents", _VERSION, "Of these, documents without a record."),
    _gauge("stage_documents", (*_VERSION, "stage"), "Present documents that passed a stage."),
    _gauge("shown_documents", _VERSION, "Documents that the archive shows from the version."),
    _gauge("records", (*_VERSION, "state"), "Records of present documents by state."),
    _gauge("open_records", _VERSION, "Of these, records that the pipeline itself moves on."),
    _gauge("batches", (*_VERSION, "state"), "Batches by state."),
    _gauge("active_attempts", _VERSION, "Attempts in batches that the provider has, or may have."),
    _gauge("publication", _VERSION, "Published records of accepted and published ones.", "ratio"),
    _gauge("done", _VERSION, "1 if nothing waits, else 0."),
    _gauge("closed", _VERSION, "1 if the newest closed report still says how things are, else 0."),
    _gauge("held", (*_VERSION, "kind"), "1 for the kind of hold that the version is under."),
    # What waits.
    _gauge("waiting", (*_VERSION, "what", "needs"), "What keeps the version from being done."),
    _gauge("queue_records", (*_VERSION, "queue"), "Records in front of a later stage."),
    _gauge("queue_limit_records", (*_VERSION, "queue"), "From here on nothing new is submitted."),
    _gauge("reviews_open", (*_VERSION, "kind"), "Reviews that nobody has decided."),
    _gauge("dead_letters_open", _VERSION, "Records that were given up and wait for their owner."),
    _gauge("retries_due", _VERSION, "Records whose time for another attempt has come."),
    _gauge("next_retry_timestamp", _VERSION, "When the first waiting record is due.", "seconds"),
    _gauge("next_poll_timestamp", _VERSION, "When a provider is asked next.", "seconds"),
    _gauge("sampled_error", _VERSION, "Error rate that the quality samples show.", "ratio"),
    # How old it is.
    *_spread(
        "open_record_age", "gaugehistogram", _VERSION, "Age of open records since their last move"
    ),
    *_spread(
        "batch_out_age", "gaugehistogram", _VERSION, "Age of batches at the provider, since sent"
    ),
    *_spread(
        "open_batch_age", "gaugehistogram", _VERSION, "Age of unfinished batches, since prepared"
    ),
    *_spread("review_age", "gaugehistogram", _VERSION, "Age of open reviews that a finding opened"),
    *_spread("sample_age", "gaugehistogram", _VERSION, "Age of open reviews of quality samples"),
    # The jobs.
    *_spread("queue_age", "gaugehistogram", _JOBS, "Age of batches that queue at the provider"),
    *_spread("queue_time", "histogram", _JOBS, "Time that batches queued at the provider"),
    *_spread("running_age", "gaugehistogram", _JOBS, "Age of batches that run, since first seen"),
    *_spread("running_time", "histogram", _JOBS, "Time that batches were seen running"),
    *_spread("reconciliation_age", "gaugehistogram", _JOBS, "Age of results of unfinished batches"),
    *_spread("reconciliation_lag", "histogram", _JOBS, "Time from results to a complete batch"),
    _counter("jobs", _JOBS, "Batches that were handed over."),
    _counter("polls", _JOBS, "Looks at jobs."),
    _gauge("polls_per_job", _JOBS, "Looks at a job on average."),
    _gauge("most_polls", _JOBS, "Looks at the job that needed most."),
    _gauge(
        "provider_rows",
        (*_JOBS, "outcome"),
        "What the provider says of the rows that it works on now; outcome total is all of them.",
    ),
    _gauge("silent_jobs", _JOBS, "Jobs that the provider works on and says no counts of."),
    _counter("attempts", _JOBS, "Attempts in batches that were handed over."),
    _counter("retries", (*_JOBS, "path"), "Of these, attempts that follow a failed one."),
    _gauge("retry", _JOBS, "Share of attempts that follow a failed one.", "ratio"),
    _counter("dispositions", (*_JOBS, "disposition"), "Attempts by what came of them."),
    _counter("failures", (*_JOBS, "failure_class"), "Attempts that failed, by class."),
    _counter("result_files", _JOBS, "Files that came back."),
    _counter("result_lines", _JOBS, "Lines in them."),
    _counter("download", _JOBS, "Bytes in them.", "bytes"),
    _gauge(
        "unreconciled_records",
        (*_JOBS, "state"),
        "Records without a disposition in batches that were, or may have been, handed over.",
    ),
    _counter("incidents", _JOBS, "Times that a batch's account did not hold."),
    _counter("quarantines", _JOBS, "Times that nobody knew whether a job reached the provider."),
    # What it cost.
    _gauge("cost_read_timestamp", _VERSION, "When what it cost was read.", "seconds"),
    _gauge("accepted_items", _VERSION, "Records accepted at least once and not rejected now."),
    _counter("tokens", (*_VERSION, "kind"), "Known tokens; cached ones are input ones too."),
    _gauge("cost_known", _VERSION, "Known cost, that of reviewers included.", "usd"),
    _gauge("provider_cost_known", _VERSION, "Of this, the provider's part.", "usd"),
    _gauge("cost_known_by_purpose", (*_VERSION, "purpose"), "The provider's part by use.", "usd"),
    _gauge("cost_unknown", (*_VERSION, "reason"), "Attempts, answers or calls of unknown amount."),
    _gauge("cost_per_accepted", _VERSION, "Cost of an accepted item, if all is known.", "usd"),
    _gauge("cost_per_accepted_at_least", _VERSION, "What is known of that.", "usd"),
    _gauge("provider_cost_per_accepted", _VERSION, "The provider's part, if known.", "usd"),
    _gauge("review_time", _VERSION, "Time that reviewers took, where it is known.", "seconds"),
    _gauge("reviews_untimed", _VERSION, "Decided reviews whose time is not known."),
    *_spread(
        "item_time", "gaugehistogram", (*_VERSION, "part"), "Time to acceptance of accepted items"
    ),
    # The house.
    _gauge("alerts_open", ("kind", "severity"), "Open alerts."),
    _gauge("artifact", ("kind",), "Size of the stored artifacts.", "bytes"),
    _gauge("artifact_files", ("kind",), "Stored artifacts."),
    _gauge("ledger", _NOTHING, "Size of the ledger.", "bytes"),
    _gauge("disk_free", ("place",), "Room left where artifacts or the ledger lie.", "bytes"),
    _gauge("disk_size", ("place",), "Size of that file system.", "bytes"),
    _gauge("disk_reserve", _NOTHING, "Room that no work is begun below.", "bytes"),
    _gauge("disk_forecast", _VERSION, "What the rest of the version will take.", "bytes"),
    _gauge("disk_enough", _VERSION, "1 if that fits and the reserve stays, else 0."),
    _gauge("last_report_timestamp", _VERSION, "When the newest report was kept.", "seconds"),
    _gauge("last_closing_timestamp", _VERSION, "When a report was closed last.", "seconds"),
    _gauge("last_audit_timestamp", _VERSION, "When the version was audited last.", "seconds"),
    _gauge("last_audit_findings", _VERSION, "What that audit found."),
    _gauge("last_backup_timestamp", _NOTHING, "When a backup was finished last.", "seconds"),
)
