"""`tallybook report`: the account of every expected record, and whether it adds up."""

from __future__ import annotations

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)


def report_command(
    version: VersionOption = None, state: StateOption = None, json: JsonOption = False
) -> int:
    """Account for every document of a processing version."""
    from pipeline_assets.account.report import build_report
    from pipeline_assets.account.status import status
    from pipeline_assets.cli import output
    from pipeline_assets.cli.account import (
        exit_status,
        print_outcomes,
        print_sample,
        print_waiting,
    )

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        account = build_report(context, settings.version)
        now = status(context, settings.version)
    if json:
        output.emit_json(account.as_json())
        return exit_status(account, now)
    output.table(
        "Manifests",
        (
            "manifest",
            "digest",
            "expected",
            *(account.manifests[0].dispositions if account.manifests else ()),
        ),
        (
            (entry.manifest_id, entry.digest[:12], entry.expected, *entry.dispositions.values())
            for entry in account.manifests
        ),
    )
    print_outcomes(account)
    if account.former:
        output.table(
            "Records of documents that were removed or changed",
            ("state", "records"),
            list(account.former.items()),
        )
    print_sample(account.sample)
    print_waiting(now)
    return exit_status(account, now)
