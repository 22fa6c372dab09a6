"""Daemons: each takes what waits in one stage, has it worked on, and writes down what became of it.

A daemon that dies loses its locks, and another one goes on.
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

_AT_HAND_SECONDS = 1.0  # as much work as a daemon takes at once
_AT_HAND_MAX = 16  # for each thread
_PASSED_AT_ONCE = 250
_ONE_AT_A_TIME = Backoff(0.0, is_of_all=True)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_STORED = (IngestState.RECORDING, IngestState.NOTIFY, IngestState.COMPLETED)  # without its files


class Daemon(ABC):
    """A thread that goes round until it is told to stop."""

    def __init__(self, name: str, context: IngestContext, poll_seconds: float) -> None:
        self.name = name
        self._context = context
        self._poll_seconds = poll_seconds
        self._trouble = context.runtime.trouble(name)
        self._thread = threading.Thread(target=self._run, name=f"ingest-{name}", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait until what is at hand is done or given up, in vain not for long; whether it is."""
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
            # The store cannot be reached, is busy, or took this session for dead: it will be back.
            self._trouble.met(error)
            self._context.runtime.pause(RETRY_SECONDS)
        except Exception:
            log.exception("%s stumbled, and goes on", self.name)
            self._context.runtime.pause(RETRY_SECONDS)
        else:
            self._trouble.over()
            if not busy:
                self._context.store.wait(self._poll_seconds)

    @abstractmethod
    def go_round(self) -> bool:
        """Do what there is to do; False if there was nothing."""

    def _close(self) -> None:
        """Give up what is at hand: nothing, unless a daemon has something."""
        return


class _Done(NamedTuple):
    """A job that was worked on, and what it became; None: it stays, and may have to rest."""

    job: IngestJob
    after: IngestJob | None
    rest: Backoff | None = None
    seconds: float = 0.0
    was_tried: bool = True


