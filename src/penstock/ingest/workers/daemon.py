"""Daemons: each claims the items of one stage, works on them, and writes their results.

A daemon that dies loses its locks, and another daemon continues its items.
"""

import errno
import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from msgspec.structs import replace

from penstock.errors import Away, Busy, Conflict, NotFound, PenstockError, Unavailable
from penstock.ingest.context import RETRY_SECONDS, IngestContext, PermanentFailure, Postponed
from penstock.ingest.models import Batch, IngestJob, JobChange
from penstock.ingest.stages import BatchStage, JobStage, RoundStage
from penstock.ingest.telemetry import job_moved, work_on_batch, work_on_job
from penstock.ingest.transitions import move_job
from penstock.ingest.workers.backoff import Backoff, CollectionBackoff
from penstock.states import INGEST_JOB, IngestState
from penstock.telemetry import tracing

log = logging.getLogger(__name__)

_CLAIMED_SECONDS = 1.0  # the amount of work that a daemon claims
_CLAIMED_MAX = 16  # jobs for each thread
_SKIPPED_AT_ONCE = 250
_ONE_AT_A_TIME = Backoff(0.0, is_of_all=True)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_STORED = (
    IngestState.RECORDING,
    IngestState.NOTIFY,
    IngestState.COMPLETED,
)  # states that do not need the working files


