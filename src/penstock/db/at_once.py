"""A whole transaction as one statement of SQLite.

The interpreter is let go while a statement runs, and asked for again after it. By then another
thread has it, and keeps it for a while: a dozen statements wait a dozen times, which takes longer
than they do themselves. So the rows that a batch writes go in by a single INSERT into a view, a row
of it for each named statement, and triggers on the view do what the statements say. The INSERT
begins and commits its transaction by itself.
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
_TURN: Final = 0  # the kind of the first part, whose text is the epoch that the write is to have


class Part(msgspec.Struct, frozen=True, gc=False):
    """The rows of one statement as one JSON; or the writer's turn."""

    kind: int
    text: str


Packed = Sequence[tuple[str, str]]  # the names of statements, with the rows of each as one JSON


def pack(statements: Statements, writes: Iterable[Write]) -> Packed:
    """The writes as texts; all that can be wrong with them shows here."""
    return [(name, _pack(statements[name], rows)) for name, rows in writes if rows]


def _pack(statement: Statement, rows: Sequence[msgspec.Struct]) -> str:
    check_shape(type(rows[0]), statement)
    text = msgspec.json.encode([*map(row_picker(statement), rows)])
    # SQLite would end a text there without a word. After an escaped backslash it is no NUL.
    if _NUL in text and any(len(found[1]) % 2 for found in _NULS.finditer(text)):
        raise sqlite3.DataError("text with a NUL character in it cannot be sent")
    return text.decode()


class AtOnce:
    """Makes transactions on one connection, each by one statement; for one thread at a time."""

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
        run(statements["make_at_once"].sql)
        run(statements["teach_turn"].sql)

    def make(self, epoch: int, packed: Packed) -> None:
        """Write all of it as the write with this epoch, or nothing."""
        parts = [Part(_TURN, str(epoch))]
        parts += [Part(self._kind(name), text) for name, text in packed]
        try:
            self._write("write_at_once", parts)
        except sqlite3.IntegrityError as error:
            if error.args == (_OVERTAKEN,):
                raise Overtaken from error
            raise

    def _kind(self, name: str) -> int:
        """The number of a statement; its trigger is made when it is first met."""
        kind = self._kinds.get(name)
        if kind is None:
            kind = len(self._kinds) + 1
            sql = from_json(self._statements[name], "new.text")
            teaching = self._statements["teach_kind"].sql
            self._run(teaching.replace("KIND", str(kind)).replace("STATEMENT", sql))
            self._kinds[name] = kind
        return kind
