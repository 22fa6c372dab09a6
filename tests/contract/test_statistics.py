"""SQLite's planner statistics, which only migrations write."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock.db import Database, open_database


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A new database."""
    file = tmp_path / "penstock.db"
    with closing(open_database(f"sqlite:///{file}")) as database:
        database.migrate()
    return file


def test_statistics_match_existing_indexes_and_their_columns(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        statistics = connection.execute(
            "SELECT tbl, idx, stat FROM sqlite_stat1 WHERE idx IS NOT NULL"
        ).fetchall()
        columns = dict(
            connection.execute(
                """
                SELECT i.name, (SELECT COUNT(*) FROM pragma_index_info(i.name))
                FROM sqlite_schema t JOIN pragma_index_list(t.name) i WHERE t.type = 'table'
                UNION ALL
                SELECT t.name, (SELECT COUNT(*) FROM pragma_table_info(t.name) c WHERE c.pk > 0)
                FROM sqlite_schema t WHERE t.type = 'table' AND t.sql LIKE '%WITHOUT ROWID%'
                """
            )
        )
    assert {table for table, _, _ in statistics} >= {
        "lot_work",
        "lot_status",
        "lot_log",
        "replay_steps",
    }
    for _, index, text in statistics:
        figures = [int(figure) for figure in text.split()]
        assert len(figures) == columns[index] + 1, index
        assert figures == sorted(figures, reverse=True), index


def test_a_table_with_statistics_has_them_for_every_index(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        missing = connection.execute(
            """
            SELECT i.name
            FROM (SELECT DISTINCT tbl FROM sqlite_stat1 WHERE idx IS NOT NULL) t
            JOIN pragma_index_list(t.tbl) i
            WHERE i.origin <> 'pk'
              AND NOT EXISTS (SELECT 1 FROM sqlite_stat1 s WHERE s.tbl = t.tbl AND s.idx = i.name)
            """
        ).fetchall()
    assert missing == []


def test_a_migrating_connection_plans_with_the_new_statistics(tmp_path: Path) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'penstock.db'}")) as database:
        database.migrate()
        assert "lot_work_ready" in _plan(database)


def _plan(database: Database) -> str:
    """Return how the writer's own connection would count the lots that a job can work on."""
    connection = database._writer  # type: ignore[attr-defined]  # no door shows plans
    count = "SELECT COUNT(*) FROM lot_work w WHERE w.job_id = '' AND w.state = 'READY'"
    return str(connection.execute(f"EXPLAIN QUERY PLAN {count}").fetchall())
