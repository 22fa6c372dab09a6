"""The daemons of one process, and the heartbeat that renews their session."""

import logging
import threading
import time
from collections.abc import Collection, Iterator

from penstock.errors import Invalid, PenstockError
from penstock.ingest.context import IngestContext
from penstock.ingest.stages import LETTERS, STAGE_NAMES, STAGES, BatchStage, JobStage, Stage
from penstock.ingest.workers.daemon import BatchDaemon, Daemon, JobDaemon, RoundDaemon

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
STOP_SECONDS_MAX = 5.0  # container platforms kill a process after 10 s


class Workers:
    """The daemons of some or all stages."""

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
        self._beat_seconds = context.runtime.settings.ingest_session_seconds / 3
        self._stopped = threading.Event()
        self._stop_seconds_max = stop_seconds_max
        self.hanging: tuple[str, ...] = ()  # daemons whose work did not end at the stop

    def start(self) -> None:
        """Check the working folder and start the daemons."""
        self._context.storage.working_folder()
        self._context.store.keep_alive()
        self._heart.start()
        for daemon in self._daemons:
            daemon.start()

    def stop(self) -> None:
        """Stop claiming, and finish or release the claimed work.

        Work that hangs on a server is abandoned: its locks end with the session. Then the process
        has to exit without waiting for its threads.
        """
        self._context.runtime.stopping.set()
        self._context.store.wake()
        deadline = time.monotonic() + self._stop_seconds_max
        names = (
            daemon.name
            for daemon in self._daemons
            if not daemon.join(max(0.0, deadline - time.monotonic()))
        )
        self.hanging = tuple(dict.fromkeys(names))
        self._stopped.set()
        if self._heart.is_alive():
            self._heart.join(max(0.0, deadline - time.monotonic()))
        if self.hanging:
            log.warning(
                "%s: running work hangs; other workers will repeat it", ", ".join(self.hanging)
            )

    def _beat(self) -> None:
        while not self._stopped.wait(self._beat_seconds):
            try:
                self._context.store.keep_alive()
            except PenstockError as error:
                log.warning("the heartbeat failed: %s", error)
            except Exception:
                log.exception("the heartbeat failed")


def _daemons(
    context: IngestContext, names: Collection[str], concurrency: int, poll_seconds: float
) -> Iterator[Daemon]:
    stages: list[Stage] = [stage for stage in STAGES if stage.name in names]
    if any(isinstance(stage, BatchStage) for stage in stages):
        stages.append(LETTERS)
    for stage in stages:
        if isinstance(stage, JobStage):
            yield JobDaemon(stage, context, concurrency=concurrency, poll_seconds=poll_seconds)
        elif isinstance(stage, BatchStage):
            for _ in range(concurrency if stage.is_concurrent else 1):
                yield BatchDaemon(stage, context, poll_seconds=poll_seconds)
        else:
            yield RoundDaemon(stage, context, poll_seconds=poll_seconds)
