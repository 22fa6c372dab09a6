"""`penstock ingest start`: an ingest starter in its own process."""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from textwrap import fill
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter

from penstock import __version__
from penstock.cli.options import IngestFolder, Objects, ProcessOptions, Queue, option
from penstock.cli.stopping import StopSignals, exit_now
from penstock.config import Settings, mask_url
from penstock.errors import Invalid, Unavailable
from penstock.ingest.context import IngestContext
from penstock.ingest.models import IngestHoldKind
from penstock.ingest.opening import IN_DATABASE
from penstock.ingest.queue.port import BatchFilter, IngestStore
from penstock.ingest.stages import STAGE_NAMES, STAGES, BatchStage, JobStage
from penstock.ingest.workers.pool import POLL_SECONDS, Workers
from penstock.plane import Plane
from penstock.states import BatchState, IngestState
from penstock.telemetry import tracing
from penstock.telemetry.logs import set_up_logs

app = App(
    name="start",
    help_epilogue=f"""Examples:
  penstock ingest start
  penstock ingest start --stages downloading,processing --concurrency 8
  penstock ingest start --once        (for cron)

A worker connects to the database and the queue, as `penstock serve` does, on any
number of machines. Workers of different stages share one --ingest-folder and
one --objects. On SIGTERM or Ctrl-C it finishes or releases running work. A
second signal stops it at once.

{fill(f"The stages: {', '.join(STAGE_NAMES)}.", 80, break_on_hyphens=False)}""",
)

_LOOK_SECONDS = 0.1
_COUNT_SECONDS = 0.25
# Workers poll for work each POLL_SECONDS.
_STILL_SECONDS = 3 * POLL_SECONDS
_REASONS_MAX = 5
_BATCH_STAGES = {stage.name: stage.state for stage in STAGES if isinstance(stage, BatchStage)}

_log = logging.getLogger(__name__)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkerOptions(ProcessOptions):
    """The settings of an ingest starter."""

    queue: Queue = None
    objects: Objects = None
    ingest_folder: IngestFolder = None


WORKER = WorkerOptions()


@app.default
def start(
    *,
    stages: Annotated[str | None, option("only these stages, separated by commas")] = None,
    concurrency: Annotated[int, Parameter(help="how many jobs of a stage at a time")] = 8,
    once: Annotated[bool, option("end when no work is left for it")] = False,
    options: WorkerOptions = WORKER,
) -> None:
    """Start a worker, which processes submitted batches stage by stage."""
    chosen = read_stages(stages)
    if concurrency < 1:
        raise Invalid(f"--concurrency is {concurrency}; write 1 or more")
    settings = options.load().settings
    set_up_logs(settings)
    with Plane.open(settings) as plane, tracing.on(settings.traces, plane.identity):
        workers = Workers(plane.context, chosen, concurrency=concurrency)
        with StopSignals(settings.ingest_session_seconds) as signals:
            workers.start()
            _log.info("%s", _greeting(settings, chosen, concurrency))
            try:
                WorkLoop(plane.context, chosen, signals).wait(once=once)
            finally:
                _log.info("stopping: accepting no more work")
                workers.stop()
    _log.info("stopped: running work is finished or released")
    if workers.hanging:
        exit_now()


def read_stages(text: str | None) -> tuple[str, ...]:
    """Read the names of stages, in the order of the work; default: all."""
    if text is None:
        return STAGE_NAMES
    names = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(names - set(STAGE_NAMES))
    if unknown or not names:
        fault = f"there is no stage {', '.join(unknown)}" if unknown else "--stages is empty"
        raise Invalid(f"{fault}; the stages are {', '.join(STAGE_NAMES)}")
    return tuple(stage for stage in STAGE_NAMES if stage in names)


def _greeting(settings: Settings, stages: Collection[str], concurrency: int) -> str:
    names = "all stages" if len(stages) == len(STAGE_NAMES) else ", ".join(stages)
    database = mask_url(settings.database)
    queue = f"in {database}" if settings.queue == IN_DATABASE else mask_url(settings.queue)
    return (
        f"penstock {__version__} processes {names}, {concurrency} jobs at a time in each; "
        f"queue {queue}, folder {settings.ingest_folder}"
    )


class OpenWork(NamedTuple):
    """The work that waits for a worker.

    Jobs may wait for space for a long time. An unreported batch has no open jobs, and a report
    of it begins soon.
    """

    batches: int = 0
    jobs: int = 0
    for_space: int = 0
    unreported: int = 0


