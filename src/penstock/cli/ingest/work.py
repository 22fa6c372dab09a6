"""`penstock ingest work`: the daemons of ingest in a process of their own."""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from textwrap import fill
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter

from penstock import __version__
from penstock.cli.options import Config, Database, switch
from penstock.cli.stopping import StopSignals, leave
from penstock.config import Loaded, Settings, load, mask_url
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
    name="work",
    help_epilogue=f"""Examples:
  penstock ingest work
  penstock ingest work --stages downloading,processing --concurrency 8
  penstock ingest work --once        (for cron)

It works straight on the database and the queue, as `penstock serve` does, on
any number of machines; workers of several stages share one --ingest-folder and
one --objects. It stops on SIGTERM and Ctrl-C: what is at hand is finished or
given back, and others go on with it. A second signal stops it at once.

{fill(f"The stages: {', '.join(STAGE_NAMES)}.", 80, break_on_hyphens=False)}""",
)

_LOOK_SECONDS = 0.1
_COUNT_SECONDS = 0.25
# Whatever a worker can take is looked at each POLL_SECONDS.
_STILL_SECONDS = 3 * POLL_SECONDS
_REASONS_MAX = 5
_BATCH_STAGES = {stage.name: stage.state for stage in STAGES if isinstance(stage, BatchStage)}

_log = logging.getLogger(__name__)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkFlags:
    """What a worker may be told on the command line."""

    database: Database = None
    queue: Annotated[
        str | None, Parameter(help="where the queue is: database, or zookeeper://HOST:PORT/CHROOT")
    ] = None
    objects: Annotated[
        str | None, Parameter(help="where objects are stored: file:///FOLDER, s3://BUCKET, …")
    ] = None
    ingest_folder: Annotated[
        str | None, Parameter(help="where ingest jobs have their working folders")
    ] = None
    config: Config = None
    log_level: Annotated[
        str | None, Parameter(help="the least serious thing to log: debug, info, warning, error")
    ] = None
    log_format: Annotated[str | None, Parameter(help="how to write log lines: text, json")] = None

    def load(self) -> Loaded:
        """The settings with these flags."""
        return load(asdict(self))


WORK = WorkFlags()


@app.default
def work(
    *,
    stages: Annotated[
        str | None, Parameter(help="only these, divided by commas", show_default=False)
    ] = None,
    concurrency: Annotated[int, Parameter(help="how many jobs of a stage at a time")] = 8,
    once: Annotated[bool, switch("end when nothing is left that it can do")] = False,
    flags: WorkFlags = WORK,
) -> None:
    """Work on what was submitted, stage by stage, until told to stop."""
    wanted = read_stages(stages)
    if concurrency < 1:
        raise Invalid(f"--concurrency {concurrency} lets nothing be done; write 1 or more")
    settings = flags.load().settings
    set_up_logs(settings)
    with Plane.open(settings) as plane, tracing.on(settings.traces, plane.identity):
        workers = Workers(plane.context, wanted, concurrency=concurrency)
        with StopSignals(settings.ingest_session_seconds) as signals:
            workers.start()
            _log.info("%s", _greeting(settings, wanted, concurrency))
            try:
                Watch(plane.context, wanted, signals).stay(once=once)
            finally:
                _log.info("stopping: taking up nothing more")
                workers.stop()
    _log.info("stopped: what was at hand is finished or given back")
    if workers.hanging:
        leave()


def read_stages(text: str | None) -> tuple[str, ...]:
    """The stages that were named, in the order of the work; all if none were."""
    if text is None:
        return STAGE_NAMES
    named = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(named - set(STAGE_NAMES))
    if unknown or not named:
        there_is = f"there is no stage {', '.join(unknown)}" if unknown else "--stages names none"
        raise Invalid(f"{there_is}; the stages are {', '.join(STAGE_NAMES)}")
    return tuple(stage for stage in STAGE_NAMES if stage in named)


def _greeting(settings: Settings, stages: Collection[str], concurrency: int) -> str:
    names = "all stages" if len(stages) == len(STAGE_NAMES) else ", ".join(stages)
    database = mask_url(settings.database)
    queue = f"in {database}" if settings.queue == IN_DATABASE else mask_url(settings.queue)
    return (
        f"penstock {__version__} works on {names}, {concurrency} jobs at a time in each; "
        f"queue {queue}, folder {settings.ingest_folder}"
    )


