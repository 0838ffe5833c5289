"""The facts that a filter may name: what each means, and where the ledger has it.

Belongs here: the table, one row a fact, and nothing else: `docs/selection.md` shows the same table
(a test compares them). Does not belong here: reading facts (`load.py`), and the fields of a
workload, which the workload declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from resources.ledger.transitions import RECORD

Kind = Literal["text", "digest", "number", "time", "flag", "list"]
"""What a fact can be compared with. A `list` is a set of closed words, or the values of a field
that may have several."""

Group = Literal[
    "version",
    "record",
    "present",
    "parse",
    "attempts",
    "attempt",
    "answer",
    "failure",
    "judgement",
    "review",
    "entry",
    "field",
]
"""Facts of one group are read together, by one statement a slice of records."""

Shown = Literal["value", "own", "rough", "present"]
"""How a slice tells a fact: its value; `own` (every record has another one); one leading digit of
a number; of a document's own text only whether it is there."""

DISPOSITIONS = (
    "succeeded",
    "retryable_failure",
    "permanent_failure",
    "cancelled",
    "expired",
)
DECISIONS = ("accept", "correct", "reject")
# The manifest says why an attempt was made, but for one whose records each have their own reason.
_WHY = "CASE WHEN m.replay_reason = 'by document' THEN r.replay_reason ELSE m.replay_reason END"
_STATES = tuple(sorted({state for to in RECORD.values() for state in to}))


@dataclass(frozen=True)
class Fact:
    """A fact of a record.

    Attributes:
        name: as filters name it; of a field `field.NAME`.
        kind: what it can be compared with.
        group: what it is read with.
        meaning: for people.
        sql: the expression in its group's statement; empty where it is no column of one.
        shown: how a slice tells it.
        known: every value that it can have; empty where that is not known.
    """

    name: str
    kind: Kind
    group: Group
    meaning: str
    sql: str = ""
    shown: Shown = "value"
    known: tuple[str, ...] = ()


_ALL = (
    Fact("document", "text", "record", "id of the document", "d.document_id", "own"),
    Fact("source", "text", "record", "name of the document's source", "c.name"),
    Fact("record", "text", "record", "id of the record", "r.record_id", "own"),
    Fact("checksum", "digest", "record", "SHA-256 of the bytes", "r.checksum", "own"),
    Fact("size", "number", "record", "bytes of the document", "v.bytes", "rough"),
    Fact("state", "text", "record", "state of the record now", "s.state", known=_STATES),
    Fact("reason", "text", "record", "why the record exists", "r.replay_reason"),
    Fact("removed", "flag", "present", "is the document gone from its source?"),
    Fact("changed_source", "flag", "present", "has the document other bytes now?"),
    Fact("language", "text", "parse", "language of the parsed text", "p.language"),
    Fact("pages", "number", "parse", "pages that were parsed", "p.page_count"),
    Fact("media_type", "text", "parse", "what the bytes are", "p.media_type"),
    Fact("version", "text", "version", "key of the processing version"),
    Fact("workload", "text", "version", "workload of the version"),
    Fact("prompt", "text", "version", "name of the prompt in the spec"),
    Fact("prompt_digest", "digest", "version", "SHA-256 of the prompt"),
    Fact("acceptance", "text", "version", "name of the rules and thresholds"),
    Fact("parser", "text", "version", "version of the parser"),
    Fact("schema", "number", "version", "version of the output schema"),
    Fact("attempts", "number", "attempts", "attempts so far"),
    Fact("attempt_reason", "text", "attempt", "why the attempt was made", _WHY),
    Fact("path", "text", "attempt", "its recovery path, `first` at first", "a.recovery_path"),
    Fact("batch", "text", "attempt", "id of its batch", "b.batch_id"),
    Fact("manifest", "text", "attempt", "id of its manifest", "m.manifest_id"),
    Fact("replay", "text", "attempt", "id of the replay that made it", "y.replay_id"),
    Fact("provider", "text", "attempt", "who was asked", "b.provider"),
    Fact("mode", "text", "attempt", "batch, online or embedded", "b.mode"),
    Fact("model", "text", "attempt", "the model that was asked", "b.model"),
    Fact("frozen", "time", "attempt", "when its manifest was frozen", "m.frozen_at"),
    Fact("submitted", "time", "attempt", "when its batch was handed over", "b.submitted_at"),
    Fact(
        "disposition",
        "text",
        "answer",
        "how the attempt ended",
        "p.disposition",
        known=DISPOSITIONS,
    ),
    Fact(
        "model_revision",
        "text",
        "answer",
        "the model that the provider says answered",
        "COALESCE(l.model_revision, p.model_revision)",
    ),
    Fact(
        "tokens_in",
        "number",
        "answer",
        "tokens of the request",
        "COALESCE(l.input_tokens, p.input_tokens)",
        "rough",
    ),
    Fact(
        "tokens_out",
        "number",
        "answer",
        "tokens of the answer",
        "COALESCE(l.output_tokens, p.output_tokens)",
        "rough",
    ),
    Fact("collected", "time", "answer", "when its result was stored", "f.stored_at"),
    Fact("failure", "text", "failure", "class of the newest failure", "p.failure_class"),
    Fact("finding", "list", "judgement", "rules that found something"),
    Fact("finding_field", "list", "judgement", "fields that something was found in"),
    Fact("repaired", "list", "judgement", "repairs of the answer's form"),
    Fact("decision", "text", "review", "what a reviewer decided", known=DECISIONS),
    Fact("reviewed_by", "text", "review", "who decided"),
    Fact("corrected", "flag", "review", "did a reviewer correct a value?"),
    Fact("published", "time", "entry", "when its newest entry of the archive began"),
    Fact("visible", "flag", "entry", "does the archive show it now?"),
)
FACTS: Mapping[str, Fact] = MappingProxyType({fact.name: fact for fact in _ALL})
"""Every fact but the fields of a workload, by name."""
OF_FIELD = "field."
"""Begins the full name of a field."""