class JobDaemon(Daemon):
    """One stage of ingest jobs, several at a time."""

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
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
        self._resting: CollectionBackoff[IngestJob] = CollectionBackoff()
        self._unwritten: list[_Done] = []  # because the store could not be reached
        self._at_hand = 0
        self._usual_seconds = _AT_HAND_SECONDS

    def go_round(self) -> bool:
        """Claim, have it done, write down what is done."""
        if self._unwritten:
            self._write()
        room = self._room - self._at_hand
        # Few at a time cost more than they gain, but an idle thread is never kept waiting.
        if room > 0 and (self._at_hand < self._concurrency or room >= self._room // 2):
            self._claim(room)
        if not self._at_hand:
            return False
        self._write_down()
        return True

    def _claim(self, room: int) -> None:
        """Have as many jobs worked on as there is room for, behind those that are passed over."""
        store, resting = self._context.store, self._resting
        began = time.monotonic()
        going: list[IngestJob] = []
        while not going and not self._context.runtime.is_stopping():
            most = max(room, _PASSED_AT_ONCE) if resting.is_any else room
            last = resting.behind()
            claimed = store.claim_jobs(self._stage, most, last.place if last else None)
            going = resting.going(claimed, room)
            self._at_hand += len(going)
            for job in going:
                self._pool.submit(self._do, job)
            if not claimed:
                break
            if len(going) < len(claimed):
                ids = {job.id for job in going}
                store.let_go([job for job in claimed if job.id not in ids])
        resting.took(time.monotonic() - began)

    @property
    def _room(self) -> int:
        """How many jobs to have at hand: about a second's work, so that others get the rest."""
        each = max(self._usual_seconds, _AT_HAND_SECONDS / _AT_HAND_MAX)
        return max(1, int(self._concurrency * max(1.0, _AT_HAND_SECONDS / each)))

    def _do(self, job: IngestJob) -> None:
        started = time.perf_counter()
        done = _Done(job, None, was_tried=False)
        try:
            if not self._context.runtime.is_stopping() and not self._resting.is_too_early(job):
                with work_on_job(self._context.collections, job):
                    done = self._worked_on(job)
        finally:
            self._done.put(done._replace(seconds=time.perf_counter() - started))

    def _worked_on(self, job: IngestJob) -> _Done:
        self._context.runtime.waits.pop(job.id, None)
        try:
            return _Done(job, self._work(self._context, job))
        except (Postponed, Away) as reason:
            return _Done(job, None, self._context.runtime.postpone(job, reason))
        except Exception as error:
            noted = self._noted(job)
            if noted is None:
                log.info("%s: another has gone on with it meanwhile (%s)", job.id, error)
                return _Done(job, None)
            message = self._reason(job, error)
            if not INGEST_JOB.allows(job.status, IngestState.FAILED):
                return _Done(job, None, self._context.runtime.back_off())
            failed = self._failed(noted, message, for_good=isinstance(error, PermanentFailure))
            return _Done(job, failed, _ONE_AT_A_TIME if isinstance(error, Unavailable) else None)

    def _noted(self, job: IngestJob) -> IngestJob | None:
        """The job with the identifier that its stage may have written down before it failed.

        None if it is no longer this stage's, and its files may be gone: this worker slept.
        """
        try:
            found = self._context.store.job(job.id)
        except NotFound:
            return None
        except PenstockError:
            return job
        if found.status != job.status:
            return None
        is_same = replace(found, version=job.version, identifiers=job.identifiers) == job
        return found if is_same else job

    def _reason(self, job: IngestJob, error: Exception) -> str:
        """What to say of an error to whoever resumes the job."""
        if isinstance(error, PenstockError):
            return str(error)
        if isinstance(error, OSError) and error.errno in _FULL:
            return f"the disk is full: {error}; free some, and resume it"
        log.error("%s: ingest job %s", self.name, job.id, exc_info=error)
        return f"{type(error).__name__} while {job.status}: {error}"

    def _failed(self, job: IngestJob, message: str, *, for_good: bool) -> IngestJob:
        log.warning("%s failed while %s: %s", job.id, job.status, message)
        tracing.fail(message)
        return move_job(
            job,
            IngestState.FAILED,
            self._context.runtime.clock(),
            message=message,
            can_begin_again=not for_good,
        )

    def _write_down(self) -> None:
        """Wait for something to be done, and write down all that is."""
        try:
            done = [self._done.get(timeout=self._poll_seconds)]
        except queue.Empty:
            return
        while not self._done.empty():
            done.append(self._done.get())
        tried = [each for each in done if each.was_tried]
        for each in tried:
            self._resting.note(each.job, each.rest, each.seconds)
        if tried:
            seconds = sum(each.seconds for each in tried) / len(tried)
            self._usual_seconds += (seconds - self._usual_seconds) / 4
        self._unwritten += done
        self._write()

    def _write(self) -> None:
        """Have the store know what is done; what it cannot be told is kept for the next round."""
        store = self._context.store
        changed = [each for each in self._unwritten if each.after is not None]
        left = [each.job for each in self._unwritten if each.after is None]
        away: list[tuple[_Done, Unavailable]] = []
        outcomes = store.change_jobs([_change(each) for each in changed]) if changed else []
        for each, outcome in zip(changed, outcomes, strict=True):
            if isinstance(outcome, Unavailable):
                away.append((each, outcome))
            elif isinstance(outcome, PenstockError):
                # Another has it now, or it has changed: if the lock is still ours, it is freed.
                log.info("%s: %s", each.job.id, outcome)
                left.append(each.job)
            elif outcome is not None:
                job_moved(self._context.collections, each.job, outcome)
        if left:
            store.let_go(left)
            for job in left:
                self._tidy_up(job)
        self._at_hand -= len(self._unwritten) - len(away)
        self._unwritten = [each for each, _ in away]
        if away:
            raise away[0][1]

    def _tidy_up(self, job: IngestJob) -> None:
        """Remove the files of a job that another worker has stored while this one was at it."""
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
        while not self._done.empty():
            self._unwritten.append(self._done.get())
        try:
            if self._unwritten:
                self._write()
        except PenstockError as error:
            # The locks go with the session, and others do it again.
            log.warning("%s: %s", self.name, error)


def _change(done: _Done) -> JobChange:
    """What became of a claimed job; its stage may have written down an identifier on the way."""
    assert done.after is not None, "what stays as it is, is not changed"
    noted = replace(done.job, version=done.after.version, identifiers=done.after.identifiers)
    return JobChange(noted, done.after)


class BatchDaemon(Daemon):
    """One state of batches, one at a time."""

    def __init__(self, stage: BatchStage, context: IngestContext, *, poll_seconds: float) -> None:
        super().__init__(stage.name, context, poll_seconds)
        self._status = stage.state
        self._work = stage.work
        self._resting: CollectionBackoff[Batch] = CollectionBackoff()

    def go_round(self) -> bool:
        """Take the oldest that waits, and is not passed over."""
        store, resting = self._context.store, self._resting
        began = time.monotonic()
        last = resting.behind()
        most = _PASSED_AT_ONCE if resting.is_any else 1
        claimed = store.claim_batches(self._status, most, last.id if last else None)
        going = resting.going(claimed, 1)
        if len(going) < len(claimed):
            store.let_go([batch for batch in claimed if batch not in going])
        resting.took(time.monotonic() - began)
        for batch in going:
            began = time.monotonic()
            with work_on_batch(self._context.collections, batch, self.name):
                rest = self._do(batch)
            resting.note(batch, rest, time.monotonic() - began)
        return bool(claimed)

    def _do(self, batch: Batch) -> Backoff | None:
        store = self._context.store
        self._context.runtime.waits.pop(batch.id, None)
        try:
            self._work(self._context, batch)
        except (Conflict, NotFound) as error:
            log.info("%s: %s", batch.id, error)
            store.let_go([batch])
        except (Postponed, Away, Busy) as reason:
            store.let_go([batch])
            return self._context.runtime.postpone(batch, reason)
        except Unavailable:
            store.let_go([batch])
            raise
        except Exception:
            store.let_go([batch])
            log.exception("%s stumbled over %s, and goes on", self.name, batch.id)
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
