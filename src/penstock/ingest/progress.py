"""How far a long download is, for those who wait for it.

A worker notes it every few seconds beside the queue, wherever that is kept: a change of the job
itself would end the worker's hold on it. A download that takes less time is not noted.
"""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar, Final

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import DAY, Micros
from penstock.db import Transaction
from penstock.errors import PenstockError
from penstock.store.write_queue import WriteQueue

EVERY_SECONDS: Final = 3.0
KEPT: Final[Micros] = DAY  # what a killed worker has noted


class Progress(Row, frozen=True):
    """The bytes of a job's files that have arrived; `total` is 0 if it is unknown."""

    job_id: str
    bytes: int
    total: int
    at: Micros


class NoteProgress(Write, frozen=True):
    """Note how much of a download has come."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    job_id: str
    bytes: int
    total: int

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row."""
        uow.tx.execute(
            "put_ingest_progress", job_id=self.job_id, bytes=self.bytes, total=self.total, now=now
        )


class ForgetProgress(Write, frozen=True):
    """Forget a download that has ended."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    job_id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """The row goes."""
        uow.tx.execute("forget_ingest_progress", job_id=self.job_id)


class ForgetOldProgress(Write, frozen=True):
    """Forget what killed workers have noted."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Rows that nobody has written for a day go."""
        uow.tx.execute("forget_old_ingest_progress", before=now - KEPT)


def progress_of(tx: Transaction, job_ids: Iterable[str]) -> dict[str, Progress]:
    """How far the downloads of these jobs are, of those that are noted."""
    rows = tx.rows(Progress, "ingest_progress_by_jobs", ids=list(job_ids))
    return {row.job_id: row for row in rows}


class Meter:
    """Counts the bytes of one job's download, from any thread, and notes them now and then."""

    def __init__(self, catalog: WriteQueue, job_id: str, total: int) -> None:
        self._catalog = catalog
        self._job_id = job_id
        self._total = total
        self._bytes = 0
        self._next = time.monotonic() + EVERY_SECONDS
        self._lock = threading.Lock()
        self._is_noted = False

    def add(self, change: int) -> None:
        """Count bytes that have come, or were thrown away again."""
        with self._lock:
            self._bytes += change
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + EVERY_SECONDS
            self._is_noted = True
            note = NoteProgress(self._job_id, self._bytes, self._total)
        # Nobody waits for it, and a download does not fail because it cannot be noted.
        with suppress(PenstockError):
            self._catalog.submit(note)

    def end(self) -> None:
        """Forget what was noted."""
        if self._is_noted:
            with suppress(PenstockError):
                self._catalog.submit(ForgetProgress(self._job_id))
