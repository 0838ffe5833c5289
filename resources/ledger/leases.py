"""Leases: who may commit a step now, proven by a fencing token.

Belongs here: taking, renewing, releasing and fencing. Does not belong here: deciding which
steps need a lease (the stages).

A token grows each time a lease changes hands, so the late commit of a worker whose lease was
taken over carries an old token and is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import IntegrityError

from resources.clock import to_text
from resources.ledger.alerts import raise_alert
from resources.ledger.engine import Ledger
from resources.ledger.errors import LedgerError
from resources.ledger.schema import leases, refused_commits

LEASE_SECONDS = 300
"""How long a lease lasts unless renewed: above the longest shard transaction by far, and short
enough that a dead worker's step is not blocked for long. Longer steps keep a `Heartbeat`."""

# Every step of every worker runs these: made once, they cost a third of what building them does.
_TAKE = text(
    "UPDATE leases SET owner = :owner, token = token + 1, acquired_at = :at, "
    "expires_at = :until WHERE name = :name AND (expires_at <= :at OR owner = :owner)"
)
_LOOK = text("SELECT owner, token, expires_at FROM leases WHERE name = :name")
_MOVE_EXPIRY = text("UPDATE leases SET expires_at = :until WHERE name = :name AND token = :token")
_SEAL = text("UPDATE leases SET committed_token = :token WHERE name = :name AND token = :token")


@dataclass(frozen=True)
class Lease:
    """A lease that was taken: its name, its owner and the token to commit with."""

    name: str
    owner: str
    token: int


class LeaseHeld(Exception):
    """Another worker holds the lease and it has not expired."""

    def __init__(self, name: str, owner: str, expires_at: str) -> None:
        self.owner = owner
        super().__init__(
            f"{name} is being worked on by {owner} until {expires_at}. Wait for it, or run "
            "`tallybook doctor --fix` if that worker is dead."
        )


class LeaseLost(Exception):
    """The lease changed hands before the commit, which was refused."""

    why = "lost"

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        super().__init__(
            f"{lease.owner} lost {lease.name} (token {lease.token}) to another worker; its commit "
            "was refused and nothing was written. The other worker goes on with the step."
        )


class LeaseExpired(LeaseLost):
    """The lease ran out before the commit, which was refused though nobody took it over yet."""

    why = "expired"

    def __init__(self, lease: Lease, expires_at: str) -> None:
        self.lease = lease
        Exception.__init__(
            self,
            f"the lease of {lease.owner} on {lease.name} ran out at {expires_at}, so its commit "
            "was refused and nothing was written. Run again; if it recurs, the step is too long "
            "for its lease or the machine was suspended.",
        )


def acquire(ledger: Ledger, name: str, owner: str, seconds: int = LEASE_SECONDS) -> Lease:
    """Take a free, expired or own lease; the token is one more than ever before.

    Raises:
        LeaseHeld: another owner holds it.
    """
    now = ledger.clock()
    at, until = to_text(now), to_text(now + timedelta(seconds=seconds))
    try:
        with ledger.write() as connection:
            taken = connection.execute(
                _TAKE, {"owner": owner, "at": at, "until": until, "name": name}
            ).rowcount
            row = connection.execute(_LOOK, {"name": name}).first()
            if row is None:
                connection.execute(
                    leases.insert().values(
                        name=name, owner=owner, token=1, acquired_at=at, expires_at=until
                    )
                )
                return Lease(name, owner, 1)
            if not taken:
                raise LeaseHeld(name, row.owner, row.expires_at)
            return Lease(name, owner, int(row.token))
    except IntegrityError:
        # Two workers inserted the first row at once; the other one won.
        with ledger.read() as connection:
            row = connection.execute(_LOOK, {"name": name}).one()
        raise LeaseHeld(name, row.owner, row.expires_at) from None


def renew(ledger: Ledger, lease: Lease, seconds: int = LEASE_SECONDS) -> None:
    """Push the expiry out.

    Raises:
        LeaseLost: someone else holds the lease now.
        LeaseExpired: it ran out before; whoever looked since may have found it free.
    """
    with ledger.write() as connection:
        until = push_expiry(connection, ledger, lease, seconds)
    require_time_left(ledger, lease, until)


def push_expiry(
    connection: Connection, ledger: Ledger, lease: Lease, seconds: int = LEASE_SECONDS
) -> datetime:
    """The renewal inside a transaction; until when the lease holds, once that is committed.

    The clock is read inside: a process may be frozen before its transaction begins.

    Raises:
        LeaseLost, LeaseExpired: it cannot be renewed any more.
    """
    fence(connection, ledger, lease)
    until = ledger.clock() + timedelta(seconds=seconds)
    connection.execute(
        _MOVE_EXPIRY, {"name": lease.name, "token": lease.token, "until": to_text(until)}
    )
    return until


