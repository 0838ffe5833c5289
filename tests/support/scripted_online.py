"""An online provider of a script: what each row is answered, and when it was asked.

Belongs here: the client, its wire and a store of groups in memory. Does not belong here: what a
test expects of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from resources.providers.port import Ask, MalformedLine, Reply, ResultLine

OK = Reply(200, b"yes")


@dataclass(frozen=True)
class Sent:
    """A call: its row, when it began by the loop's time, and how many were under way with it."""

    custom_id: str
    at: float
    under_way: int


class ScriptedClient:
    """Answers rows by a script, after a while, in virtual time.

    Args:
        script: the replies to a row's calls in order; after its end, and for any other row, a
            plain success.
        takes: seconds that a call of a row takes.
        judge: asked before the script, with the row and the calls under way, where there is one.
    """

    name = "scripted"

    def __init__(
        self,
        script: Mapping[str, Iterable[Reply]] | None = None,
        takes: Callable[[str], float] = lambda _id: 1.0,
        judge: Callable[[str, int], Reply | None] = lambda _id, _under_way: None,
    ) -> None:
        self._script = {row: deque(replies) for row, replies in (script or {}).items()}
        self._takes = takes
        self._judge = judge
        self._under_way = 0
        self.sent: list[Sent] = []
        self.broken_off = 0
        self.closed = False

    @property
    def calls(self) -> Counter[str]:
        """How often each row was called."""
        return Counter(sent.custom_id for sent in self.sent)

    @property
    def most_under_way(self) -> int:
        """The most calls that were ever under way at once."""
        return max((sent.under_way for sent in self.sent), default=0)

    def account(self) -> str:
        """Return a made-up account."""
        return "account"

    def check_model(self, model: str) -> None:
        """Take every model."""

    async def answer(self, custom_id: str, model: str, body: bytes) -> Reply:
        """Answer as the script says."""
        assert not self.closed
        assert (model, body) == ("model", b"body of " + custom_id.encode())
        self._under_way += 1
        self.sent.append(Sent(custom_id, asyncio.get_running_loop().time(), self._under_way))
        judged = self._judge(custom_id, self._under_way)
        try:
            await asyncio.sleep(self._takes(custom_id))
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        finally:
            self._under_way -= 1
        if judged is not None:
            return judged
        replies = self._script.get(custom_id)
        return replies.popleft() if replies else OK

    async def close(self) -> None:
        """Note that connections were given back."""
        self.closed = True


class PlainWire:
    """Lines of the form `custom_id|status|text`, requests of the form `custom_id|body`."""

    name = "scripted"
    endpoint = "/plain"

    def body(self, ask: Ask) -> dict[str, Any]:
        """Return a body that nobody reads."""
        return {"user": ask.user}

    def broken_body(self, ask: Ask) -> dict[str, Any]:
        """Return a body that nobody reads."""
        return {"user": ask.user}

    def encode_request(self, custom_id: str, body: bytes) -> bytes:
        """Return a request line."""
        return custom_id.encode() + b"|" + body

    def decode_request(self, line: bytes) -> tuple[str, bytes]:
        """Return id and body of a request line."""
        custom_id, bar, body = line.partition(b"|")
        if not bar:
            raise MalformedLine("not a plain request line")
        return custom_id.decode(), body

    def encode_reply(self, custom_id: str, reply: Reply) -> bytes:
        """Return a result line."""
        return f"{custom_id}|{reply.status}|".encode() + reply.body

    def read_line(self, line: bytes) -> ResultLine:
        """Return a result line in the common shape."""
        custom_id, status, text = line.decode().split("|")
        return ResultLine(custom_id, int(status), text or None)


class Crash(BaseException):
    """A process that ends here; no handler of an error may get hold of it."""


@dataclass
class MemoryStore:
    """A store of groups that survives the walk, and may end the walk at any step.

    Attributes:
        crash_at: the number of the step, counted over all walks, that crashes; every action has
            one before it is durable and one after.
        lines: stored lines, each with its newline, in the order of their storing.
        starts: (group, first, count) of every start.
        calls: as reported with stored groups.
        possibly_paid: as reported with stored groups.
        doubted: rows of groups that were started again after they broke off.
        beats: how often the work showed that it goes on.
        steps: steps so far.
    """

    crash_at: int | None = None
    lines: list[bytes] = field(default_factory=list)
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    calls: int = 0
    possibly_paid: int = 0
    doubted: int = 0
    beats: int = 0
    steps: int = 0
    _finished: set[int] = field(default_factory=set)
    _open: set[int] = field(default_factory=set)
    _answered: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def finished(self) -> set[int]:
        """Return the complete groups."""
        return set(self._finished)

    def answered(self, group: int) -> set[str]:
        """Return the ids whose lines were kept."""
        assert group not in self._finished
        return set(self._answered[group])

    def start(self, group: int, first: int, count: int) -> None:
        """Mark a group as begun."""
        self._step()
        if group in self._open:
            self.doubted += count
        self._open.add(group)
        self.starts.append((group, first, count))
        self._step()

    def finish(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        """Store a complete group."""
        self._step()
        self._store(group, lines, calls, possibly_paid)
        self._finished.add(group)
        self._step()

    def keep(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        """Store a part of a group."""
        self._step()
        self._store(group, lines, calls, possibly_paid)
        self._step()

    def beat(self) -> None:
        """Count a beat."""
        self.beats += 1
        self._step()

    def _store(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        assert group in self._open
        self._open.remove(group)
        stored = lines.splitlines(keepends=True)
        self.lines += stored
        self._answered[group] |= {line.decode().split("|")[0] for line in stored}
        self.calls += calls
        self.possibly_paid += possibly_paid

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise Crash
