"""How migrations find rows: what they look up for each row of a table, they find by an index."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from penstock.db.folders import capability_folders
from penstock.db.migrate import Migration, load_migrations, split_script

CHANGES = ("UPDATE", "DELETE", "INSERT")


def changes() -> Iterator[tuple[sqlite3.Connection, Migration, str]]:
    """Every statement of a migration that changes rows, each before it is carried out."""
    with closing(sqlite3.connect(":memory:")) as database:
        for migration in load_migrations("sqlite", capability_folders()):
            for script in migration.scripts:
                for sql in split_script(script):
                    words = "\n".join(line for line in sql.splitlines() if line[:2] != "--")
                    if words.strip().startswith(CHANGES):
                        yield database, migration, sql
                    database.execute(sql)


def walks_for_each(database: sqlite3.Connection, sql: str) -> list[str]:
    """The steps that read a whole table for each row that is looked at."""
    inner: set[int] = set()
    found = []
    for number, parent, _, step in database.execute(f"EXPLAIN QUERY PLAN {sql}"):
        if parent in inner or step.startswith("CORRELATED"):
            inner.add(number)
        if number in inner and step.startswith("SCAN"):
            found.append(step)
    return found


def test_no_migration_walks_through_a_table_for_each_row_of_another() -> None:
    """A hundred thousand lots and as many wired jobs would take hours, with all writers waiting."""
    slow = [
        f"{migration.name}: {step}"
        for database, migration, sql in changes()
        for step in walks_for_each(database, sql)
    ]
    assert slow == []
