"""`tallybook outcomes`: what became of every file that the sources hold now."""

from __future__ import annotations

from typing import Any

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)


def outcomes_command(
    version: VersionOption = None, state: StateOption = None, json: JsonOption = False
) -> int:
    """List every document with its outcome; with --json one object a line."""
    from pipeline_assets.account.outcomes import outcomes
    from pipeline_assets.cli import output

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        rows = outcomes(context, settings.version)
        if json:
            output.emit_json_lines(rows)
        else:
            # Lines, not a table: a table has to see its last row before it prints its first.
            for row in rows:
                output.say(f"{row['state']:<16} {row['document_id']}{_why(row)}")
    return 0


def _why(row: dict[str, Any]) -> str:
    why = reason_of(row)
    return f"  ({why})" if why else ""


def reason_of(row: dict[str, Any]) -> str:
    """The rules that sent a record to a person, else the outcome's reason; empty if all is well."""
    rules = dict.fromkeys(
        f"{finding['rule']}: {finding['field']}" if finding["field"] else finding["rule"]
        for finding in row["findings"]
        if finding["severity"] == "review"
    )
    if row["state"] == "awaiting_review" and rules:
        return ", ".join(rules)
    return row["reason"] or ""
