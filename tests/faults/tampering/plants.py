"""What is planted: one kind of tampering or loss each, and the row that the audit must name.

Belongs here: the plants. Does not belong here: the states (`states.py`) and judging the audit
(`series.py`). A plant changes what somebody with access to database and files could change; those
that recompute digests stand for somebody who knows how they are made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import Connection, text

from resources.artifacts import Kind, Sidecar
from resources.context import Context
from resources.contracts import MANIFEST, read_frame, store_frame
from resources.ledger.moves import move_digest

_DIGESTED = (
    *("chain", "machine", "subject_no", "from_state", "to_state", "reason", "actor", "cause"),
    *("moved_at", "members", "members_digest", "previous_digest"),
)


@dataclass(frozen=True)
class Hands:
    """What somebody who tampers can reach."""

    context: Context

    def change(self, statement: str, **values: Any) -> int:
        """Change rows; returns how many."""
        with self.context.ledger.write() as connection:
            return connection.execute(text(statement), values).rowcount

    def one(self, statement: str, **values: Any) -> Any:
        """The first row of a query."""
        with self.context.ledger.read() as connection:
            row = connection.execute(text(statement), values).first()
        assert row is not None, statement
        return row if len(row) > 1 else row[0]

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """All rows of a query."""
        with self.context.ledger.read() as connection:
            return list(connection.execute(text(statement), values).all())

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """For what needs more than one statement."""
        with self.context.ledger.write() as connection:
            yield connection

    def file(self, kind: Kind, digest: str) -> Path:
        """An artifact's file."""
        return self.context.artifacts.require(kind, digest)

    def flip(self, kind: Kind, digest: str, at: float = 0.5) -> None:
        """Change one byte of an artifact."""
        path = self.file(kind, digest)
        data = bytearray(path.read_bytes())
        place = int((len(data) - 1) * at)
        data[place] ^= 0x01
        path.write_bytes(bytes(data))


@dataclass(frozen=True)
class Plant:
    """One kind of tampering.

    Attributes:
        name: what is done.
        act: does it, and returns what a finding's subject must hold.
        in_sql: it changes the database, so it is planted in each kind of database.
    """

    name: str
    act: Callable[[Hands], str]
    in_sql: bool


PLANTS: list[Plant] = []


def plant(name: str, *, in_sql: bool = True) -> Callable[[Callable[[Hands], str]], None]:
    """Add a plant."""

    def add(act: Callable[[Hands], str]) -> None:
        PLANTS.append(Plant(name, act, in_sql))

    return add


# ---- the journal -------------------------------------------------------------------------------

_SOME_MOVE = "SELECT MIN(move_no) FROM moves WHERE machine = 'record' AND to_state = 'prepared'"


@plant("edit the reason of a move")
def _(hands: Hands) -> str:
    number = hands.one(_SOME_MOVE)
    hands.change("UPDATE moves SET reason = 'something else' WHERE move_no = :n", n=number)
    return f"move {number} "


@plant("edit who made a move")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MAX(move_no) FROM moves WHERE machine = 'batch'")
    hands.change("UPDATE moves SET actor = 'nobody' WHERE move_no = :n", n=number)
    return f"move {number} "


@plant("edit a move and give it a digest that fits")
def _(hands: Hands) -> str:
    number, chain = hands.one(
        "SELECT move_no, chain FROM moves WHERE move_no = "
        "(SELECT MIN(move_no) FROM moves WHERE machine = 'record')"
    )
    following = hands.one(
        "SELECT MIN(move_no) FROM moves WHERE chain = :c AND move_no > :n", c=chain, n=number
    )
    _rewrite(hands, number, reason="something else")
    return f"move {following} "


@plant("delete a member of a move")
def _(hands: Hands) -> str:
    number = hands.one(_SOME_MOVE)
    record = hands.one("SELECT MIN(record_no) FROM move_members WHERE move_no = :n", n=number)
    hands.change(
        "DELETE FROM move_members WHERE move_no = :n AND record_no = :r", n=number, r=record
    )
    return f"move {number} "


