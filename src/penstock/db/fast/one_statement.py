"""A whole transaction as one statement of SQLite.

Python releases its interpreter while a statement runs, and takes it back afterwards. Under load
another thread has it by then and keeps it for a while. A transaction of a dozen statements waits a
dozen times, longer than the statements themselves take.

So the rows of a batch go in by a single INSERT into a temporary view, with one row for each named
statement. Triggers on the view do what the statements say. The INSERT begins and commits its
transaction by itself.

Benchmark: `make bench`, "Acknowledged events per second" on SQLite (bench/throughput.py). With 128
clients 3,525 events a second instead of 2,689, with 32 clients 2,359 instead of 2,050 (ADR 0022).
Without this module, `SqliteDatabase.send` would write the same rows through `SqliteTransaction`.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from penstock.db.database import Overtaken, Write
from penstock.db.statements import Statement, Statements, check_shape, from_json, row_picker

_NUL: Final = b"\\u0000"
_NULS: Final = re.compile(rb"(\\+)u0000")
_OVERTAKEN: Final = "overtaken"
_TURN: Final = 0  # the kind of the first part, whose text is the epoch of the write


class Part(msgspec.Struct, frozen=True, gc=False):
    """The rows of one statement as one JSON; or the writer's turn."""

    kind: int
    text: str


Packed = Sequence[tuple[str, str]]  # names of statements, and the rows of each as one JSON


def pack(statements: Statements, writes: Iterable[Write]) -> Packed:
    """Encode the writes; every fault of their rows is raised here."""
    return [(name, _pack(statements[name], rows)) for name, rows in writes if rows]


def _pack(statement: Statement, rows: Sequence[msgspec.Struct]) -> str:
    check_shape(type(rows[0]), statement)
    text = msgspec.json.encode([*map(row_picker(statement), rows)])
    # SQLite would silently cut the text there. After an escaped backslash it is no NUL.
    if _NUL in text and any(len(match[1]) % 2 for match in _NULS.finditer(text)):
        raise sqlite3.DataError("text with a NUL character cannot be sent; remove the character")
    return text.decode()


class OneStatementWriter:
    """Writes transactions on one connection, each by one statement; for one thread at a time."""

    def __init__(
        self,
        statements: Statements,
        run: Callable[[str], object],
        write: Callable[[str, Sequence[Part]], None],
    ) -> None:
        self._statements = statements
        self._run = run
        self._write = write
        self._kinds: dict[str, int] = {}
        run(statements["create_transaction_view"].sql)
        run(statements["create_turn_trigger"].sql)

    def write(self, epoch: int, packed: Packed) -> None:
        """Write everything as the write with this epoch, or nothing."""
        parts = [Part(_TURN, str(epoch))]
        parts += [Part(self._kind(name), text) for name, text in packed]
        try:
            self._write("write_transaction", parts)
        except sqlite3.IntegrityError as error:
            if error.args == (_OVERTAKEN,):
                raise Overtaken from error
            raise

    def _kind(self, name: str) -> int:
        """Return the number of a statement; create its trigger at its first use."""
        kind = self._kinds.get(name)
        if kind is None:
            kind = len(self._kinds) + 1
            sql = from_json(self._statements[name], "new.text")
            trigger = self._statements["create_part_trigger"].sql
            self._run(trigger.replace("KIND", str(kind)).replace("STATEMENT", sql))
            self._kinds[name] = kind
        return kind