class Left(NamedTuple):
    """How much waits for a worker.

    Those that wait for space may do so for long. A batch that has no job under way and does not
    know it yet is told so soon.
    """

    batches: int = 0
    jobs: int = 0
    for_space: int = 0
    unreported: int = 0


class Watch:
    """Stays while the daemons work, and looks whether there is anything left for them."""

    def __init__(
        self, context: IngestContext, stages: Collection[str], signals: StopSignals
    ) -> None:
        self._context = context
        self._store = context.store
        self._stages = stages
        self._signals = signals
        self._same = Left()
        self._same_since = 0.0

    def stay(self, *, once: bool) -> None:
        """Return when told to stop or, if it is for once, when nothing is left."""
        while not self._signals.received:
            time.sleep(_COUNT_SECONDS if once else _LOOK_SECONDS)
            if once and self._is_over():
                return

    def _is_over(self) -> bool:
        try:
            return self._is_held() or self._is_done(left_to_do(self._store, self._stages))
        except Unavailable as error:
            _log.warning("whether something is left is not known: %s", error)
            return False

    def _is_done(self, left: Left) -> bool:
        """Whether nothing is left, or for a while nothing that this or another worker can do."""
        if left == Left():
            _log.info("nothing is left to do")
            return True
        now = time.monotonic()
        if left != self._same:
            self._same, self._same_since = left, now
        if now - self._same_since < _STILL_SECONDS:
            return False
        self._same_since = now  # to look takes longer than to count
        waits = dict(self._context.runtime.waits)
        batches, jobs = self._found(len(waits) + 1)
        if (batches | jobs) - waits.keys():
            return False
        self._tell(left, waits, left.jobs - len(jobs))
        return True

    def _found(self, some: int) -> tuple[set[str], set[str]]:
        """The first batches and jobs of each state that a worker has or can have.

        Not all that is counted is there: a queue may have entries that stand for nothing.
        """
        batches = {
            batch.id
            for name, status in _BATCH_STAGES.items()
            if name in self._stages
            for batch in self._store.batches(BatchFilter(status), some)
        }
        jobs = {
            job.id
            for stage in STAGES
            if isinstance(stage, JobStage) and stage.name in self._stages
            for job in self._store.waiting(stage.state, some)
        }
        return batches, jobs

    def _tell(self, left: Left, waits: Mapping[str, str], lost: int) -> None:
        """Why it ends although something is left."""
        if left.for_space:
            folder = self._context.runtime.settings.ingest_folder
            _log.warning("%d jobs wait for space in %s; free some", left.for_space, folder)
        for each, reason in islice(waits.items(), _REASONS_MAX):
            _log.warning("%s cannot go on now: %s", each, reason)
        repair = "put it right with: penstock ingest check --repair"
        if lost > 0:
            _log.warning("%d jobs stand in the queue and cannot be taken; %s", lost, repair)
        if unreported := _about_to_be_reported(self._store):
            text = "%d batches have no job under way and are not reported; %s"
            _log.warning(text, unreported, repair)

    def _is_held(self) -> bool:
        held = next(
            (hold for hold in self._store.holds() if hold.kind is IngestHoldKind.QUEUE), None
        )
        if held is not None:
            _log.warning("the queue is held by %s: %s; nothing can be done", held.who, held.why)
        return held is not None


def left_to_do(store: IngestStore, stages: Collection[str]) -> Left:
    """What waits for one of these stages, or is being worked on in it.

    It counts in the order in which things move, so that what moves on meanwhile is not missed.
    """
    if "batch-pending" in stages and store.batches(BatchFilter(BatchState.PENDING), 1):
        return Left(batches=1)
    found = [line for line in store.tally() if line.jobs]
    tally = {line.status: line.jobs for line in found if line.status in stages}
    for_space = tally.pop(IngestState.PROVISIONING, 0)
    batches = sum(
        len(store.batches(BatchFilter(status), 1))
        for name, status in _BATCH_STAGES.items()
        if name in stages
    )
    is_last = "batch-reporting" in stages and not tally
    unreported = _about_to_be_reported(store) if is_last else 0
    return Left(batches, sum(tally.values()), for_space, unreported)


def _about_to_be_reported(store: IngestStore) -> int:
    """Batches that have no job under way but do not know it yet; some queues tell them late."""
    ended = {IngestState.COMPLETED, IngestState.FAILED}
    before: str | None = None
    count = 0
    while batches := store.batches(BatchFilter(BatchState.PROCESSING), 100, before):
        count += sum({line.status for line in store.tally(each.id)} <= ended for each in batches)
        before = batches[-1].id
    return count
