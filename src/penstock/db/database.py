"""The contract of a database, for both backends.

Statements are named: their SQL is in `statements/*.sql` of each room. Both backends return uuid as
lower-case `str`, bigint as `int`, and flags as `int` 0 or 1.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec

Row = tuple[Any, ...]
Ask = tuple[str, Mapping[str, object]]
Write = tuple[str, Sequence[msgspec.Struct]]  # a `{rows …}` statement and its rows
T = TypeVar("T", bound=msgspec.Struct)


class Overtaken(Exception):
    """Another writer committed after the write that the caller believed to be the last."""


class Transaction(Protocol):
    """Statements that take effect together; usable only inside its `with` block, by one thread.

    Guaranteed: statements take effect in the order of the calls, and a read sees every write
    queued before it in the same transaction. An unknown name is a LookupError and a missing
    parameter a TypeError, both before anything is sent.

    Not guaranteed: when a failed write is reported. PostgreSQL may report it at any later call, at
    the latest when the block ends. Nor that a transaction survives a failed statement: PostgreSQL
    refuses everything after it, SQLite does not, so let the error leave the block. Nor that text
    with a NUL character can be stored: PostgreSQL refuses it with a DataError.
    """

    @property
    def epoch(self) -> int:
        """The number of this write, which counts the writes of all writers; 0 in a read.

        If the epoch of a caller's last commit is one less than this one, no other writer has
        committed in between.
        """

    def fetch(self, statement: str, /, **params: object) -> list[Row]:
        """Return all rows of a statement."""

    def fetch_one(self, statement: str, /, **params: object) -> Row | None:
        """Return the first row, or None."""

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        """Return all rows as `shape`, whose fields are in the order of the columns.

        The names of fields are checked where the statement begins with `SELECT {columns …}`.
        Values are not checked against the types of the fields.
        """

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[Row]]:
        """Return the rows of several statements, in one round trip."""

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a write without a result; PostgreSQL does not wait for it."""

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        """Write many rows with one `{rows …}` statement; without rows nothing is sent.

        A field is str, int, float, bool or None, and has the name of its column. All rows have one
        type. Two rows of a batch must not have the same key.
        """


class Sent(Protocol):
    """A write that was sent; until it has landed, `write()` may have to wait for it."""

    @property
    def epoch(self) -> int:
        """The epoch of the write, if it lands."""

    def land(self) -> None:
        """Return when the write is on disk; raise if nothing of it is.

        Call it once, from any thread, in the order in which the writes were sent.
        """


class Listener(Protocol):
    """A listener for the commits of other writers; `wait` is for one thread at a time.

    It only hints. The caller reads the database itself when it starts to listen, after each wait
    that returned True, and from time to time.

    Guaranteed: a commit after the start makes the current wait, or the next one, return True. After
    a loss of the connection, the first wait with a new connection returns True.

    Not guaranteed: that True means a change. SQLite cannot distinguish commits, so every commit
    counts there, whatever its channel.
    """

    def wait(self, seconds: float) -> bool:
        """Wait until a commit may have happened; return False after so many seconds."""

    def wake(self) -> None:
        """End the current wait, or else the next one, at once; from any thread."""


class Database(Protocol):
    """Many readers and one writer over one schema.

    Guaranteed: after the block of `write()`, its writes are on disk and visible to every later
    `read()`. If the block raised, none of them is, except in the case below. The same holds for a
    sent write that has landed. Writers take turns, also between processes, and cannot deadlock.
    Every method may be called from any thread.

    Not guaranteed: the outcome when the connection breaks during a commit. That raises
    `Unavailable`, and the caller must read the database. Nor fairness between writers. Nor
    durability beyond the disk, or PostgreSQL's `synchronous_commit`. `write()` inside `write()` in
    one thread is a RuntimeError.

    `penstock.errors.Unavailable` is raised for a database that cannot be reached, stays locked, is
    full, was removed or is damaged, and for writes into a file that was removed meanwhile. Other
    errors of the driver are passed on.
    """

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""

    def read(self, *, by_key: bool = False) -> AbstractContextManager[Transaction]:
        """Read one snapshot, taken by the first statement.

        With `by_key`, statements are planned once and find their rows by key, like the writer's.
        Then each statement sees the commits before it, and one such read runs at a time.
        """

    def write(self) -> AbstractContextManager[Transaction]:
        """Take the writer's turn; commit after the block, or roll back if it raises."""

    def send(self, writes: Sequence[Write], *, after: int | Sent) -> Sent:
        """Send rows as a transaction of their own, in this order, and do not wait for it.

        It lands only as the next write after `after`: a sent write, or the epoch of a committed
        one. Otherwise it raises Overtaken. SQLite begins the transaction in `land`; PostgreSQL
        begins it now, or when the write sent before it is done.
        """

    def listen(self, channel: str) -> AbstractContextManager[Listener]:
        """Listen for commits that notify this channel, on a connection of its own."""

    def migrate(self) -> list[str]:
        """Bring the schema up to date and return the names of new steps; safe in many processes."""

    def close(self) -> None:
        """Close every connection; an open read closes its own when it ends."""
