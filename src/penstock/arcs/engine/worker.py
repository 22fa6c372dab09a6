"""All that one process does for arcs: the engine, and what sets it going."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Self

from penstock.access.secrets import Secrets
from penstock.arcs.arrivals.watcher import Watcher
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.queries import all_arcs
from penstock.arcs.rows import ArcRow
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.clock import Clock
from penstock.db import Database, Transaction
from penstock.db.database import Listener
from penstock.errors import PenstockError
from penstock.locks.queries.claims import get_lot_job
from penstock.lots.outbox import CHANNEL, last_id
from penstock.objects import Objects
from penstock.store.write_queue import WriteQueue
from penstock.subscribers.delivery import Deliverer
from penstock.telemetry import logs

log = logging.getLogger(__name__)

_STEP_SECONDS = 1.0
_AGAIN_SECONDS = 1.0  # after which a database that was away is asked again


class ArcWorker:
    """An engine that is woken by what happens to lots, a watcher, a deliverer, and backfills.

    Several stations share the work. `lease_url` is where tasks on other machines keep their lease.
    Each of `steppers` steps the operations of one kind and returns their number.
    """

    def __init__(
        self,
        catalog: WriteQueue,
        database: Database,
        objects: Objects,
        executor: TaskExecutor,
        clock: Clock,
        *,
        owner: str,
        concurrency: int,
        lease_url: str | None = None,
        wanted: Callable[[ArcRow], bool] = lambda arc: True,
        steppers: Sequence[Callable[[], int]] = (),
        rules: CommandRules = DEFAULT_RULES,
        step_seconds: float = _STEP_SECONDS,
        secrets: Secrets | None = None,
    ) -> None:
        self._catalog = catalog
        self._database = database
        self._clock = clock
        self._step_seconds = step_seconds  # after which steppers are called, whatever happened
        self._wanted = wanted
        self._engine = Engine(
            catalog,
            objects,
            executor,
            clock,
            owner=owner,
            database=lease_url,
            concurrency=concurrency,
            arcs=wanted,
            rules=rules,
            ended=self._move_soon,
        )
        self._watcher = Watcher(catalog, objects, clock)
        self._deliverer = Deliverer(catalog, database, clock, secrets=secrets)
        self._steppers = steppers
        self._moving = False  # whether a mover had anything to move when it was last asked
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._listener: Listener | None = None
        self._threads = [
            threading.Thread(target=self._listen, name="arc-ear", daemon=True),
            threading.Thread(target=self._step, name="arc-steppers", daemon=True),
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()
        self._watcher.start()
        self._deliverer.start()
        self._engine.start()

    def stop(self) -> None:
        """Take up nothing more; what has begun ends, what has not is given back."""
        self._stopping.set()
        self._due.set()
        listener = self._listener
        if listener is not None:
            listener.wake()
        self._watcher.stop()
        self._engine.stop()
        self._deliverer.stop()
        for thread in self._threads:
            thread.join()

    def take_in(self) -> None:
        """Make lots of all that has arrived, before anything else begins."""
        while self._watcher.go_round(self._clock()).has_more:
            log.info("more has arrived")

    def is_idle(self) -> bool:
        """Whether no lot of its arcs is ready or being worked on, by anybody."""
        self._move_on()
        with self._catalog.read() as tx:
            arcs = [row for row in all_arcs(tx) if self._wanted(row)]
            if self._is_busy(tx, arcs):
                return False
        return self._engine.running == 0

    def _is_busy(self, tx: Transaction, arcs: Sequence[ArcRow]) -> bool:
        names = {row.job_id: row for row in arcs}
        if any(job_id in names for job_id, _ in tx.fetch("running_lots")):
            return True
        for (job_id,) in tx.fetch("arcs_with_ready_lots", ids=list(names)) if names else ():
            job = get_lot_job(tx, names[job_id].namespace, names[job_id].name)
            gates = [job_id, *job.input_ids, *job.output_ids]
            if not tx.fetch("read_held_gates", ids=gates):
                return True
        return False

    def _listen(self) -> None:
        """Wake the engine as soon as something was published, here or elsewhere."""
        trouble = logs.Trouble(log, "lots are looked for once in a while only")
        while not self._stopping.is_set():
            try:
                with self._database.listen(CHANNEL) as listener:
                    self._listener = listener
                    trouble.over()
                    self._hear(listener)
            except PenstockError as error:
                trouble.met(error)
                self._stopping.wait(_AGAIN_SECONDS)
            finally:
                self._listener = None

    def _hear(self, listener: Listener) -> None:
        heard = -1
        while not self._stopping.is_set():
            if not listener.wait(_STEP_SECONDS):
                continue
            with self._catalog.read() as tx:
                last = last_id(tx)
            # A listener may tell of any commit, our own included.
            if last != heard:
                heard = last
                self._move_soon()
                self._engine.wake()

    def _move_soon(self) -> None:
        """Move on what is moved on, if anything is: a lot has ended, and leaves room for another.

        To wait for the next tick would leave engines idle for most of it.
        """
        if self._moving:
            self._due.set()

    def _step(self) -> None:
        """Move backfills on, and what else is kept going."""
        trouble = logs.Trouble(log, "backfills were not moved on, and will be")
        while True:
            self._due.wait(self._step_seconds)
            if self._stopping.is_set():
                return
            self._due.clear()
            try:
                if self._move_on():
                    self._engine.wake()
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("backfills were not moved on, and will be")

    def _move_on(self) -> int:
        moved = sum(step() for step in self._steppers)
        self._moving = moved > 0
        return moved
