"""Migrations: numbered files that each run once, in one transaction, on one database.

`migrations/NNNN_name.sql` of every capability, in the order of their numbers. It is portable
but for the words UUID and BIGINT, which SQLite reads as TEXT and INTEGER, and WITHOUT ROWID,
which PostgreSQL does not read. What only one dialect understands stands in
`NNNN_name.sqlite.sql` or `NNNN_name.postgresql.sql` and runs after it, in the same transaction.
"""

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib.resources.abc import Traversable
from typing import Protocol

import msgspec

from penstock.clock import Clock
from penstock.db.database import T, Transaction
from penstock.db.folders import SqlFile, sql_files
from penstock.db.statements import SQLITE_WORDS, TOKEN
from penstock.errors import Conflict, Invalid, Unavailable

_FILE = re.compile(r"(?P<name>(?P<number>\d{4,})_[a-z0-9_]+)(?:\.(?:sqlite|postgresql))?\.sql")


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema, from the texts of its files."""

    number: int
    name: str
    dialect: str
    texts: tuple[str, ...]

    @property
    def checksum(self) -> str:
        """What tells that a file was changed."""
        return hashlib.blake2b("\x00".join(self.texts).encode(), digest_size=16).hexdigest()

    @property
    def scripts(self) -> tuple[str, ...]:
        """What to run, in order, the way the dialect wants it."""
        if self.dialect == "postgresql":
            return tuple(text.replace(" WITHOUT ROWID", "") for text in self.texts)
        return tuple(TOKEN.sub(lambda t: SQLITE_WORDS.get(t[0], t[0]), text) for text in self.texts)


class Applied(msgspec.Struct, frozen=True):
    """A line of the ledger."""

    number: int
    name: str
    checksum: str


class Table(msgspec.Struct, frozen=True):
    """A table in a database that has no ledger of ours."""

    name: str


class Session(Protocol):
    """A transaction that no other program can migrate beside."""

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a named statement."""

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        """The rows of a named statement."""

    def script(self, text: str) -> None:
        """Run every statement of a migration's file."""


def load_migrations(dialect: str, folders: Iterable[Traversable]) -> list[Migration]:
    """Read the migrations for this dialect, in the order of their numbers."""
    found: dict[int, tuple[str, list[SqlFile]]] = {}
    for file in sql_files(folders, "migrations"):
        match = _FILE.fullmatch(file.name)
        if match is None:
            raise ValueError(f"{file.name} is not a migration's name; write it like 0007_name.sql")
        name, files = found.setdefault(int(match["number"]), (match["name"], []))
        if name != match["name"] or any(file.dialect == other.dialect for other in files):
            raise ValueError(f"{file.name} has the number of {name}; give it the next that is free")
        files.append(file)
    return [
        Migration(number, name, dialect, texts)
        for number, (name, files) in sorted(found.items())
        if (texts := tuple(file.text for file in files if file.dialect in ("", dialect)))
    ]


def refuse_others(tables: Sequence[Table], where: str) -> None:
    """Refuse the database of another program, before anything in it is changed."""
    if tables:
        names = ", ".join(table.name for table in tables)
        raise Invalid(
            f"the database {where} is another program's: it has tables ({names}) and no ledger of "
            "Penstock's migrations; nothing in it was changed. Name another, or a new one"
        )


def apply_migrations(
    migrations: Sequence[Migration],
    session: Callable[[], AbstractContextManager[Session]],
    clock: Clock,
) -> list[str]:
    """Apply what is missing, each step in a session of its own, and name the steps."""
    done: list[str] = []
    while (migration := _apply_next(migrations, session, clock)) is not None:
        done.append(migration.name)
    return done


def _apply_next(
    migrations: Sequence[Migration],
    session: Callable[[], AbstractContextManager[Session]],
    clock: Clock,
) -> Migration | None:
    """Apply the first step that is missing; another program may have applied those before it."""
    with session() as tx:
        tx.execute("create_schema_migrations")
        applied = tx.rows(Applied, "applied_migrations")
        check_ledger(migrations, applied)
        had = {line.number for line in applied}
        missing = next((each for each in migrations if each.number not in had), None)
        if missing is not None:
            if had:  # or there is no turn to be taken yet
                # It comes after the writes that are on their way, and all have to look again.
                tx.execute("next_epoch")
            for script in missing.scripts:
                tx.script(script)
            tx.execute(
                "record_migration",
                number=missing.number,
                name=missing.name,
                checksum=missing.checksum,
                applied_at=clock(),
            )
        return missing


def check_ledger(migrations: Sequence[Migration], applied: Sequence[Applied]) -> None:
    """Refuse a database that this program did not make, or has since outgrown."""
    known = {migration.number: migration for migration in migrations}
    for line in applied:
        migration = known.get(line.number)
        if migration is None:
            raise Conflict(
                f"the database has had migration {line.name}, which this version of Penstock does "
                "not know; use the version that applied it, or a later one"
            )
        if migration.checksum != line.checksum:
            raise Conflict(
                f"migration {line.name} was applied with checksum {line.checksum}, but the file "
                f"now has {migration.checksum}; restore the file and put the change into a new "
                "migration"
            )


def take_turn(tx: Transaction, migrations: Sequence[Migration]) -> int:
    """Take the writer's turn, unless the database has outgrown this program since it was opened."""
    [[epoch]], [[newest]] = tx.fetch_many([("next_epoch", {}), ("newest_migration", {})])
    if newest > migrations[-1].number:
        raise Unavailable(
            "the database has had migrations that this version of Penstock does not know, and "
            "nothing was written; stop this process, and start the version that applied them, or "
            "a later one"
        )
    return int(epoch)


def split_script(script: str) -> Iterator[str]:
    """The statements of a SQLite script; a trigger's body keeps its semicolons."""
    statement = ""
    for piece in re.split(r"(?<=;)", script):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if TOKEN.sub(lambda match: "" if match["comment"] else match[0], statement).strip():
        yield statement.strip()
