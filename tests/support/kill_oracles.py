"""What must be true of a batch version at its end, however often its workers were killed.

Three witnesses that do not know each other are compared: the provider's own record of what it ran,
the archive, and the sources. Each sentence that comes back is something lost, paid twice or
published twice.

Does not belong here: the worker (`batch_worker.py`) and what is done to it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from sqlalchemy import text

from pipeline_assets.account.export import export_entries
from pipeline_assets.account.integrity import diagnose, fix
from pipeline_assets.account.outcomes import outcomes
from pipeline_assets.account.report import build_report
from resources.context import Context, open_context
from tests.provider_emulator.world import World
from tests.support.batch_shop import BatchShop
from tests.support.batch_worker import retries_exist

_CUSTOM_ID = re.compile(r"(?P<key>[0-9a-f]{12})-(?P<index>[0-9]+)")
LOST_BEFORE_RETRIES = frozenset({"published", "retry_wait"})
"""Without retries a record whose answer got lost waits, and is accounted for."""


def violations_of(shop: BatchShop, world: World, *, spoilt: bool) -> list[str]:
    """Everything that is wrong, a sentence each; empty where the kills cost nothing.

    Args:
        shop: whose workers have ended.
        world: the provider's.
        spoilt: faults were planted that spoil answers, so that some records need another attempt.
    """
    with open_context(shop.settings(), clock=world.clock.now) as context:
        return [
            *_of_jobs(context, world, shop.provider),
            *_of_payments(context, world, shop, spoilt),
            *_of_documents(context, shop, spoilt),
            *_of_archive(context, shop),
            *_of_state(context),
        ]


def _rows(context: Context, sql: str) -> list[tuple[Any, ...]]:
    with context.ledger.read() as connection:
        return [tuple(row) for row in connection.execute(text(sql))]


def _of_jobs(context: Context, world: World, provider: str) -> list[str]:
    """Each job that the provider made belongs to one batch or canary, and each of these has one."""
    made = list(world.jobs_created[provider])
    known = [
        str(row[0])
        for table in ("batches", "canaries")
        for row in _rows(
            context, f"SELECT provider_job_id FROM {table} WHERE provider_job_id IS NOT NULL"
        )
    ]
    found = []
    if len(made) != len(set(made)):
        found.append(f"the emulator made a job twice: {made}")
    if extra := sorted(set(made) - set(known)):
        found.append(f"{len(extra)} jobs were made that no batch has: {extra}")
    if invented := sorted(set(known) - set(made)):
        found.append(f"the ledger has jobs that were never made: {invented}")
    if len(known) != len(set(known)):
        found.append("two batches have the same job")
    return found


def _of_payments(context: Context, world: World, shop: BatchShop, spoilt: bool) -> list[str]:
    """Each attempt is run once at most, and no record is tried again that has its answer."""
    executed = world.executed[shop.provider]
    found = [f"{name} was run {count} times" for name, count in executed.items() if count > 1]
    canaries = {row[0] for row in _rows(context, "SELECT batch_key FROM canaries")}
    attempts = {
        (row[0], row[1]): row[2]
        for row in _rows(
            context,
            "SELECT b.batch_key, a.attempt_no - b.first_attempt_no, a.record_no FROM attempts a "
            "JOIN batches b ON b.batch_no = a.batch_no",
        )
    }
    paid: Counter[int] = Counter()
    for name, count in executed.items():
        match = _CUSTOM_ID.fullmatch(name)
        if match is not None and match["key"] in canaries:
            continue
        record = None if match is None else attempts.get((match["key"], int(match["index"])))
        if record is None:
            found.append(f"{name} was run and is no attempt of the ledger")
        else:
            paid[record] += count
    if not spoilt:
        if set(paid.values()) != {1} or len(paid) != len(shop.titles):
            found.append(f"without a fault each record is paid once, not {sorted(paid.values())}")
        if len(attempts) != len(shop.titles):
            found.append(f"{len(attempts)} attempts at {len(shop.titles)} records without a fault")
    found += [
        f"record {row[0]} was tried again although attempt {row[1]} had succeeded"
        for row in _rows(
            context,
            "SELECT a.record_no, a.attempt_no FROM attempts a "
            "JOIN dispositions p ON p.attempt_no = a.attempt_no "
            "JOIN attempts b ON b.record_no = a.record_no AND b.attempt_no > a.attempt_no "
            "WHERE p.disposition = 'succeeded'",
        )
    ]
    return found


def _of_documents(context: Context, shop: BatchShop, spoilt: bool) -> list[str]:
    """Each document has one outcome, the account adds up, and nothing wrong is published."""
    report = build_report(context, shop.key)
    found = [f"the account: {violation}" for violation in report.violations]
    rows = Counter(row["document_id"] for row in outcomes(context, shop.key))
    if rows != Counter(shop.titles.keys()):
        found.append(f"outcomes: {dict(rows)}, expected one for each of {len(shop.titles)}")
    if sum(report.states.values()) != len(shop.titles):
        found.append(f"{report.states} are not {len(shop.titles)} documents")
    allowed = LOST_BEFORE_RETRIES if spoilt and not retries_exist() else {"published"}
    if not set(report.states) <= allowed:
        found.append(f"not everything ended published: {report.states}")
    published = {entry["document_id"]: entry["title"]["value"] for entry in export_entries(context)}
    found += [
        f"{document} is published as {title!r}"
        for document, title in published.items()
        if title != shop.titles.get(document)
    ]
    if len(published) != report.states.get("published", 0):
        found.append(f"{len(published)} documents are exported of {report.states}")
    return found


def _of_archive(context: Context, shop: BatchShop) -> list[str]:
    """Each published record has one delivery, one entry, one head and one search entry."""
    (published,) = _rows(context, "SELECT COUNT(*) FROM record_state WHERE state = 'published'")
    (deliveries,) = _rows(context, "SELECT COUNT(*), COUNT(DISTINCT record_no) FROM deliveries")
    (entries,) = _rows(
        context,
        "SELECT COUNT(*), COUNT(DISTINCT document_no), COUNT(DISTINCT record_no), "
        "COALESCE(MAX(archive_version), 1), COALESCE(MIN(archive_version), 1), COUNT(valid_to) "
        "FROM archive_entries",
    )
    (heads,) = _rows(context, "SELECT COUNT(*), COUNT(DISTINCT entry_no) FROM archive_heads")
    with context.ledger.read() as connection:
        searched = context.ledger.dialect.search_entries(connection).height
    count = published[0]
    found = []
    if deliveries != (count, count):
        found.append(f"{count} records are published by {deliveries} deliveries")
    if entries != (count, count, count, 1, 1, 0):
        found.append(f"{count} records are published as entries {entries}")
    if heads != (count, count):
        found.append(f"{count} records are published and there are {heads} heads")
    if searched != count:
        found.append(f"{count} records are published and {searched} can be searched")
    return found


def _of_state(context: Context) -> list[str]:
    """What the dead left behind can be mended, and then nothing is broken."""
    problems = diagnose(context)
    found = [f"{one.kind}: {one.what}" for one in problems if not one.fixable]
    # Search entries belong to the transaction that publishes: mending them would hide a tear.
    found += [f"{one.kind}: {one.what}" for one in problems if one.kind == "search_entries"]
    fix(context, problems)
    return found + [f"still broken: {one.what}" for one in diagnose(context)]
