"""The progress of long downloads.

A worker saves it every few seconds in a table of its own, wherever the queue is: a change of the
job itself would conflict with the worker's lock. A shorter download saves nothing.
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
PROGRESS_LIFETIME: Final[Micros] = DAY  # rows of killed workers are deleted after it


class DownloadProgress(Row, frozen=True):
    """The bytes of a job's files that have arrived; `total` is 0 if it is unknown."""

    job_id: str
    bytes: int
    total: int
    at: Micros


class SaveProgress(Write, frozen=True):
    """Save the progress of a download."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    job_id: str
    bytes: int
    total: int

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute(
            "put_ingest_progress", job_id=self.job_id, bytes=self.bytes, total=self.total, now=now
        )


class DeleteProgress(Write, frozen=True):
    """Delete the progress of a download that ended."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    job_id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute("forget_ingest_progress", job_id=self.job_id)


class DeleteOldProgress(Write, frozen=True):
    """Delete the progress that killed workers left."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute("forget_old_ingest_progress", before=now - PROGRESS_LIFETIME)


def read_progress(tx: Transaction, job_ids: Iterable[str]) -> dict[str, DownloadProgress]:
    """Return the saved progress of these jobs, by job id."""
    rows = tx.rows(DownloadProgress, "ingest_progress_by_jobs", ids=list(job_ids))
    return {row.job_id: row for row in rows}


class ProgressMeter:
    """A counter of one job's downloaded bytes, for any thread; it saves them every few seconds."""

    def __init__(self, catalog: WriteQueue, job_id: str, total: int) -> None:
        self._catalog = catalog
        self._job_id = job_id
        self._total = total
        self._bytes = 0
        self._next = time.monotonic() + EVERY_SECONDS
        self._lock = threading.Lock()
        self._is_saved = False

    def add(self, change: int) -> None:
        """Count bytes that arrived, or, if negative, were discarded."""
        with self._lock:
            self._bytes += change
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + EVERY_SECONDS
            self._is_saved = True
            note = SaveProgress(self._job_id, self._bytes, self._total)
        # The result is not awaited: a download must not fail because its progress cannot be saved.
        with suppress(PenstockError):
            self._catalog.submit(note)

    def end(self) -> None:
        """Delete the saved progress."""
        if self._is_saved:
            with suppress(PenstockError):
                self._catalog.submit(DeleteProgress(self._job_id))