@plant("add a member to a move")
def _(hands: Hands) -> str:
    number, record = hands.one(
        "SELECT m.move_no, r.record_no FROM moves m, records r WHERE m.machine = 'record' "
        "AND m.to_state = 'published' AND NOT EXISTS (SELECT 1 FROM move_members k "
        "WHERE k.move_no = m.move_no AND k.record_no = r.record_no) ORDER BY 1, 2 LIMIT 1"
    )
    hands.change(
        "INSERT INTO move_members (move_no, record_no) VALUES (:n, :r)", n=number, r=record
    )
    return f"move {number} "


@plant("delete a move from the middle of a chain")
def _(hands: Hands) -> str:
    number, chain = hands.one(
        "SELECT move_no, chain FROM moves WHERE machine = 'batch' AND to_state = 'submitting' "
        "ORDER BY move_no LIMIT 1"
    )
    following = hands.one(
        "SELECT MIN(move_no) FROM moves WHERE chain = :c AND move_no > :n", c=chain, n=number
    )
    hands.change("DELETE FROM moves WHERE move_no = :n", n=number)
    return f"move {following} "


@plant("cut the newest moves off a chain and put the states back")
def _(hands: Hands) -> str:
    number, chain = _last_move(hands, "published")
    _undo(hands, number)
    return f"chain {chain}"


@plant("write a whole chain anew")
def _(hands: Hands) -> str:
    chain = hands.one("SELECT MIN(chain) FROM moves WHERE machine = 'version'")
    number = hands.one("SELECT MIN(move_no) FROM moves WHERE chain = :c", c=chain)
    _rewrite(hands, number, actor="somebody else")
    return f"chain {chain}"


@plant("exchange the order of two moves")
def _(hands: Hands) -> str:
    chain = hands.one("SELECT MIN(chain) FROM moves WHERE machine = 'record'")
    first, second = hands.one(
        "SELECT MIN(move_no), MAX(move_no) FROM moves WHERE chain = :c AND machine = 'record' "
        "AND to_state IN ('queued', 'prepared')",
        c=chain,
    )
    for table in ("moves", "move_members"):
        for source, target in ((first, -1), (second, first), (-1, second)):
            hands.change(f"UPDATE {table} SET move_no = :t WHERE move_no = :s", s=source, t=target)
    return hands.one(
        "SELECT r.record_id FROM move_members k JOIN records r ON r.record_no = k.record_no "
        "WHERE k.move_no = :n ORDER BY r.record_no LIMIT 1",
        n=first,
    )


@plant("add a move that no table allows, with digests that fit")
def _(hands: Hands) -> str:
    record, chain = hands.one(
        "SELECT k.record_no, m.chain FROM moves m JOIN move_members k ON k.move_no = m.move_no "
        "WHERE m.to_state = 'published' ORDER BY m.move_no LIMIT 1"
    )
    number = _append(hands, chain, record, "published", "accepted")
    hands.change(
        "UPDATE record_state SET state = 'accepted', version = version + 1 WHERE record_no = :r",
        r=record,
    )
    return f"move {number}"


@plant("add a membership of a move that does not exist")
def _(hands: Hands) -> str:
    hands.change(
        "INSERT INTO move_members (move_no, record_no) SELECT 999999, MIN(record_no) FROM records"
    )
    return "move 999999"


# ---- states ------------------------------------------------------------------------------------


@plant("change the state of a record")
def _(hands: Hands) -> str:
    number, name = _published(hands)
    hands.change("UPDATE record_state SET state = 'rejected' WHERE record_no = :r", r=number)
    return name


@plant("change the version of a record's state")
def _(hands: Hands) -> str:
    number, name = _published(hands)
    hands.change("UPDATE record_state SET version = version + 1 WHERE record_no = :r", r=number)
    return name


@plant("delete the state of a record")
def _(hands: Hands) -> str:
    number, name = _published(hands)
    hands.change("DELETE FROM record_state WHERE record_no = :r", r=number)
    return name


@plant("delete a record")
def _(hands: Hands) -> str:
    number, name = _published(hands)
    hands.change("DELETE FROM records WHERE record_no = :r", r=number)
    return name


@plant("change the state of a batch")
def _(hands: Hands) -> str:
    name = hands.one("SELECT MIN(batch_id) FROM batches WHERE state LIKE 'completed%%'")
    hands.change("UPDATE batches SET state = 'retry_required' WHERE batch_id = :b", b=name)
    return f"batch {name}"