class Daemon(ABC):
    """A thread that repeats rounds of work until the worker stops."""

    def __init__(self, name: str, context: IngestContext, poll_seconds: float) -> None:
        self.name = name
        self._context = context
        self._poll_seconds = poll_seconds
        self._trouble = context.runtime.trouble(name)
        self._thread = threading.Thread(target=self._run, name=f"ingest-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait up to `seconds` for running work; return whether it finished."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._context.runtime.is_stopping():
                self._go_round()
        finally:
            self._close()

    def _go_round(self) -> None:
        try:
            busy = self.go_round()
        except (Unavailable, Busy, Conflict) as error:
            # The store is unreachable or busy, or this session expired: all of these pass.
            self._trouble.met(error)
            self._context.runtime.pause(RETRY_SECONDS)
        except Exception:
            log.exception("%s failed and continues", self.name)
            self._context.runtime.pause(RETRY_SECONDS)
        else:
            self._trouble.over()
            if not busy:
                self._context.store.wait(self._poll_seconds)

    @abstractmethod
    def go_round(self) -> bool:
        """Do one round of work; False if there was none."""

    def _close(self) -> None:
        """Finish or release claimed work; a daemon without any does nothing."""
        return


class _Result(NamedTuple):
    """The result of work on a job: its new value, or None with an optional backoff."""

    job: IngestJob
    after: IngestJob | None
    backoff: Backoff | None = None
    seconds: float = 0.0
    was_tried: bool = True


class JobDaemon(Daemon):
    """The daemon of a stage of ingest jobs; it works on several jobs at a time."""

    def __init__(
        self,
        stage: JobStage,
        context: IngestContext,
        *,
        concurrency: int,
        poll_seconds: float,
    ) -> None:
        super().__init__(stage.name, context, poll_seconds)
        self._stage = stage.state
        self._work = stage.work
        self._concurrency = concurrency
        self._pool = ThreadPoolExecutor(concurrency, f"ingest-{stage.name}")
        self._results: queue.SimpleQueue[_Result] = queue.SimpleQueue()
        self._backoff: CollectionBackoff[IngestJob] = CollectionBackoff()
        self._unwritten: list[_Result] = []  # the store was unreachable
        self._claimed_count = 0
        self._usual_seconds = _CLAIMED_SECONDS

    def go_round(self) -> bool:
        """Claim jobs and write the results of finished ones."""
        if self._unwritten:
            self._write()
        room = self._claim_target - self._claimed_count
        # Claims of a few jobs are inefficient, but an idle thread must not wait.
        if room > 0 and (
            self._claimed_count < self._concurrency or room >= self._claim_target // 2
        ):
            self._claim(room)
        if not self._claimed_count:
            return False
        self._collect_results()
        return True

    def _claim(self, room: int) -> None:
        """Claim up to `room` jobs, behind those that are skipped, and start them."""
        store, backoff = self._context.store, self._backoff
        began = time.monotonic()
        selected: list[IngestJob] = []
        while not selected and not self._context.runtime.is_stopping():
            most = max(room, _SKIPPED_AT_ONCE) if backoff.has_backoffs else room
            last = backoff.next_after()
            claimed = store.claim_jobs(self._stage, most, last.position if last else None)
            selected = backoff.select(claimed, room)
            self._claimed_count += len(selected)
            for job in selected:
                self._pool.submit(self._do, job)
            if not claimed:
                break
            if len(selected) < len(claimed):
                ids = {job.id for job in selected}
                store.release([job for job in claimed if job.id not in ids])
        backoff.record_scan(time.monotonic() - began)

    @property
    def _claim_target(self) -> int:
        """The number of jobs to claim: about a second of work, to leave the rest to others."""
        each = max(self._usual_seconds, _CLAIMED_SECONDS / _CLAIMED_MAX)
        return max(1, int(self._concurrency * max(1.0, _CLAIMED_SECONDS / each)))

    def _do(self, job: IngestJob) -> None:
        started = time.perf_counter()
        done = _Result(job, None, was_tried=False)
        try:
            if not self._context.runtime.is_stopping() and not self._backoff.is_backed_off(job):
                with work_on_job(self._context.collections, job):
                    done = self._run_stage(job)
        finally:
            self._results.put(done._replace(seconds=time.perf_counter() - started))

    def _run_stage(self, job: IngestJob) -> _Result:
        self._context.runtime.waits.pop(job.id, None)
        try:
            return _Result(job, self._work(self._context, job))
        except (Postponed, Away) as reason:
            return _Result(job, None, self._context.runtime.postpone(job, reason))
        except Exception as error:
            current = self._current(job)
            if current is None:
                log.info("%s: another worker has continued it meanwhile (%s)", job.id, error)
                return _Result(job, None)
            message = self._reason(job, error)
            if not INGEST_JOB.allows(job.status, IngestState.FAILED):
                return _Result(job, None, self._context.runtime.back_off())
            failed = self._fail(current, message, is_permanent=isinstance(error, PermanentFailure))
            return _Result(job, failed, _ONE_AT_A_TIME if isinstance(error, Unavailable) else None)

    def _current(self, job: IngestJob) -> IngestJob | None:
        """Return the job with the identifiers that its stage may have stored before it failed.

        None if the job is in another stage now and its files may be deleted: this worker lost its
        lock.
        """
        try:
            stored = self._context.store.job(job.id)
        except NotFound:
            return None
        except PenstockError:
            return job
        if stored.status != job.status:
            return None
        is_same = replace(stored, version=job.version, identifiers=job.identifiers) == job
        return stored if is_same else job

    def _reason(self, job: IngestJob, error: Exception) -> str:
        """Return the error message for the person who resumes the job."""
        if isinstance(error, PenstockError):
            return str(error)
        if isinstance(error, OSError) and error.errno in _FULL:
            return f"the disk is full: {error}; free some, and resume it"
        log.error("%s: ingest job %s", self.name, job.id, exc_info=error)
        return f"{type(error).__name__} while {job.status}: {error}"

    def _fail(self, job: IngestJob, message: str, *, is_permanent: bool) -> IngestJob:
        log.warning("%s failed while %s: %s", job.id, job.status, message)
        tracing.fail(message)
        return move_job(
            job,
            IngestState.FAILED,
            self._context.runtime.clock(),
            message=message,
            can_begin_again=not is_permanent,
        )

    def _collect_results(self) -> None:
        """Wait for a finished job, and write all results."""
        try:
            done = [self._results.get(timeout=self._poll_seconds)]
        except queue.Empty:
            return
        while not self._results.empty():
            done.append(self._results.get())
        tried = [each for each in done if each.was_tried]
        for each in tried:
            self._backoff.record(each.job, each.backoff, each.seconds)
        if tried:
            seconds = sum(each.seconds for each in tried) / len(tried)
            self._usual_seconds += (seconds - self._usual_seconds) / 4
        self._unwritten += done
        self._write()

    def _write(self) -> None:
        """Write the results to the store; keep those that fail because it is away."""
        store = self._context.store
        changed = [each for each in self._unwritten if each.after is not None]
        unchanged = [each.job for each in self._unwritten if each.after is None]
        away: list[tuple[_Result, Unavailable]] = []
        outcomes = store.change_jobs([_change(each) for each in changed]) if changed else []
        for each, outcome in zip(changed, outcomes, strict=True):
            if isinstance(outcome, Unavailable):
                away.append((each, outcome))
            elif isinstance(outcome, PenstockError):
                # Another worker has the job, or it was changed: release the lock if it is still
                # ours.
                log.info("%s: %s", each.job.id, outcome)
                unchanged.append(each.job)
            elif outcome is not None:
                job_moved(self._context.collections, each.job, outcome)
        if unchanged:
            store.release(unchanged)
            for job in unchanged:
                self._remove_stale_files(job)
        self._claimed_count -= len(self._unwritten) - len(away)
        self._unwritten = [each for each, _ in away]
        if away:
            raise away[0][1]

    def _remove_stale_files(self, job: IngestJob) -> None:
        """Remove the files of a job that another worker stored meanwhile."""
        try:
            is_stored = self._context.store.job(job.id).status in _STORED
        except NotFound:
            is_stored = True
        except PenstockError:
            return  # the files go with the batch
        if is_stored:
            self._context.storage.remove_job_folder(job)

    def _close(self) -> None:
        self._pool.shutdown(cancel_futures=False)
        while not self._results.empty():
            self._unwritten.append(self._results.get())
        try:
            if self._unwritten:
                self._write()
        except PenstockError as error:
            # The locks end with the session, and other workers repeat the jobs.
            log.warning("%s: %s", self.name, error)


def _change(done: _Result) -> JobChange:
    """Build the change of a claimed job, whose stage may have stored identifiers meanwhile."""
    assert done.after is not None, "a change has a new value"
    claimed = replace(done.job, version=done.after.version, identifiers=done.after.identifiers)
    return JobChange(claimed, done.after)


class BatchDaemon(Daemon):
    """The daemon of a stage of batches; it works on one batch at a time."""

    def __init__(self, stage: BatchStage, context: IngestContext, *, poll_seconds: float) -> None:
        super().__init__(stage.name, context, poll_seconds)
        self._status = stage.state
        self._work = stage.work
        self._backoff: CollectionBackoff[Batch] = CollectionBackoff()

    def go_round(self) -> bool:
        """Claim and work on the oldest batch that is not skipped."""
        store, backoff = self._context.store, self._backoff
        began = time.monotonic()
        last = backoff.next_after()
        most = _SKIPPED_AT_ONCE if backoff.has_backoffs else 1
        claimed = store.claim_batches(self._status, most, last.id if last else None)
        selected = backoff.select(claimed, 1)
        if len(selected) < len(claimed):
            store.release([batch for batch in claimed if batch not in selected])
        backoff.record_scan(time.monotonic() - began)
        for batch in selected:
            began = time.monotonic()
            with work_on_batch(self._context.collections, batch, self.name):
                result = self._do(batch)
            backoff.record(batch, result, time.monotonic() - began)
        return bool(claimed)

    def _do(self, batch: Batch) -> Backoff | None:
        store = self._context.store
        self._context.runtime.waits.pop(batch.id, None)
        try:
            self._work(self._context, batch)
        except (Conflict, NotFound) as error:
            log.info("%s: %s", batch.id, error)
            store.release([batch])
        except (Postponed, Away, Busy) as reason:
            store.release([batch])
            return self._context.runtime.postpone(batch, reason)
        except Unavailable:
            store.release([batch])
            raise
        except Exception:
            store.release([batch])
            log.exception("%s failed on %s and continues", self.name, batch.id)
            return self._context.runtime.back_off()
        return None


class RoundDaemon(Daemon):
    """The daemon of one stage without items."""

    def __init__(self, stage: RoundStage, context: IngestContext, *, poll_seconds: float) -> None:
        super().__init__(stage.name, context, stage.every_seconds or poll_seconds)
        self._run_round = stage.run
        self._is_periodic = stage.every_seconds is not None

    def go_round(self) -> bool:
        """Run one round; pause after it if it is periodic or left something that has to wait."""
        has_to_pause = bool(self._run_round(self._context)) or self._is_periodic
        if has_to_pause:
            self._context.runtime.pause(self._poll_seconds)
        return has_to_pause
