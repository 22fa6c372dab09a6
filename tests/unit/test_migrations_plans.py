"""Query plans of migrations: each lookup for a row of a table uses an index."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from penstock.db.folders import capability_folders
from penstock.db.migrate import Migration, load_migrations, split_script

CHANGES = ("UPDATE", "DELETE", "INSERT")


def changes() -> Iterator[tuple[sqlite3.Connection, Migration, str]]:
    """Yield every statement of a migration that changes rows, before it is executed."""
    with closing(sqlite3.connect(":memory:")) as database:
        for migration in load_migrations("sqlite", capability_folders()):
            for script in migration.scripts:
                for sql in split_script(script):
                    words = "\n".join(line for line in sql.splitlines() if line[:2] != "--")
                    if words.strip().startswith(CHANGES):
                        yield database, migration, sql
                    database.execute(sql)


def scans_for_each_row(database: sqlite3.Connection, sql: str) -> list[str]:
    """Return the steps that scan a whole table for each row."""
    inner: set[int] = set()
    steps = []
    for number, parent, _, step in database.execute(f"EXPLAIN QUERY PLAN {sql}"):
        if parent in inner or step.startswith("CORRELATED"):
            inner.add(number)
        if number in inner and step.startswith("SCAN"):
            steps.append(step)
    return steps


def test_no_migration_scans_a_table_for_each_row() -> None:
    """With a hundred thousand lots and as many wired jobs it would block all writers for hours."""
    slow = [
        f"{migration.name}: {step}"
        for database, migration, sql in changes()
        for step in scans_for_each_row(database, sql)
    ]
    assert slow == []
