"""`tallybook explain`: the whole story of one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.account.explain import Explanation


def explain_command(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="Its id, or an end of it that is unique.")
    ],
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Tell the whole story of a document, from its bytes to its publication."""
    from pipeline_assets.account.explain import explain
    from pipeline_assets.cli import output

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        story = explain(context, document, settings.version)
    if json:
        output.emit_json(story.as_json())
    else:
        _print(story)
    return 0


def _print(story: Explanation) -> None:
    from pipeline_assets.cli import output

    output.heading(story.document_id)
    output.facts(
        [
            ("processing version", story.processing_version),
            ("outcome", story.state),
            ("in the source now", "yes" if story.present else "no"),
        ]
    )
    if story.erasure is not None:
        _print_erasure(story.erasure)
    _print_source(story.source)
    _print_parse(story.parse)
    if story.exclusion is not None:
        output.heading("Excluded")
        output.facts(list(story.exclusion.items()), 2)
    for record in story.records:
        _print_record(record)
    for publication in story.publications:
        _print_publication(publication)
    if not story.publications:
        output.heading("Publication")
        output.say("  none")


def _print_erasure(erasure: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    output.heading("Erased")
    output.facts(
        [
            ("because", erasure["reason"]),
            ("by", erasure["actor"]),
            ("begun", output.local(erasure["begun_at"])),
            (
                "finished",
                output.local(erasure["finished_at"]) or "not yet: files may still hold it",
            ),
        ],
        2,
    )


def _told_pruned(at: str | None) -> str:
    from pipeline_assets.cli import output

    return "" if at is None else f", pruned by policy at {output.local(at)}"


def _print_source(source: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    output.heading("Source")
    output.facts(
        [
            ("source", f"{source['name']} ({source['kind']} {source['location']})"),
            ("checksum", source["checksum"]),
            ("bytes", source["bytes"]),
            ("first seen", output.local(source["first_seen_at"])),
            ("so since", f"snapshot {source['snapshot']}"),
            ("snapshot taken", output.local(source["snapshot_taken_at"])),
            ("gone since", output.local(source["gone_at"])),
            ("copy kept", "yes" if source["bytes_kept"] else "no"),
            ("versions seen", len(source["versions"])),
        ],
        2,
    )


def _print_parse(parse: dict[str, Any] | None) -> None:
    from pipeline_assets.cli import output

    output.heading("Parse")
    if parse is None:
        output.say("  not read")
        return
    output.facts(
        [
            ("parser", parse["parser"]),
            ("media type", parse["media_type"]),
            ("pages", parse["pages"]),
            ("language", " ".join(filter(None, [parse["language"], *parse["languages"]]))),
            ("notes", " ".join(parse["notes"])),
            ("text incomplete", "yes" if parse["partial"] else None),
            ("gave no text", parse["excluded"]),
            ("detail", parse["detail"]),
            ("cost", f"{parse['wall_ms']} ms, {parse['peak_rss_bytes'] // 2**20} MiB at most"),
            ("text", parse["text_pack"]),
            ("thumbnail", parse["thumbnail"]),
            ("at", output.local(parse["parsed_at"])),
        ],
        2,
    )


def _print_record(record: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    output.heading("Record")
    output.facts(
        [
            ("record", record["record_id"]),
            ("state", record["state"]),
            ("operation", record["operation"]),
            ("made because", record["replay_reason"]),
            *_told_replay(record["replay"]),
            ("source checksum", record["source_checksum"]),
            ("called in requests", record["reference"]),
            ("not before", output.local(record["not_before"])),
        ],
        2,
    )
    for attempt in record["attempts"]:
        _print_attempt(attempt)
    output.heading("Moves")
    for move in record["moves"]:
        output.say(
            f"  {output.local(move['at'])}  {move['from'] or '(new)'} → {move['to']}: "
            f"{move['reason']} [{move['actor']}, {move['cause']}; "
            f"{counted(move['members'], 'record')} in {move['chain']}]"
        )


def _told_replay(replay: dict[str, Any] | None) -> list[tuple[str, object]]:
    """The replay that asked for a record or an attempt, and its filter."""
    if replay is None:
        return []
    return [
        ("replay", f"{replay['id']}, {replay['reason']} by {replay['actor']}: {replay['note']}"),
        ("replayed where", replay["expression"]),
    ]


def _print_attempt(attempt: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    manifest, request, batch = attempt["manifest"], attempt["request"], attempt["batch"]
    disposition, judgement = attempt["disposition"], attempt["judgement"]
    after = "" if attempt["follows"] is None else f", after attempt {attempt['follows']}"
    output.heading(f"Attempt {attempt['ordinal']} ({attempt['recovery_path']}{after})")
    rows: list[tuple[str, object]] = [
        *_told_replay(attempt["replay"]),
        (
            "manifest",
            f"{manifest['manifest_id']}, row {manifest['row']} of {manifest['expected']}, "
            f"digest {manifest['digest']}",
        ),
        ("batch", f"{batch['batch_id']} ({batch['state']})"),
        (
            "request",
            f"digest {request['digest']}, bytes {request['offset']}+{request['length']} of "
            f"{request['artifact']}{_told_pruned(request['pruned_at'])}",
        ),
        ("custom id", attempt["custom_id"]),
        (
            "provider",
            f"{batch['provider']} ({batch['mode']}), model {batch['model']}, "
            f"job {batch['provider_job_id']}, {batch['raw_status']}",
        ),
        ("submitted", output.local(batch["submitted_at"])),
    ]
    rows += [
        (
            "result line",
            f"line {line['line']}, bytes {line['offset']}+{line['length']} of {line['kind']} "
            f"{line['artifact']}"
            + (f" ({line['anomaly']})" if line["anomaly"] else "")
            + _told_pruned(line["pruned_at"]),
        )
        for line in attempt["results"]
    ]
    if attempt["repairs"]:
        rows.append(("repaired", _repaired(attempt["repairs"])))
    if disposition is not None:
        why = ", ".join(filter(None, [disposition["failure_class"], disposition["diagnostics"]]))
        rows.append(("disposition", disposition["disposition"] + (f" ({why})" if why else "")))
    decision = attempt["decision"]
    if decision is not None:
        rows.append(("then", _decided(decision)))
    rows += [
        (
            "late result",
            f"{late['disposition']}, {'used' if late['used'] else 'not used'}, came with "
            f"{late['came_with']}: line {late['line']}, bytes {late['offset']}+{late['length']} of "
            f"{late['artifact']}",
        )
        for late in attempt["late_results"]
    ]
    if judgement is not None:
        rows.append(("judgement", f"{judgement['outcome']}, values {judgement['values_digest']}"))
    rows += [
        (
            "finding",
            f"{finding['rule']} {finding['rule_version']} ({finding['severity']}) "
            f"{finding['field']}: {finding['note']}",
        )
        for finding in attempt["findings"]
    ]
    rows += _reviewed(attempt["reviews"])
    output.facts(rows, 2)


def _repaired(repairs: list[dict[str, Any]]) -> str:
    """Every repair, and the answer's text before the first and after the last by its digest."""
    made = ", ".join(f"{repair['rule']} {repair['rule_version']}" for repair in repairs)
    before, after = repairs[0]["before_digest"], repairs[-1]["after_digest"]
    return f"{made} (text {before[:12]}… → {after[:12]}…)"


def _reviewed(reviews: list[dict[str, Any]]) -> list[tuple[str, object]]:
    """Each review with every act on it."""
    from pipeline_assets.cli import output

    rows: list[tuple[str, object]] = []
    for review in reviews:
        sample = f" {review['sample']}" if review["sample"] else ""
        opened = f"{review['kind'].replace('_', ' ')}{sample}, {output.local(review['opened_at'])}"
        rows.append((f"review {review['review']}", f"opened by {opened}"))
        rows += [
            ("", f"{act['act']} by {act['who']}, {output.local(act['at'])}: {act['reason']}")
            for act in review["acts"]
        ]
        if review["corrected_digest"] is not None:
            rows.append(("", f"corrected values {review['corrected_digest']}"))
    return rows


def _decided(decision: dict[str, Any]) -> str:
    from pipeline_assets.cli import output

    said = decision["reason"] if decision["counted"] else f"{decision['reason']}; free of charge"
    if decision["decision"] == "dead_letter":
        closed = f"; {decision['closing']}: {decision['closing_reason']}"
        return f"dead letter of {decision['owner']} ({said}){closed if decision['closing'] else ''}"
    waits = "held with its version" if decision["decision"] == "hold" else "tried again"
    when = output.local(decision["not_before"])
    return f"{waits}, {decision['recovery_path']}, from {when} ({said})"


def _told_change(at: str | None, change: dict[str, Any] | None) -> str | None:
    """When a publication began or ended, and by which change."""
    from pipeline_assets.cli import output

    if at is None or change is None:
        return output.local(at)
    return f"{output.local(at)}, {change['kind']} by {change['actor']}: {change['reason']}"


def _print_publication(publication: dict[str, Any]) -> None:
    from pipeline_assets.cli import output

    delivery = publication["delivery"]
    output.heading(f"Publication, archive version {publication['archive_version']}")
    output.facts(
        [
            ("visible", "yes" if publication["visible"] else "no, replaced"),
            ("processing version", publication["processing_version"]),
            ("record", publication["record_id"]),
            ("from", _told_change(publication["valid_from"], publication["shown_by"])),
            ("to", _told_change(publication["valid_to"], publication["ended_by"])),
            ("content", publication["content_digest"]),
            ("thumbnail", publication["thumbnail"]),
            ("found by search", "yes" if publication["search_entry"] else "no"),
            (
                "delivery",
                None
                if delivery is None
                else f"{delivery['operation']}: {delivery['disposition']}, accepted values "
                f"{delivery['accepted_digest']}, at {output.local(delivery['delivered_at'])}",
            ),
        ],
        2,
    )
