"""Query plans of both databases: the steps that read more rows than they return."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from penstock.db import Transaction, open_database
from penstock.db.statements import Statement
from tests.databases import migrated_database

READ_AT_MOST = 500  # rows of one table, for a statement that asks for a few
# Instructions of SQLite's virtual machine, for a statement that returns a few hundred rows at most.
# A scan of twenty thousand rows takes twice as many.
INSTRUCTIONS_MAX = 40_000
_COUNTED_EACH = 100


@contextmanager
def filled_database(
    request: pytest.FixtureRequest,
    folders: pytest.TempPathFactory,
    *fills: Callable[[Transaction], None],
    extra: Sequence[Path] = (),
) -> Iterator[str]:
    """Yield the URL of a filled and analyzed database of the fixture's kind."""
    with migrated_database(request.param, request, folders.mktemp("filled")) as url:
        with closing(open_database(url, extra=extra)) as opened, opened.write() as tx:
            for fill in fills:
                fill(tx)
        update_statistics(url)
        yield url


def reads(statements: Mapping[str, Statement]) -> set[str]:
    """Return the statements that write nothing."""
    writes = ("INSERT", "UPDATE", "DELETE")
    return {name for name, each in statements.items() if not each.sql.startswith(writes)}


def costly_steps(
    url: str,
    statement: Statement,
    params: dict[str, Any],
    is_small: Callable[[str], bool] = lambda step: True,
    read_at_most: int = READ_AT_MOST,
) -> list[str]:
    """Return the steps of a plan that read many more rows than they return.

    SQLite reports its total work and the tables it scans; `is_small` accepts the harmless scans.
    PostgreSQL reports how many rows each step read.
    """
    if url.startswith("sqlite"):
        steps = plan_steps(url, statement, params)
        scans = [step for step in steps if step.startswith("SCAN") and not is_small(step)]
        return scans or excess_work(url, statement, params)
    return large_reads(url, statement, params, read_at_most)


def plan_steps(
    url: str, statement: Statement, params: dict[str, Any], *settings: Statement
) -> list[str]:
    """Return the steps of a statement's plan in the database's words, after some settings."""
    if url.startswith("sqlite"):
        lists = {name: msgspec.json.encode(params[name]).decode() for name in statement.lists}
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        explain = f"EXPLAIN QUERY PLAN {statement.sql}"
        steps = [row[3] for row in connection.execute(explain, {**params, **lists})]
        connection.close()
        return steps
    with psycopg.connect(url) as connected, psycopg.RawCursor(connected) as cursor:
        for setting in settings:
            cursor.execute(setting.sql)
        cursor.execute(f"EXPLAIN {statement.sql}", [params[name] for name in statement.params])
        return [row[0].strip() for row in cursor]


def excess_work(
    url: str, statement: Statement, params: dict[str, Any], most: int = INSTRUCTIONS_MAX
) -> list[str]:
    """Return a complaint if SQLite does too much work. It does not report single steps."""
    lists = {name: msgspec.json.encode(params[name]).decode() for name in statement.lists}
    done = 0

    def count() -> None:
        nonlocal done
        done += _COUNTED_EACH

    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.set_progress_handler(count, _COUNTED_EACH)
        connection.execute(statement.sql, {**params, **lists}).fetchall()
    return [f"{done} instructions"] if done > most else []


def large_reads(
    url: str, statement: Statement, params: dict[str, Any], read_at_most: int
) -> list[str]:
    """Return the steps in which PostgreSQL reads more rows of a table than this."""
    with psycopg.connect(url) as connected, psycopg.RawCursor(connected) as cursor:
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}"
        cursor.execute(explain, [params[name] for name in statement.params])
        ((plan,),) = cursor.fetchall()
    return [
        f"{step['Node Type']} on {step['Relation Name']}: {rows} rows"
        for step in _steps(plan[0]["Plan"])
        if "Relation Name" in step and (rows := _rows_read(step)) > read_at_most
    ]


def is_parameter_scan(step: str) -> bool:
    """Return whether the scan reads a list passed as a parameter."""
    return step.startswith(("SCAN k ", "SCAN d VIRTUAL", "SCAN json_each "))


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _steps(inner)


def _rows_read(step: dict[str, Any]) -> int:
    removed = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Index Recheck", 0)
    return int((step["Actual Rows"] + removed) * step["Actual Loops"])


def update_statistics(url: str) -> None:
    """Update PostgreSQL's planner statistics, as autovacuum does after a while.

    SQLite runs without statistics, here as in production.
    """
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connected:
            connected.execute("VACUUM ANALYZE")
