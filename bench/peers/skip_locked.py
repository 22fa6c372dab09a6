"""The raw statements: FOR UPDATE SKIP LOCKED to claim, one UPDATE to complete.

Each worker is a thread with its own connection; both statements are prepared and commit by
themselves. There is no lease, no token, no run and no log.
"""

import time
from typing import Any

import psycopg

from bench.peers.single import FOLDER
from bench.turns import Step, Turn, in_threads
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.db.statements import Statement, load_statements


class SkipLocked:
    """A table as a queue."""

    def __init__(self, url: str) -> None:
        database = open_database(url, extra=[FOLDER])
        database.migrate()
        database.close()
        self._url = url
        self._statements = load_statements("postgresql", [FOLDER])
        self._workers: list[_Worker] = []

    def fill(self, count: int) -> None:
        """Add waiting work."""
        self._worker(0).run(self._statements["skip_locked_fill"], count=count)

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Claim and complete in threads."""
        claim = self._statements["skip_locked_claim"]
        complete = self._statements["skip_locked_complete"]

        def step_of(number: int) -> Step:
            run, owner = self._worker(number).run, f"worker-{number}"

            def step() -> int:
                found = run(claim, owner=owner, now=system_clock(), count=at_once)
                if found:
                    run(complete, now=system_clock(), ids=[row[0] for row in found])
                return len(found)

            return step

        return in_threads([step_of(number) for number in range(workers)], seconds)

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process."""
        return time.process_time()

    def close(self) -> None:
        """Close the connections."""
        for worker in self._workers:
            worker.close()

    def _worker(self, number: int) -> "_Worker":
        while len(self._workers) <= number:
            self._workers.append(_Worker(self._url))
        return self._workers[number]


class _Worker:
    """A psycopg connection that prepares every statement at its first use."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            url, autocommit=True, prepare_threshold=0, cursor_factory=psycopg.RawCursor
        )
        self._cursor = self._connection.cursor()

    def run(self, statement: Statement, **params: object) -> list[tuple[Any, ...]]:
        """Run a statement."""
        self._cursor.execute(statement.sql.encode(), [params[name] for name in statement.params])
        return self._cursor.fetchall() if self._cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
