"""What `tallybook show --provenance` prints: where each value of a document comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline_assets.account.field_provenance_model import (
        Answer,
        DocumentProvenance,
        Evidence,
        FieldProvenance,
        Publication,
        Reviewed,
    )


def print_provenance(told: DocumentProvenance) -> None:
    """Print the values by field, then what all of them share."""
    from pipeline_assets.cli import output

    output.heading(told.document_id)
    if told.erased is not None:
        output.say(
            f"  erased on {output.local(told.erased.at)} by {told.erased.actor} because: "
            f"{told.erased.reason}"
        )
    for field in told.fields:
        _print_field(field)
    _print_answer(told.answer)
    _print_publication(told.publication)


def _print_field(field: FieldProvenance) -> None:
    from pipeline_assets.cli import output

    number = "" if field.item is None else f" {field.item + 1}"
    output.heading(f"{field.label}{number}")
    output.say(f"  {field.value or '-'}  ({field.status})")
    output.facts(
        [
            ("from", field.origin),
            *(("read on", _told_evidence(evidence)) for evidence in field.evidence),
            *(
                ("finding", f"{one.rule} {one.rule_version} ({one.severity}): {one.note}")
                for one in field.findings
            ),
            ("review", None if field.review is None else _told_review(field.review)),
        ],
        4,
    )


def _told_evidence(evidence: Evidence) -> str:
    if evidence.start is None or evidence.end is None:
        place = {
            "does not stand there": "the quote does not stand there",
            "no such page": "the document has no such page",
        }.get(evidence.standing, "the place was not kept")
    else:
        place = f"characters {evidence.start} to {evidence.end}"
    words = "" if evidence.quote is None else f': "{" ".join(evidence.quote.split())}"'
    return f"page {evidence.page}, {place}{words}"


def _told_review(review: Reviewed) -> str:
    from pipeline_assets.cli import output

    what = {
        True: "changed this value",
        False: "left this value as it was",
        None: "corrected the record",
    }[review.changed]
    if review.decision == "accept":
        what = "accepted the record"
    return (
        f"{review.reviewer} {what}, {output.local(review.decided_at)}: {review.reason} "
        f"(review {review.review})"
    )


def _print_answer(answer: Answer) -> None:
    from pipeline_assets.cli import output

    raw, replay = answer.raw, answer.replay
    output.heading("Answer")
    output.facts(
        [
            ("record", answer.record_id),
            ("made because", answer.record_reason),
            ("source checksum", answer.source_checksum),
            ("processing version", f"{answer.processing_version}, digest {answer.spec_digest}"),
            ("workload", f"{answer.workload}, schema {answer.schema_version}"),
            ("parser", answer.parser),
            ("prompt", _told_prompt(answer)),
            ("attempt", f"{answer.attempt} ({answer.recovery_path})"),
            (
                "replay",
                None
                if replay is None
                else f"{replay.replay_id}, {replay.reason} by {replay.actor}: {replay.note}",
            ),
            ("replayed where", None if replay is None else replay.expression),
            ("manifest", f"{answer.manifest_id}, digest {answer.manifest_digest}"),
            ("batch", answer.batch_id),
            ("custom id", answer.custom_id),
            ("request", f"digest {answer.request_digest}"),
            ("provider", f"{answer.provider} ({answer.mode}), job {answer.provider_job_id}"),
            ("model", answer.model),
            ("model revision", answer.model_revision),
            ("submitted", output.local(answer.submitted_at)),
            (
                "raw result",
                None
                if raw is None
                else f"line {raw.line}, bytes {raw.offset}+{raw.length} of {raw.artifact}"
                + (", came late" if raw.late else "")
                + ("" if raw.pruned_at is None else f", pruned at {output.local(raw.pruned_at)}"),
            ),
            (
                "form repaired",
                ", ".join(f"{one['rule']} {one['rule_version']}" for one in answer.repairs),
            ),
            ("values", answer.values_digest),
        ],
        2,
    )


def _told_prompt(answer: Answer) -> str | None:
    if answer.prompt is None:
        return None
    digest = answer.prompt_digest
    return f"{answer.prompt}, digest {digest}" if digest else f"{answer.prompt} (not installed)"


def _print_publication(publication: Publication) -> None:
    from pipeline_assets.cli import output

    change = (
        None
        if publication.kind is None
        else f"{publication.kind} by {publication.actor}, {output.local(publication.changed_at)}: "
        f"{publication.reason}"
    )
    output.heading("Publication")
    output.facts(
        [
            ("archive version", publication.archive_version),
            ("shown from", output.local(publication.shown_from)),
            ("shown until", output.local(publication.shown_until) or "now"),
            ("shown by", change),
            ("values", publication.content_digest),
        ],
        2,
    )