@plant("change the state of a version")
def _(hands: Hands) -> str:
    name = hands.one("SELECT MIN(key) FROM processing_versions")
    hands.change("UPDATE processing_versions SET state = 'held' WHERE key = :k", k=name)
    return f"version {name}"


# ---- files -------------------------------------------------------------------------------------


@plant("flip a byte of a request file", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(request_artifact) FROM batches")
    hands.flip("request", digest)
    return f"request artifact {digest[:16]}"


@plant("flip a byte of a result file", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(artifact) FROM result_files")
    hands.flip("result", digest)
    return f"result artifact {digest[:16]}"


@plant("flip a byte of a manifest", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(artifact) FROM manifests")
    hands.flip("manifest", digest)
    return f"manifest artifact {digest[:16]}"


@plant("flip a byte of a frame of judged values", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(staging_artifact) FROM batches")
    hands.flip("frame", digest)
    return f"frame artifact {digest[:16]}"


@plant("flip a byte of a source document", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(checksum) FROM records")
    hands.flip("source", digest)
    return f"source artifact {digest[:16]}"


@plant("delete a result file", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MAX(artifact) FROM result_files")
    hands.file("result", digest).unlink()
    return f"result artifact {digest[:16]}"


@plant("delete a thumbnail", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MAX(thumbnail) FROM archive_entries WHERE valid_to IS NULL")
    hands.file("thumbnail", digest).unlink()
    return f"thumbnail artifact {digest[:16]}"


@plant("cut the end off a text", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(text_pack) FROM parses WHERE text_pack IS NOT NULL")
    path = hands.file("text", digest)
    path.write_bytes(path.read_bytes()[:-20])
    return f"text artifact {digest[:16]}"


@plant("change a result file and say that an erasure did", in_sql=False)
def _(hands: Hands) -> str:
    import msgspec

    digest = hands.one("SELECT MIN(artifact) FROM result_files")
    hands.flip("result", digest)
    path = hands.file("result", digest)
    present = hashlib.sha256(path.read_bytes()).hexdigest()
    beside = path.with_name(f"{digest}.redacted")
    beside.write_bytes(msgspec.json.encode(Sidecar(present, (1,))))
    return f"result artifact {digest[:16]}"


@plant("flip a byte of a closed report's page", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT page FROM reports WHERE page IS NOT NULL")
    hands.flip("report", digest)
    return f"report artifact {digest[:16]}"


@plant("delete a report's outcomes", in_sql=False)
def _(hands: Hands) -> str:
    digest = hands.one("SELECT MIN(outcomes) FROM reports")
    hands.file("report", digest).unlink()
    return f"report artifact {digest[:16]}"


# ---- manifests, attempts, results --------------------------------------------------------------


@plant("replace a manifest's digest everywhere")
def _(hands: Hands) -> str:
    name = hands.one("SELECT MIN(manifest_id) FROM manifests")
    hands.change("UPDATE manifests SET digest = :d WHERE manifest_id = :m", d="a" * 64, m=name)
    hands.change(
        "UPDATE batches SET manifest_digest = :d WHERE manifest_no = "
        "(SELECT manifest_no FROM manifests WHERE manifest_id = :m)",
        d="a" * 64,
        m=name,
    )
    return f"manifest {name}"


@plant("put another manifest file in the place of one")
def _(hands: Hands) -> str:
    name, artifact = hands.one("SELECT manifest_id, artifact FROM manifests ORDER BY 1 LIMIT 1")
    rows = read_frame(MANIFEST, hands.file("manifest", artifact))
    changed = rows.with_columns(
        source_checksum=pl.when(pl.int_range(pl.len()) == 0)
        .then(pl.lit("b" * 64))
        .otherwise("source_checksum")
    )
    digest = store_frame(hands.context.artifacts, "manifest", MANIFEST, [changed]).digest
    hands.change("UPDATE manifests SET artifact = :a WHERE manifest_id = :m", a=digest, m=name)
    return str(rows["record_id"][0])


@plant("let a manifest expect one record more")
def _(hands: Hands) -> str:
    name = hands.one("SELECT MIN(manifest_id) FROM manifests")
    hands.change("UPDATE manifests SET expected = expected + 1 WHERE manifest_id = :m", m=name)
    return f"manifest {name}"


@plant("change an attempt's request digest")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM attempts")
    hands.change(
        "UPDATE attempts SET request_digest = :d WHERE attempt_no = :a", d="c" * 64, a=number
    )
    return f"attempt {number} "


@plant("change where an attempt's request stands")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM attempts")
    hands.change(
        "UPDATE attempts SET request_offset = request_offset + 1 WHERE attempt_no = :a", a=number
    )
    return f"attempt {number} "


@plant("delete an attempt")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MAX(attempt_no) FROM dispositions")
    name = hands.one(
        "SELECT r.record_id FROM attempts a JOIN records r ON r.record_no = a.record_no "
        "WHERE a.attempt_no = :a",
        a=number,
    )
    hands.change("DELETE FROM attempts WHERE attempt_no = :a", a=number)
    return name


@plant("give an attempt to another record")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM attempts")
    name = hands.one(
        "SELECT r.record_id FROM attempts a JOIN records r ON r.record_no = a.record_no "
        "WHERE a.attempt_no = :a",
        a=number,
    )
    hands.change(
        "UPDATE attempts SET record_no = (SELECT MAX(record_no) FROM records) "
        "WHERE attempt_no = :a",
        a=number,
    )
    return name


@plant("delete a disposition")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM dispositions")
    hands.change("DELETE FROM dispositions WHERE attempt_no = :a", a=number)
    return f"attempt {number} "


@plant("change a disposition")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MAX(attempt_no) FROM dispositions WHERE disposition = 'succeeded'")
    hands.change(
        "UPDATE dispositions SET disposition = 'permanent_failure', failure_class = 'refused' "
        "WHERE attempt_no = :a",
        a=number,
    )
    return f"attempt {number} "


@plant("change the tokens of an answer")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM dispositions")
    hands.change(
        "UPDATE dispositions SET output_tokens = COALESCE(output_tokens, 0) + 7 "
        "WHERE attempt_no = :a",
        a=number,
    )
    return f"attempt {number} "


@plant("insert the row of an unknown result line")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(result_file_no) FROM result_files")
    hands.change(
        "INSERT INTO results (result_file_no, line, attempt_no, line_offset, line_length, anomaly) "
        "VALUES (:f, 77, NULL, 0, 10, 'unknown_id')",
        f=number,
    )
    return "line 77 "


@plant("delete the row of a result line")
def _(hands: Hands) -> str:
    file_no, line = hands.one(
        "SELECT result_file_no, line FROM results ORDER BY result_file_no, line LIMIT 1"
    )
    hands.change("DELETE FROM results WHERE result_file_no = :f AND line = :l", f=file_no, l=line)
    return f"line {line} of file {file_no} "


@plant("give a result line to another attempt")
def _(hands: Hands) -> str:
    file_no, line = hands.one(
        "SELECT result_file_no, line FROM results ORDER BY result_file_no, line LIMIT 1"
    )
    hands.change(
        "UPDATE results SET attempt_no = (SELECT MAX(attempt_no) FROM attempts) "
        "WHERE result_file_no = :f AND line = :l",
        f=file_no,
        l=line,
    )
    return f"line {line} of result file"


@plant("put a changed result file in the place of one")
def _(hands: Hands) -> str:
    number, artifact, batch = hands.one(
        "SELECT f.result_file_no, f.artifact, b.batch_id FROM result_files f "
        "JOIN batches b ON b.batch_no = f.batch_no ORDER BY f.result_file_no LIMIT 1"
    )
    data = hands.file("result", artifact).read_bytes()
    stored = hands.context.artifacts.put("result", data.replace(b"WP-100", b"WP-999"))
    assert stored.digest != artifact
    hands.change(
        "UPDATE result_files SET artifact = :a WHERE result_file_no = :f",
        a=stored.digest,
        f=number,
    )
    return f" of batch {batch}"


@plant("exchange the answers of two requests, with every place and digest of their file")
def _(hands: Hands) -> str:
    number, artifact, batch = hands.one(
        "SELECT f.result_file_no, f.artifact, b.batch_id FROM result_files f "
        "JOIN batches b ON b.batch_no = f.batch_no WHERE f.lines > 1 "
        "ORDER BY f.result_file_no LIMIT 1"
    )
    lines = hands.file("result", artifact).read_bytes().splitlines(keepends=True)
    answers = [json.loads(line) for line in lines]
    answers[0]["custom_id"], answers[1]["custom_id"] = (
        answers[1]["custom_id"],
        answers[0]["custom_id"],
    )
    forged = [json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in answers[:2]]
    forged = [forged[1], forged[0], *lines[2:]]
    stored = hands.context.artifacts.put("result", b"".join(forged))
    hands.change(
        "UPDATE result_files SET artifact = :a, bytes = :b WHERE result_file_no = :f",
        a=stored.digest,
        b=sum(map(len, forged)),
        f=number,
    )
    offset = 0
    places = hands.rows(
        "SELECT line FROM results WHERE result_file_no = :f ORDER BY line_offset", f=number
    )
    for (line,), data in zip(places, forged, strict=True):
        hands.change(
            "UPDATE results SET line_offset = :o, line_length = :l "
            "WHERE result_file_no = :f AND line = :n",
            o=offset,
            l=len(data.rstrip(b"\n")),
            f=number,
            n=line,
        )
        offset += len(data)
    return f" of batch {batch}"


# ---- judgements, archive, deliveries -----------------------------------------------------------


@plant("change the digest of judged values")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM judgements")
    hands.change(
        "UPDATE judgements SET values_digest = :d WHERE attempt_no = :a", d="d" * 64, a=number
    )
    return f"attempt {number} "


@plant("change what the rules decided")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM judgements WHERE outcome = 'awaiting_review'")
    hands.change("UPDATE judgements SET outcome = 'accepted' WHERE attempt_no = :a", a=number)
    return f"attempt {number} "


@plant("delete a judgement")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(attempt_no) FROM judgements")
    hands.change("DELETE FROM judgements WHERE attempt_no = :a", a=number)
    return f"attempt {number} "


_ENTRY_COLUMNS = (
    "document_no, record_no, version_no, promotion, content, content_digest, thumbnail, "
    "valid_from, valid_to, change_no, closed_by"
)


@plant("add a second archive entry to a document")
def _(hands: Hands) -> str:
    entry, name = _visible(hands)
    hands.change(
        f"INSERT INTO archive_entries (entry_no, archive_version, {_ENTRY_COLUMNS}) "
        f"SELECT 9999, archive_version + 1, {_ENTRY_COLUMNS} FROM archive_entries "
        "WHERE entry_no = :e",
        e=entry,
    )
    return f"of document {name}"


@plant("delete an archive entry that was replaced")
def _(hands: Hands) -> str:
    entry, name = hands.one(
        "SELECT e.entry_no, d.document_id FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no WHERE e.valid_to IS NOT NULL "
        "ORDER BY e.entry_no LIMIT 1"
    )
    hands.change("DELETE FROM archive_entries WHERE entry_no = :e", e=entry)
    hands.change("DELETE FROM deliveries WHERE entry_no = :e", e=entry)
    return f"document {name}"


@plant("show an earlier entry again, as a new one with its delivery")
def _(hands: Hands) -> str:
    entry, document, change = hands.one(
        "SELECT e.entry_no, e.document_no, (SELECT MAX(change_no) FROM archive_changes) "
        "FROM archive_entries e WHERE e.valid_to IS NOT NULL ORDER BY e.entry_no LIMIT 1"
    )
    at = "2098-01-01T00:00:00.000000Z"
    with hands.connection() as connection:
        for statement in (
            "UPDATE archive_entries SET valid_to = :at, closed_by = :c WHERE entry_no = "
            "(SELECT entry_no FROM archive_heads WHERE document_no = :d)",
            f"INSERT INTO archive_entries (entry_no, archive_version, {_ENTRY_COLUMNS}) "
            "SELECT (SELECT MAX(entry_no) + 1 FROM archive_entries), (SELECT MAX(archive_version) "
            "+ 1 FROM archive_entries WHERE document_no = :d), document_no, record_no, version_no, "
            "promotion + 1, content, content_digest, thumbnail, :at, NULL, :c, NULL "
            "FROM archive_entries WHERE entry_no = :e",
            "INSERT INTO deliveries (record_no, operation, request_digest, accepted_digest, "
            "promotion, disposition, entry_no, delivered_at) SELECT record_no, operation, "
            "request_digest, accepted_digest, promotion + 1, disposition, "
            "(SELECT MAX(entry_no) FROM archive_entries), :at FROM deliveries WHERE entry_no = :e",
            "UPDATE archive_heads SET entry_no = (SELECT MAX(entry_no) FROM archive_entries) "
            "WHERE document_no = :d",
        ):
            connection.execute(text(statement), {"at": at, "c": change, "d": document, "e": entry})
    return f"change {change} of the archive"


@plant("change when an earlier entry became visible")
def _(hands: Hands) -> str:
    entry = hands.one("SELECT MIN(entry_no) FROM archive_entries WHERE valid_to IS NOT NULL")
    hands.change(
        "UPDATE archive_entries SET valid_from = '2001-01-01T00:00:00.000000Z' WHERE entry_no = :e",
        e=entry,
    )
    return "archive entries"


@plant("delete a delivery")
def _(hands: Hands) -> str:
    entry, name = _visible(hands)
    hands.change("DELETE FROM deliveries WHERE entry_no = :e", e=entry)
    return f"of document {name}"


@plant("deliver twice")
def _(hands: Hands) -> str:
    entry, name = _visible(hands)
    hands.change(
        "INSERT INTO deliveries (record_no, operation, request_digest, accepted_digest, promotion, "
        "disposition, entry_no, delivered_at) SELECT record_no, operation, request_digest, "
        "accepted_digest, promotion + 1, disposition, entry_no, delivered_at FROM deliveries "
        "WHERE entry_no = :e",
        e=entry,
    )
    return f"of document {name}"


@plant("change a delivery's key, so that it would be delivered again")
def _(hands: Hands) -> str:
    entry, record = hands.one(
        "SELECT y.entry_no, r.record_id FROM deliveries y JOIN archive_heads h "
        "ON h.entry_no = y.entry_no JOIN records r ON r.record_no = y.record_no "
        "ORDER BY y.entry_no LIMIT 1"
    )
    hands.change(
        "UPDATE deliveries SET request_digest = :d WHERE entry_no = :e", d="e" * 64, e=entry
    )
    return f"record {record}"


@plant("change published content")
def _(hands: Hands) -> str:
    entry, name = _visible(hands)
    hands.change(
        "UPDATE archive_entries SET content = REPLACE(content, 'found', 'absent') "
        "WHERE entry_no = :e",
        e=entry,
    )
    return f"of document {name}"


@plant("change published content with every digest of it")
def _(hands: Hands) -> str:
    entry, name = _visible(hands)
    content = hands.one("SELECT content FROM archive_entries WHERE entry_no = :e", e=entry)
    forged = content.replace("en", "de")
    digest = hashlib.sha256(forged.encode()).hexdigest()
    hands.change(
        "UPDATE archive_entries SET content = :c, content_digest = :d WHERE entry_no = :e",
        c=forged,
        d=digest,
        e=entry,
    )
    hands.change(
        "UPDATE deliveries SET accepted_digest = :d WHERE entry_no = :e", d=digest, e=entry
    )
    return f"of document {name}"


@plant("drop a search entry")
def _(hands: Hands) -> str:
    entry, name = _visible(hands)
    with hands.connection() as connection:
        dialect = hands.context.ledger.dialect
        dialect.stage(connection, "stage_dropped", pl.DataFrame({"entry_no": [entry]}))
        dialect.drop_search(connection, "stage_dropped")
    return f"document {name}"


@plant("show an earlier entry")
def _(hands: Hands) -> str:
    entry, document, name = hands.one(
        "SELECT e.entry_no, e.document_no, d.document_id FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no WHERE e.valid_to IS NOT NULL "
        "ORDER BY e.entry_no LIMIT 1"
    )
    hands.change(
        "UPDATE archive_heads SET entry_no = :e WHERE document_no = :d", e=entry, d=document
    )
    return f"of document {name}"


@plant("let two entries be valid at once")
def _(hands: Hands) -> str:
    entry, name = hands.one(
        "SELECT e.entry_no, d.document_id FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no WHERE e.valid_to IS NOT NULL "
        "ORDER BY e.entry_no LIMIT 1"
    )
    hands.change(
        "UPDATE archive_entries SET valid_to = '2099-01-01T00:00:00.000000Z' WHERE entry_no = :e",
        e=entry,
    )
    return f"of document {name}"


# ---- reviews and reports -----------------------------------------------------------------------

_DECIDED = "SELECT MIN(review_no) FROM reviews WHERE kind = 'findings' AND decision = 'correct'"


@plant("edit a review's decision")
def _(hands: Hands) -> str:
    number = hands.one(_DECIDED)
    hands.change("UPDATE reviews SET decision = 'accept' WHERE review_no = :r", r=number)
    return f"review {number}"


@plant("edit who decided a review, in the review and its act")
def _(hands: Hands) -> str:
    number = hands.one(_DECIDED)
    hands.change("UPDATE reviews SET reviewer = 'mallory' WHERE review_no = :r", r=number)
    hands.change("UPDATE review_acts SET who = 'mallory' WHERE review_no = :r", r=number)
    return f"review {number}"


@plant("edit why a review was decided, in the review and its act")
def _(hands: Hands) -> str:
    number = hands.one(_DECIDED)
    hands.change("UPDATE reviews SET reason = 'no reason' WHERE review_no = :r", r=number)
    hands.change("UPDATE review_acts SET reason = 'no reason' WHERE review_no = :r", r=number)
    return f"review {number}"


@plant("delete a decided review with its acts")
def _(hands: Hands) -> str:
    number, record = hands.one(
        "SELECT w.review_no, r.record_id FROM reviews w JOIN records r "
        "ON r.record_no = w.record_no WHERE w.decision = 'correct' ORDER BY 1 LIMIT 1"
    )
    hands.change("DELETE FROM reviews WHERE review_no = :r", r=number)
    hands.change("DELETE FROM review_acts WHERE review_no = :r", r=number)
    return f"record {record}"


@plant("delete an act of a review")
def _(hands: Hands) -> str:
    number = hands.one(_DECIDED)
    hands.change("DELETE FROM review_acts WHERE review_no = :r", r=number)
    return f"review {number}"


@plant("change the values that a reviewer gave")
def _(hands: Hands) -> str:
    number = hands.one(_DECIDED)
    hands.change(
        "UPDATE reviews SET corrected_content = REPLACE(corrected_content, 'KS-8', 'KS-1') "
        "WHERE review_no = :r",
        r=number,
    )
    return f"review {number}"


@plant("put another report in the place of a closed one")
def _(hands: Hands) -> str:
    closed = hands.one("SELECT MAX(report_no) FROM report_closings")
    other = hands.one("SELECT artifact FROM reports WHERE report_no <> :n", n=closed)
    path = hands.file("report", other)
    forged = hands.context.artifacts.put("report", path.read_bytes().replace(b"true", b"false", 1))
    hands.change("UPDATE reports SET artifact = :a WHERE report_no = :n", a=forged.digest, n=closed)
    return f"closed report {closed}"


@plant("put another page in the place of a closed report's")
def _(hands: Hands) -> str:
    number, page = hands.one("SELECT report_no, page FROM reports WHERE page IS NOT NULL")
    shown = hands.file("report", page).read_bytes()
    forged = hands.context.artifacts.put("report", shown.replace(b"published", b"Published", 1))
    assert forged.digest != page
    hands.change("UPDATE reports SET page = :p WHERE report_no = :n", p=forged.digest, n=number)
    return "kept reports of version"


@plant("change when a kept report says that it was made, and its row with it")
def _(hands: Hands) -> str:
    number, artifact = hands.one("SELECT report_no, artifact FROM reports ORDER BY 1 LIMIT 1")
    told = hands.file("report", artifact).read_bytes()
    forged = hands.context.artifacts.put(
        "report", told.replace(b'"made_at": "20', b'"made_at": "19')
    )
    assert forged.digest != artifact
    hands.change("UPDATE reports SET artifact = :a WHERE report_no = :n", a=forged.digest, n=number)
    return "kept reports of version"


@plant("change the root of a report's outcomes")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MIN(report_no) FROM reports")
    hands.change("UPDATE reports SET merkle_root = :d WHERE report_no = :n", d="f" * 64, n=number)
    return f"report {number}"


@plant("edit who closed a report")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MAX(report_no) FROM report_closings")
    hands.change("UPDATE report_closings SET closed_by = 'mallory' WHERE report_no = :n", n=number)
    return f"report {number}"


@plant("delete the closing of a report")
def _(hands: Hands) -> str:
    number = hands.one("SELECT MAX(report_no) FROM report_closings")
    hands.change("DELETE FROM report_closings WHERE report_no = :n", n=number)
    return f"report {number}"


# ---- what several plants need ------------------------------------------------------------------


def _published(hands: Hands) -> tuple[int, str]:
    """A published record: its number and id."""
    row = hands.one(
        "SELECT r.record_no, r.record_id FROM records r JOIN record_state s "
        "ON s.record_no = r.record_no WHERE s.state = 'published' ORDER BY r.record_no LIMIT 1"
    )
    # Of a record whose row is gone only the number is left; both name it.
    return int(row[0]), str(row[1])


def _visible(hands: Hands) -> tuple[int, str]:
    """A visible entry: its number and its document."""
    row = hands.one(
        "SELECT h.entry_no, d.document_id FROM archive_heads h "
        "JOIN documents d ON d.document_no = h.document_no ORDER BY h.entry_no LIMIT 1"
    )
    return int(row[0]), str(row[1])


def _last_move(hands: Hands, to_state: str) -> tuple[int, str]:
    """The newest move of a chain that ended with records going to a state."""
    row = hands.one(
        "SELECT m.move_no, m.chain FROM moves m WHERE m.machine = 'record' AND m.to_state = :s "
        "AND NOT EXISTS (SELECT 1 FROM moves n WHERE n.chain = m.chain AND n.move_no > m.move_no) "
        "ORDER BY m.move_no DESC LIMIT 1",
        s=to_state,
    )
    return int(row[0]), str(row[1])


def _undo(hands: Hands, number: int) -> None:
    """Take a move back as if it had never been made, as far as journal and states go."""
    hands.change(
        "UPDATE record_state SET version = version - 1, state = "
        "(SELECT from_state FROM moves WHERE move_no = :n) WHERE record_no IN "
        "(SELECT record_no FROM move_members WHERE move_no = :n)",
        n=number,
    )
    hands.change("DELETE FROM move_members WHERE move_no = :n", n=number)
    hands.change("DELETE FROM moves WHERE move_no = :n", n=number)


def _rewrite(hands: Hands, number: int, **changes: str) -> None:
    """Change a move and give it the digest that it would have had."""
    with hands.connection() as connection:
        row = connection.execute(
            text("SELECT * FROM moves WHERE move_no = :n"), {"n": number}
        ).mappings()
        known = {**next(iter(row)), **changes}
        digest = move_digest({name: known[name] for name in _DIGESTED})
        sets = ", ".join(f"{name} = :{name}" for name in changes)
        connection.execute(
            text(f"UPDATE moves SET {sets}, digest = :digest WHERE move_no = :n"),
            {**changes, "digest": digest, "n": number},
        )


def _append(hands: Hands, chain: str, record: int, source: str, target: str) -> int:
    """Add a move of one record to the end of a chain, with every digest right."""
    from resources.ledger.frames import digest_of_members

    with hands.connection() as connection:
        newest = connection.execute(
            text("SELECT * FROM moves WHERE chain = :c ORDER BY move_no DESC LIMIT 1"), {"c": chain}
        ).mappings()
        last = dict(next(iter(newest)))
        row = last | {
            "machine": "record",
            "subject_no": None,
            "from_state": source,
            "to_state": target,
            "members": 1,
            "members_digest": digest_of_members(pl.Series([record], dtype=pl.Int64)),
            "previous_digest": last["digest"],
        }
        number = connection.execute(text("SELECT MAX(move_no) + 1 FROM moves")).scalar_one()
        row |= {
            "move_no": number,
            "digest": move_digest({name: row[name] for name in _DIGESTED}),
        }
        columns = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO moves ({columns}) VALUES ({marks})"), row)
        connection.execute(
            text("INSERT INTO move_members (move_no, record_no) VALUES (:n, :r)"),
            {"n": number, "r": record},
        )
    return int(number)
