"""Everything that one process does for arcs: engine, watcher, deliverer and steppers."""

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
_RETRY_SECONDS = 1.0  # between tries while the database is away


class ArcWorker:
    """An engine that wakes on lot events, with a watcher, a deliverer and steppers.

    Several workers share the work. Tasks on other machines renew their leases at `lease_url`. Each
    of `steppers` steps the operations of one kind and returns their number.
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
        self._step_seconds = step_seconds  # between steps without an event
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
            ended=self._step_soon,
        )
        self._watcher = Watcher(catalog, objects, clock)
        self._deliverer = Deliverer(catalog, database, clock, secrets=secrets)
        self._steppers = steppers
        self._has_open = False  # whether the last step had any operation
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._listener: Listener | None = None
        self._threads = [
            threading.Thread(target=self._listen, name="arc-listener", daemon=True),
            threading.Thread(target=self._step, name="arc-steppers", daemon=True),
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin all work."""
        for thread in self._threads:
            thread.start()
        self._watcher.start()
        self._deliverer.start()
        self._engine.start()

    def stop(self) -> None:
        """Begin nothing more; running work finishes, and other lots are released."""
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

    def take_arrivals(self) -> None:
        """Make lots of all arrived objects before other work begins."""
        while self._watcher.go_round(self._clock()).has_more:
            log.info("more objects have arrived")

    def is_idle(self) -> bool:
        """Whether no lot of its arcs is ready or running, here or elsewhere."""
        self._step_operations()
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
        """Wake the engine when a lot is published, here or elsewhere."""
        trouble = logs.Trouble(log, "no notifications: lots are looked for at intervals only")
        while not self._stopping.is_set():
            try:
                with self._database.listen(CHANNEL) as listener:
                    self._listener = listener
                    trouble.over()
                    self._follow(listener)
            except PenstockError as error:
                trouble.met(error)
                self._stopping.wait(_RETRY_SECONDS)
            finally:
                self._listener = None

    def _follow(self, listener: Listener) -> None:
        seen = -1
        while not self._stopping.is_set():
            if not listener.wait(_STEP_SECONDS):
                continue
            with self._catalog.read() as tx:
                last = last_id(tx)
            # A listener wakes on any commit, our own included.
            if last != seen:
                seen = last
                self._step_soon()
                self._engine.wake()

    def _step_soon(self) -> None:
        """Step operations soon, if any are open: a lot has ended and left a free slot.

        Engines would be idle for most of the time until the next tick.
        """
        if self._has_open:
            self._due.set()

    def _step(self) -> None:
        """Step operations at each tick, and when a lot has ended."""
        trouble = logs.Trouble(log, "operations were not stepped; retrying")
        while True:
            self._due.wait(self._step_seconds)
            if self._stopping.is_set():
                return
            self._due.clear()
            try:
                if self._step_operations():
                    self._engine.wake()
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("operations were not stepped; retrying")

    def _step_operations(self) -> int:
        count = sum(step() for step in self._steppers)
        self._has_open = count > 0
        return count
