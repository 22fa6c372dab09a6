"""All daemons of one process, and the heartbeat that keeps their locks."""

import logging
import threading
import time
from collections.abc import Collection, Iterator

from penstock.errors import Invalid, PenstockError
from penstock.ingest.context import IngestContext
from penstock.ingest.stages import (
    LETTERS,
    STAGE_NAMES,
    STAGES,
    BatchStage,
    JobStage,
    Stage,
)
from penstock.ingest.workers.daemon import BatchDaemon, Daemon, JobDaemon, RoundDaemon

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
STOP_SECONDS_MAX = 5.0  # container platforms kill what has not stopped after 10 s


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
        self._beat_seconds = context.runtime.settings.ingest_session_seconds / 3
        self._over = threading.Event()
        self._stop_seconds_max = stop_seconds_max
        self.left: tuple[str, ...] = ()  # daemons whose work hung when they were to stop

    def start(self) -> None:
        """Begin to work, if there is a folder to work in."""
        self._context.storage.working_folder()
        self._context.store.keep_alive()
        self._heart.start()
        for daemon in self._daemons:
            daemon.start()

    def stop(self) -> None:
        """Take nothing more, and finish or give up what is at hand.

        What hangs, because a server does not answer, is left: its locks go with the session. Then
        the process has to end without waiting for its threads.
        """
        self._context.runtime.stopping.set()
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
