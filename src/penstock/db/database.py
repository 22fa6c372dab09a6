"""What a database promises, whichever backend keeps the promise.

Statements are named: their SQL lives in `statements/*.sql` of each capability. Both backends
give uuid as lower-case `str`, bigint as `int` and flags as `int` 0 or 1.
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
    """Somebody else wrote after the write that the caller knew for the last."""


class Transaction(Protocol):
    """Statements that happen together; usable only inside its `with` block, by one thread.

    Guaranteed: statements take effect in the order of the calls, and a read sees every write
    queued before it in the same transaction. An unknown name is a LookupError and a missing
    parameter a TypeError, both before anything is sent.

    Not guaranteed: when a failed write is noticed. PostgreSQL may report it at any later call,
    at the latest when the block is left. Nor that a transaction survives a failed statement:
    PostgreSQL refuses everything after it, SQLite does not, so let the error leave the block.
    Nor that text with a NUL character can be stored: PostgreSQL refuses it with a DataError.
    """

    @property
    def epoch(self) -> int:
        """The number of this write: the one before it, by whomever, had one less.

        A caller that remembers the epoch of its own last commit and finds it one less than
        this knows that nobody wrote in between. It is 0, and means nothing, in a read.
        """

    def fetch(self, statement: str, /, **params: object) -> list[Row]:
        """All rows of one statement."""

    def fetch_one(self, statement: str, /, **params: object) -> Row | None:
        """The first row, or None when there is none."""

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        """All rows as `shape`, whose fields stand in the order of the columns.

        Values are not checked against the types of the fields.
        """

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[Row]]:
        """The rows of several statements, in one round trip."""

    def execute(self, statement: str, /, **params: object) -> None:
        """One write whose result nobody needs; PostgreSQL does not wait for it."""

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        """Write many rows with one `{rows …}` statement; no rows is no statement.

        A field is str, int, float, bool or None, under the name of its column. All rows are of
        one type. Two rows with one key in a batch are the caller's error.
        """


class Sent(Protocol):
    """A write on its way to the disk; until it has landed, `write()` may have to wait for it."""

    @property
    def epoch(self) -> int:
        """The number that it has if it lands."""

    def land(self) -> None:
        """Return when it is on disk, or raise what stood in its way: then nothing of it is.

        To be called once, from any thread, in the order in which writes were sent.
        """


class Listener(Protocol):
    """Somebody who waits for others to commit something; `wait` is for one thread at a time.

    What it tells is only a hint. Whoever listens looks for itself after it began to, after each
    wait that gave True, and once in a while besides.

    Guaranteed: what is committed after the listening began makes a wait that is under way, or the
    next one, give True; after a loss of the connection the first wait that is connected again does.

    Not guaranteed: that anything has happened when it gives True. SQLite cannot tell one commit
    from another, so there every commit of anybody counts, whatever the channel.
    """

    def wait(self, seconds: float) -> bool:
        """Whether something may have happened; False once so many seconds have passed."""

    def wake(self) -> None:
        """Let the wait that is under way, or else the next, end at once; from any thread."""


class Database(Protocol):
    """Many readers and one writer over one schema.

    Guaranteed: what `write()` wrote is on disk and visible to every later `read()` once its block
    is left, and wholly absent when the block raised, but for the one case below; so is what was
    sent, once it has landed. Writers take turns, also between processes, and no two of them can
    deadlock. Every method may be called from any thread.

    Not guaranteed: the outcome when the connection breaks while a commit is under way; that is
    `Unavailable`, and the caller must look. Nor fairness between writers. Nor durability beyond
    what the disk, or PostgreSQL's `synchronous_commit`, gives. `write()` inside `write()` in one
    thread is a RuntimeError.

    A database that cannot be reached, stays locked, has no room, was taken away or is damaged
    raises `penstock.errors.Unavailable`; any other error of the driver is passed on as it is. What
    was written into a file that is then found to be taken away is `Unavailable` too.
    """

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""

    def read(self, *, by_key: bool = False) -> AbstractContextManager[Transaction]:
        """One snapshot, taken by the first statement, that later commits do not change.

        With `by_key`, statements are planned once and find their rows by key, as the writer's do,
        and each may see what was committed before it; one such read at a time.
        """

    def write(self) -> AbstractContextManager[Transaction]:
        """The writer's turn; committed on leaving, rolled back when the block raises."""

    def send(self, writes: Sequence[Write], *, after: int | Sent) -> Sent:
        """Write rows in a transaction of their own, in this order, without waiting for it.

        It lands only as the very next write after `after`, the epoch of one that was committed or
        one that is still on its way; otherwise it raises Overtaken. SQLite begins it when somebody
        waits for it; PostgreSQL works on it from now on, or when what was sent before it is done.
        """

    def listen(self, channel: str) -> AbstractContextManager[Listener]:
        """Listen, on a connection of its own, for commits that notify this channel."""

    def migrate(self) -> list[str]:
        """Bring the schema up to date and name what was applied; safe from several processes."""

    def close(self) -> None:
        """Close every connection; a read still open is closed when it ends."""
