"""Migrations: numbered files, each applied once to a database, in one transaction.

`migrations/NNNN_name.sql` of every room, in the order of the numbers. A file is portable SQL with
these extensions:

- SQLite reads the types UUID and BIGINT as TEXT and INTEGER, and drops `COLLATE "C"`: it compares
  text byte by byte anyway. PostgreSQL drops WITHOUT ROWID.
- `{identity}` is the type of a key that the database numbers.
- `{check state RunState}` is the CHECK that a column holds a state of that enumeration in
  `penstock/states.py`; `{check state RunState except ABORTED}` leaves states out.

SQL for one dialect is in `NNNN_name.sqlite.sql` or `NNNN_name.postgresql.sql`. It runs after the
portable file, in the same transaction.

A file must not change once it is released: the ledger has its checksum. The checksum includes the
states of `{check ...}`. To add a state, write the former states into the old file in place of the
marker, which leaves the checksum as it is, and write a migration that replaces the CHECK.
"""

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib.resources.abc import Traversable
from typing import Protocol

import msgspec

from penstock import states
from penstock.clock import Clock
from penstock.db.database import Row, T, Transaction
from penstock.db.folders import SqlFile, sql_files
from penstock.db.statements import SQLITE_WORDS, TOKEN
from penstock.errors import Conflict, Invalid, Unavailable

IDENTITY = {
    "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "postgresql": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
_FILE = re.compile(r"(?P<name>(?P<number>\d{4,})_[a-z0-9_]+)(?:\.(?:sqlite|postgresql))?\.sql")
_CHECK = re.compile(
    r"\{check (?P<column>\w+) (?P<states>\w+)(?: except (?P<absent>\w+(?:, \w+)*))?\}"
)


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; `texts` are its files, with the states of `{check ...}`."""

    number: int
    name: str
    dialect: str
    texts: tuple[str, ...]

    @property
    def checksum(self) -> str:
        """The digest of the texts."""
        return hashlib.blake2b("\x00".join(self.texts).encode(), digest_size=16).hexdigest()

    @property
    def scripts(self) -> tuple[str, ...]:
        """The scripts to run, in order, in the words of the dialect."""
        return tuple(_translate(text, self.dialect) for text in self.texts)


def _translate(text: str, dialect: str) -> str:
    text = text.replace("{identity}", IDENTITY[dialect])
    if dialect == "postgresql":
        return text.replace(" WITHOUT ROWID", "")
    text = text.replace(' COLLATE "C"', "")
    return TOKEN.sub(lambda token: SQLITE_WORDS.get(token[0], token[0]), text)


class AppliedMigration(msgspec.Struct, frozen=True):
    """A row of the ledger."""

    number: int
    name: str
    checksum: str


class Session(Protocol):
    """A transaction during which no other program can migrate."""

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a named statement."""

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        """The rows of a named statement."""

    def script(self, text: str) -> None:
        """Run every statement of a migration file."""


def load_migrations(dialect: str, folders: Iterable[Traversable]) -> list[Migration]:
    """Read the migrations for this dialect, in the order of their numbers."""
    steps: dict[int, tuple[str, list[SqlFile]]] = {}
    for file in sql_files(folders, "migrations"):
        match = _FILE.fullmatch(file.name)
        if match is None:
            raise ValueError(f"{file.name} is not the name of a migration; use 0007_name.sql")
        name, files = steps.setdefault(int(match["number"]), (match["name"], []))
        if name != match["name"] or any(file.dialect == other.dialect for other in files):
            raise ValueError(f"{file.name} has the number of {name}; use the next free number")
        files.append(file)
    return [
        Migration(number, name, dialect, texts)
        for number, (name, files) in sorted(steps.items())
        if (texts := tuple(_with_states(file) for file in files if file.dialect in ("", dialect)))
    ]


def _with_states(file: SqlFile) -> str:
    def check(marker: re.Match[str]) -> str:
        enumeration = getattr(states, marker["states"], None)
        if enumeration is None:
            raise ValueError(f"{file.name}: penstock.states has no {marker['states']}")
        absent = re.findall(r"\w+", marker["absent"] or "")
        if unknown := set(absent) - set(enumeration):
            raise ValueError(f"{file.name}: {marker['states']} has no {', '.join(unknown)}")
        names = ", ".join(f"'{state}'" for state in enumeration if state not in absent)
        return f"CHECK ({marker['column']} IN ({names}))"

    return _CHECK.sub(check, file.text)


def refuse_others(tables: Sequence[Row], where: str) -> None:
    """Refuse the database of another program before any change to it."""
    if tables:
        names = ", ".join(name for (name,) in tables)
        raise Invalid(
            f"the database {where} belongs to another program: it has tables ({names}) and no "
            "ledger of Penstock; nothing in it was changed. Name another database, or a new one"
        )


def apply_migrations(
    migrations: Sequence[Migration],
    session: Callable[[], AbstractContextManager[Session]],
    clock: Clock,
) -> list[str]:
    """Apply the missing steps, each in a session of its own, and return their names."""
    names: list[str] = []
    while (migration := _apply_next(migrations, session, clock)) is not None:
        names.append(migration.name)
    return names


def _apply_next(
    migrations: Sequence[Migration],
    session: Callable[[], AbstractContextManager[Session]],
    clock: Clock,
) -> Migration | None:
    """Apply the first missing step; another program may have applied the steps before it."""
    with session() as tx:
        tx.execute("create_schema_migrations")
        applied = tx.rows(AppliedMigration, "applied_migrations")
        check_ledger(migrations, applied)
        numbers = {line.number for line in applied}
        missing = next((each for each in migrations if each.number not in numbers), None)
        if missing is not None:
            if numbers:  # before the first step there is no table of turns
                # Waits for the writes under way, and makes every other writer look again.
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


def check_ledger(migrations: Sequence[Migration], applied: Sequence[AppliedMigration]) -> None:
    """Refuse a database that a newer program, or a changed migration, has made."""
    by_number = {migration.number: migration for migration in migrations}
    for line in applied:
        migration = by_number.get(line.number)
        if migration is None:
            raise Conflict(
                f"the database has migration {line.name}, which this version of Penstock does "
                "not know; use the version that applied it, or a later one"
            )
        if migration.checksum != line.checksum:
            raise Conflict(
                f"migration {line.name} was applied with checksum {line.checksum}, but the file "
                f"now has {migration.checksum}; restore the file and put the change into a new "
                "migration"
            )


def take_turn(tx: Transaction, migrations: Sequence[Migration]) -> int:
    """Take the writer's turn; refuse if a newer program has migrated the database meanwhile."""
    [[epoch]], [[newest]] = tx.fetch_many([("next_epoch", {}), ("newest_migration", {})])
    if newest > migrations[-1].number:
        raise Unavailable(
            "the database has migrations that this version of Penstock does not know, and "
            "nothing was written; stop this process, and start the version that applied them, or "
            "a later one"
        )
    return int(epoch)


def split_script(script: str) -> Iterator[str]:
    """Split a script of SQLite into statements; the body of a trigger keeps its semicolons."""
    statement = ""
    for piece in re.split(r"(?<=;)", script):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if TOKEN.sub(lambda match: "" if match["comment"] else match[0], statement).strip():
        yield statement.strip()
