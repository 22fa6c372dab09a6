"""One transaction of 33 single statements per event: Marquez's way to write.

Every statement is prepared and awaited. PostgreSQL takes many events at once, each on its own
connection; SQLite has one writer.
"""

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psycopg
from psycopg.types.string import TextLoader

from penstock import ids
from penstock.catalog.changes import changes
from penstock.catalog.events.parse import Event, Mention
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Clock
from penstock.db import Database
from penstock.db.statements import load_statements
from penstock.locks.commands import LockingEvent
from penstock.store.write_queue import WriteQueue

FOLDER = Path(__file__).resolve().parent
CONNECTIONS = 8  # more connections are slower on a few cores
_ARGS = "{}"
_STATES = {"START": "RUNNING", "COMPLETE": "COMPLETED"}

Row = tuple[Any, ...]
Run = Callable[..., Row | None]


class Session(Protocol):
    """A connection that writes one event at a time."""

    def run(self, name: str, /, **params: object) -> Row | None:
        """Run a statement and return its first row."""

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """Commit."""

    def rollback(self) -> None:
        """Roll back."""


class PostgresSession:
    """A psycopg connection that prepares every statement at its first use."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            url, autocommit=True, prepare_threshold=0, cursor_factory=psycopg.RawCursor
        )
        self._connection.adapters.register_loader("uuid", TextLoader)
        self._cursor = self._connection.cursor()
        self._statements = {
            name: (found.sql.encode(), found.params)
            for name, found in load_statements("postgresql", [FOLDER]).items()
        }

    def run(self, name: str, /, **params: object) -> Row | None:
        """Run a statement; text parameters have no type, so each statement is prepared once."""
        sql, names = self._statements[name]
        cursor = self._cursor
        cursor.execute(sql, [str(params[param]) for param in names])
        return cursor.fetchone() if cursor.description else None

    def begin(self) -> None:
        """Begin a transaction."""
        self._cursor.execute(b"BEGIN")

    def commit(self) -> None:
        """Commit."""
        self._cursor.execute(b"COMMIT")

    def rollback(self) -> None:
        """Roll back."""
        self._connection.rollback()


class SqliteSession:
    """The single writer of a file, as durable as Penstock's."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(
            url.removeprefix("sqlite:///"),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        for setting in ("synchronous = FULL", "cache_size = -65536", "temp_store = MEMORY"):
            self._connection.execute(f"PRAGMA {setting}")
        self._statements = {
            name: found.sql for name, found in load_statements("sqlite", [FOLDER]).items()
        }

    def run(self, name: str, /, **params: object) -> Row | None:
        """Run a statement to its end."""
        found = self._connection.execute(self._statements[name], params).fetchall()
        return found[0] if found else None

    def begin(self) -> None:
        """Begin a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit."""
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Roll back."""
        self._connection.rollback()


class SingleCatalog(WriteQueue):
    """A write queue with a connection for each open event."""

    def __init__(self, database: Database, *, clock: Clock, url: str) -> None:
        super().__init__(
            database, UnitOfWork(), changes, clock=clock, batch_events_max=1, queue_length_max=1
        )
        self._url = url
        self._many = database.dialect == "postgresql"
        self._own = threading.local()
        self._threads = ThreadPoolExecutor(CONNECTIONS if self._many else 1)

    def start(self) -> None:
        """Nothing needs to run before the first event."""

    def stop(self) -> None:
        """Return when all accepted events are committed."""
        self._threads.shutdown()

    def submit_async(self, command: Any, size: int = 0) -> "asyncio.Future[Any]":
        """Queue an event from an event loop."""
        assert isinstance(command, LockingEvent), "only events are measured"
        return asyncio.wrap_future(self._threads.submit(self._write, command.event))

    def _write(self, event: Event) -> None:
        session: Session | None = getattr(self._own, "session", None)
        if session is None:
            session = PostgresSession(self._url) if self._many else SqliteSession(self._url)
            self._own.session = session
        while True:
            try:
                write_event(session, event)
                return
            except psycopg.errors.DeadlockDetected:
                # Two events may create the same rows: the loser retries.
                session.rollback()
            except BaseException:
                session.rollback()
                raise


def write_event(session: Session, event: Event) -> None:
    """Write one run event with single statements."""
    session.begin()
    run, at, run_id = session.run, event.at, event.run_id
    state = _STATES[event.event_type]
    checksum = hashlib.sha256(_ARGS.encode()).hexdigest()
    run(
        "single_event",
        id=ids.new_id(),
        at=at,
        event_type=event.event_type,
        run_id=run_id,
        payload=event.payload,
    )
    run("single_namespace", namespace=event.job_namespace, at=at)
    job = run(
        "single_job",
        job_id=event.job_id,
        namespace=event.job_namespace,
        name=event.job_name,
        at=at,
    )
    assert job is not None, "an upsert returns its row"
    run("single_run_args", checksum=checksum, args=_ARGS, at=at)
    run("single_run", run_id=run_id, job_id=job[0], checksum=checksum, at=at)
    run("single_run_state", run_id=run_id, state=state, at=at)
    run(
        "single_run_starts" if state == "RUNNING" else "single_run_ends",
        run_id=run_id,
        state=state,
        at=at,
    )
    _keep_facets(run, event, str(run_id), "run", event.run_facets)
    _keep_facets(run, event, job[0], "job", event.job_facets)
    for role, mention in _in_order(event):
        _write_dataset(run, event, role, mention)
    names = "\n".join(sorted(mention.id for _, mention in _in_order(event)))
    version_id = ids.derived_id("job version", job[0], names)
    run("single_job_version", version_id=version_id, job_id=job[0], run_id=run_id, at=at)
    run("single_job_moves", version_id=version_id, run_id=run_id, job_id=job[0])
    run("single_run_moves", version_id=version_id, run_id=run_id)
    session.commit()


def _in_order(event: Event) -> Iterator[tuple[str, Mention]]:
    """Sort datasets by id, so that two events cannot deadlock."""
    named = [("INPUT", m) for m in event.inputs] + [("OUTPUT", m) for m in event.outputs]
    return iter(sorted(named, key=lambda pair: pair[1].id))


def _keep_facets(run: Run, event: Event, owner_id: str, kind: str, facets: Any) -> None:
    text = msgspec.json.encode(facets).decode()
    run(
        "single_facets", owner_id=owner_id, run_id=event.run_id, kind=kind, facets=text, at=event.at
    )


def _write_dataset(run: Run, event: Event, role: str, mention: Mention) -> None:
    at, namespace = event.at, mention.namespace
    run("single_namespace", namespace=namespace, at=at)
    run("single_source", source=namespace, at=at)
    dataset = run(
        "single_dataset",
        dataset_id=mention.id,
        namespace=namespace,
        source=namespace,
        name=mention.name,
        at=at,
    )
    assert dataset is not None, "an upsert returns its row"
    run("single_symlink", namespace=namespace, name=mention.name, dataset_id=dataset[0])
    made = role == "OUTPUT" or dataset[1] is None
    version_id = ids.derived_id(str(dataset[0]), str(event.run_id)) if made else str(dataset[1])
    fields = bytes(mention.facets.get("schema", b"{}")).decode()
    run(
        "single_version",
        version_id=version_id,
        dataset_id=dataset[0],
        run_id=event.run_id,
        fields=fields,
        at=at,
    )
    _keep_facets(run, event, str(dataset[0]), "dataset", mention.facets)
    if role == "OUTPUT":
        run("single_dataset_moves", version_id=version_id, dataset_id=dataset[0])
    else:
        run("single_input", run_id=event.run_id, version_id=version_id)