class WorkLoop:
    """A loop that waits while the worker threads run, and counts the open work."""

    def __init__(
        self, context: IngestContext, stages: Collection[str], signals: StopSignals
    ) -> None:
        self._context = context
        self._store = context.store
        self._stages = stages
        self._signals = signals
        self._same = OpenWork()
        self._same_since = 0.0

    def wait(self, *, once: bool) -> None:
        """Wait for a stop signal or, with `once`, until no work is left."""
        while not self._signals.received:
            time.sleep(_COUNT_SECONDS if once else _LOOK_SECONDS)
            if once and self._is_over():
                return

    def _is_over(self) -> bool:
        try:
            return self._is_held() or self._is_done(count_open_work(self._store, self._stages))
        except Unavailable as error:
            _log.warning("cannot find out whether work is left: %s", error)
            return False

    def _is_done(self, open_work: OpenWork) -> bool:
        """Test whether no work is left, or none that any worker could do for a while."""
        if open_work == OpenWork():
            _log.info("no work is left")
            return True
        now = time.monotonic()
        if open_work != self._same:
            self._same, self._same_since = open_work, now
        if now - self._same_since < _STILL_SECONDS:
            return False
        self._same_since = now  # this search takes longer than a count
        waits = dict(self._context.runtime.waits)
        batches, jobs = self._sample(len(waits) + 1)
        if (batches | jobs) - waits.keys():
            return False
        self._log_reasons(open_work, waits, open_work.jobs - len(jobs))
        return True

    def _sample(self, limit: int) -> tuple[set[str], set[str]]:
        """List the first batches and jobs of each state that a worker can process.

        A queue may count entries that no longer exist.
        """
        batches = {
            batch.id
            for name, status in _BATCH_STAGES.items()
            if name in self._stages
            for batch in self._store.batches(BatchFilter(status), limit)
        }
        jobs = {
            job.id
            for stage in STAGES
            if isinstance(stage, JobStage) and stage.name in self._stages
            for job in self._store.waiting(stage.state, limit)
        }
        return batches, jobs

    def _log_reasons(self, open_work: OpenWork, waits: Mapping[str, str], lost: int) -> None:
        """Log why the command ends although work is left."""
        if open_work.for_space:
            folder = self._context.runtime.settings.ingest_folder
            _log.warning("%d jobs wait for space in %s; free some", open_work.for_space, folder)
        for each, reason in islice(waits.items(), _REASONS_MAX):
            _log.warning("%s cannot continue now: %s", each, reason)
        repair = "repair them with: penstock ingest check --repair"
        if lost > 0:
            _log.warning("%d jobs are in the queue and cannot be processed; %s", lost, repair)
        if unreported := _unreported_batches(self._store):
            text = "%d batches have no open jobs and are not reported; %s"
            _log.warning(text, unreported, repair)

    def _is_held(self) -> bool:
        held = next(
            (hold for hold in self._store.holds() if hold.kind is IngestHoldKind.QUEUE), None
        )
        if held is not None:
            _log.warning(
                "the queue is held by %s: %s; release it: penstock ingest release queue",
                held.who,
                held.why,
            )
        return held is not None


def count_open_work(store: IngestStore, stages: Collection[str]) -> OpenWork:
    """Count waiting and running work of these stages.

    The order of the counts is the order of the stages, so that moving work is not missed.
    """
    if "batch-pending" in stages and store.batches(BatchFilter(BatchState.PENDING), 1):
        return OpenWork(batches=1)
    lines = [line for line in store.tally() if line.jobs]
    tally = {line.status: line.jobs for line in lines if line.status in stages}
    for_space = tally.pop(IngestState.PROVISIONING, 0)
    batches = sum(
        len(store.batches(BatchFilter(status), 1))
        for name, status in _BATCH_STAGES.items()
        if name in stages
    )
    is_last = "batch-reporting" in stages and not tally
    unreported = _unreported_batches(store) if is_last else 0
    return OpenWork(batches, sum(tally.values()), for_space, unreported)


def _unreported_batches(store: IngestStore) -> int:
    """Count batches without open jobs that are not reported yet; some queues notice late."""
    ended = {IngestState.COMPLETED, IngestState.FAILED}
    before: str | None = None
    count = 0
    while batches := store.batches(BatchFilter(BatchState.PROCESSING), 100, before):
        count += sum({line.status for line in store.tally(each.id)} <= ended for each in batches)
        before = batches[-1].id
    return count