def require_time_left(ledger: Ledger, lease: Lease, until: datetime) -> None:
    """After a renewal: the process may have been frozen while it was committed.

    Raises:
        LeaseExpired: what was renewed has run out already.
    """
    if ledger.clock() >= until:
        raise LeaseExpired(lease, to_text(until))


def release(ledger: Ledger, lease: Lease) -> None:
    """Let the lease expire now; a lease that was lost is left alone."""
    with ledger.write() as connection:
        connection.execute(
            _MOVE_EXPIRY, {"name": lease.name, "token": lease.token, "until": ledger.now()}
        )


def fence(connection: Connection, ledger: Ledger, lease: Lease) -> None:
    """First statement of a committing transaction: hold the lease row, check token and expiry.

    Raises:
        LeaseLost: the token is no longer the lease's, or the lease has expired; roll back.
    """
    if not ledger.dialect.lock_lease(connection, lease.name, lease.token):
        raise LeaseLost(lease)
    expires_at = connection.execute(_LOOK, {"name": lease.name}).one().expires_at
    if expires_at <= ledger.now():
        raise LeaseExpired(lease, expires_at)


def seal(connection: Connection, lease: Lease) -> None:
    """Last statement of a committing transaction: store the token that it used."""
    connection.execute(_SEAL, {"name": lease.name, "token": lease.token})


class BackgroundHeartbeat:
    """Keeps a lease alive while one call blocks, such as an upload: a thread renews it.

    It renews by the time of this machine and ends with the block; a lease that was lost meanwhile
    stays lost, and the commit after the block is refused.

    Args:
        ledger: the ledger.
        lease: the lease to keep.
        seconds: how long each renewal lasts; it is renewed after a third of that.
    """

    def __init__(self, ledger: Ledger, lease: Lease, seconds: int = LEASE_SECONDS) -> None:
        self._ledger = ledger
        self._lease = lease
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> BackgroundHeartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / 3):
            try:
                renew(self._ledger, self._lease, self._seconds)
            except (LedgerError, LeaseLost):
                # What cannot be renewed runs out, and the commit says so.
                return


class Heartbeat:
    """Keeps a lease alive through a long loop; beating costs nothing until it is due.

    Args:
        ledger: the ledger.
        lease: the lease to keep.
        seconds: how long each renewal lasts; it is renewed after a third of that.
    """

    def __init__(self, ledger: Ledger, lease: Lease, seconds: int = LEASE_SECONDS) -> None:
        self._ledger = ledger
        self._lease = lease
        self._seconds = seconds
        self._due = self._next()

    def beat(self) -> None:
        """Renew the lease if it is time to.

        Raises:
            LeaseLost: someone else holds the lease now; stop the work.
        """
        if self._ledger.clock() >= self._due:
            renew(self._ledger, self._lease, self._seconds)
            self._due = self._next()

    def _next(self) -> datetime:
        return self._ledger.clock() + timedelta(seconds=self._seconds / 3)


@contextmanager
def held(ledger: Ledger, name: str, owner: str, seconds: int = LEASE_SECONDS) -> Iterator[Lease]:
    """A lease for the length of a block.

    Raises:
        LeaseHeld: another owner holds it.
    """
    lease = acquire(ledger, name, owner, seconds)
    try:
        yield lease
    finally:
        release(ledger, lease)


@contextmanager
def fenced(ledger: Ledger, lease: Lease) -> Iterator[Connection]:
    """A write transaction that commits only while the lease is held.

    A commit that came too late is refused, and that is recorded.

    Raises:
        LeaseLost: the lease changed hands; nothing was written.
    """
    try:
        with ledger.write() as connection:
            fence(connection, ledger, lease)
            yield connection
            seal(connection, lease)
    except LeaseLost as lost:
        if lost.lease == lease:
            _record_refusal(ledger, lost)
        raise


def _record_refusal(ledger: Ledger, lost: LeaseLost) -> None:
    """Note a refused commit, with who has the lease now; the transaction is rolled back by then."""
    with ledger.write() as connection:
        now = connection.execute(_LOOK, {"name": lost.lease.name}).first()
        connection.execute(
            insert(refused_commits).values(
                lease=lost.lease.name,
                owner=lost.lease.owner,
                token=lost.lease.token,
                found_owner=None if now is None else now.owner,
                found_token=None if now is None else now.token,
                why=lost.why,
                refused_at=ledger.now(),
            )
        )
        raise_alert(connection, "late_commit", lost.lease.name, str(lost), ledger.now())
