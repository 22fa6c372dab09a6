"""All daemons of one process, and the heartbeat that keeps their locks."""

import logging
import threading
import time
from collections.abc import Collection, Sequence

from penstock.errors import Invalid, PenstockError
from penstock.ingest.context import IngestContext
from penstock.ingest.stages import (
    batch_pending,
    clean_up,
    downloading,
    estimating,
    letters,
    lots,
    notify,
    pending,
    processing,
    provisioning,
    recording,
    reporting,
)
from penstock.ingest.workers.daemon import BatchDaemon, Daemon, JobDaemon, RoundDaemon
from penstock.states import BatchState, IngestState

log = logging.getLogger(__name__)

_JOB_WORK = {
    IngestState.PENDING: pending.work,
    IngestState.ESTIMATING: estimating.work,
    IngestState.DOWNLOADING: downloading.work,
    IngestState.PROCESSING: processing.work,
    IngestState.RECORDING: recording.work,
    IngestState.NOTIFY: notify.work,
}
_BATCH_WORK = {
    "batch-pending": (BatchState.PENDING, batch_pending.work),
    "batch-reporting": (BatchState.REPORTING, reporting.work),
    "batch-update-reporting": (BatchState.UPDATE_REPORTING, reporting.work),
}
_LOTS = "lots"
_LOTS_SECONDS = 5.0
_LETTERS = "letters"  # with the stages that send some
_LETTERS_SECONDS = 5.0
_CLEAN_UP = "clean-up"
_CLEAN_UP_SECONDS = 60.0
POLL_SECONDS = 1.0
STOP_SECONDS_MAX = 5.0  # container platforms kill what has not stopped after 10 s

STAGE_NAMES = (
    *_BATCH_WORK,
    *(str(s) for s in _JOB_WORK),
    str(IngestState.PROVISIONING),
    _LOTS,
    _CLEAN_UP,
)


class Workers:
    """Daemons for some stages, or for all."""

    def __init__(
        self,
        context: IngestContext,
        stages: Collection[str] = STAGE_NAMES,
        *,
        concurrency: int = 4,
        poll_seconds: float = POLL_SECONDS,
        stop_seconds_max: float = STOP_SECONDS_MAX,
    ) -> None:
        unknown = sorted(set(stages) - set(STAGE_NAMES))
        if unknown:
            raise Invalid(
                f"there is no stage {', '.join(unknown)}; the stages are {', '.join(STAGE_NAMES)}"
            )
        self._context = context
        self._daemons = list(_daemons(context, stages, concurrency, poll_seconds))
        self._heart = threading.Thread(target=self._beat, name="ingest-heart", daemon=True)
        self._beat_seconds = context.settings.ingest_session_seconds / 3
        self._over = threading.Event()
        self._stop_seconds_max = stop_seconds_max
        self.left: tuple[str, ...] = ()  # daemons whose work hung when they were to stop

    def start(self) -> None:
        """Begin to work, if there is a folder to work in."""
        self._context.working_folder()
        self._context.store.keep_alive()
        self._heart.start()
        for daemon in self._daemons:
            daemon.start()

    def stop(self) -> None:
        """Take nothing more, and finish or give up what is at hand.

        What hangs, because a server does not answer, is left: its locks go with the session. Then
        the process has to end without waiting for its threads.
        """
        self._context.stopping.set()
        self._context.store.wake()
        deadline = time.monotonic() + self._stop_seconds_max
        hanging = (
            daemon.name
            for daemon in self._daemons
            if not daemon.join(max(0.0, deadline - time.monotonic()))
        )
        self.left = tuple(dict.fromkeys(hanging))
        self._over.set()
        if self._heart.is_alive():
            self._heart.join(max(0.0, deadline - time.monotonic()))
        if self.left:
            log.warning("%s: what is at hand hangs, and is left to others", ", ".join(self.left))

    def _beat(self) -> None:
        while not self._over.wait(self._beat_seconds):
            try:
                self._context.store.keep_alive()
            except PenstockError as error:
                log.warning("the heartbeat was not heard: %s", error)
            except Exception:
                log.exception("the heartbeat was not heard")


def _daemons(
    context: IngestContext, stages: Collection[str], concurrency: int, poll_seconds: float
) -> Sequence[Daemon]:
    daemons: list[Daemon] = [
        BatchDaemon(name, status, work, context, poll_seconds=poll_seconds)
        for name, (status, work) in _BATCH_WORK.items()
        # Pending batches are read from their depositors' servers: one that hangs is not to hold up
        # everybody who submits something.
        for _ in range(concurrency if status is BatchState.PENDING else 1)
        if name in stages
    ]
    daemons += [
        JobDaemon(stage, work, context, concurrency=concurrency, poll_seconds=poll_seconds)
        for stage, work in _JOB_WORK.items()
        if stage in stages
    ]
    if IngestState.PROVISIONING in stages:
        name = str(IngestState.PROVISIONING)
        daemons.append(RoundDaemon(name, _provision, context, every_seconds=poll_seconds))
    if _LOTS in stages:
        daemons.append(RoundDaemon(_LOTS, _close_lots, context, every_seconds=_LOTS_SECONDS))
    if any(name in stages for name in _BATCH_WORK):
        daemons.append(RoundDaemon(_LETTERS, _try_letters, context, every_seconds=_LETTERS_SECONDS))
    if _CLEAN_UP in stages:
        daemons.append(RoundDaemon(_CLEAN_UP, _clean_up, context, every_seconds=_CLEAN_UP_SECONDS))
    return daemons


def _provision(context: IngestContext) -> bool:
    _, stayed = provisioning.go_round(context)
    return stayed > 0


def _close_lots(context: IngestContext) -> bool:
    lots.go_round(context)
    return True


def _try_letters(context: IngestContext) -> bool:
    letters.go_round(context)
    return True


def _clean_up(context: IngestContext) -> bool:
    clean_up.go_round(context)
    return True
