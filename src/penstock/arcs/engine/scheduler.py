"""The engine: claims lots of arcs and runs them. Several engines share the work."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from penstock.arcs.commands import ClaimArcLots, SettleKeys
from penstock.arcs.engine.leases import BEATS, renewal_trouble, try_renewal
from penstock.arcs.engine.lot_run import LotRun
from penstock.arcs.engine.outage import Outage
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.outputs.state_keys import KeyRepair
from penstock.arcs.queries import all_arcs
from penstock.arcs.rows import ArcRow, UnsettledRow
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.clock import Clock
from penstock.errors import Busy, PenstockError, Unavailable
from penstock.objects import Objects
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
SETTLE_SECONDS = 1.0
SETTLED_AT_ONCE = 1000  # lots recorded in one write
REPAIR_SECONDS = 10.0


class Engine:
    """An engine that runs arcs on an executor, a limited number of lots at a time."""

    def __init__(
        self,
        catalog: WriteQueue,
        objects: Objects,
        executor: TaskExecutor,
        clock: Clock,
        *,
        owner: str,
        database: str | None = None,
        concurrency: int = 4,
        sweep_seconds: float = SWEEP_SECONDS,
        arcs: Callable[[ArcRow], bool] = lambda arc: True,
        rules: CommandRules = DEFAULT_RULES,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._catalog = catalog
        self._objects = objects
        self._executor = executor
        self._clock = clock
        self._owner = owner
        self._database = database
        self._concurrency = concurrency
        self._sweep_seconds = sweep_seconds
        self._wanted = arcs
        self._rules = rules
        self._ended = ended  # called after each lot, published or not
        self._outage = Outage(objects.probe, executor.probe)
        self._threads = ThreadPoolExecutor(concurrency, "arc")
        self._running: dict[str, LotRun] = {}
        self._changed = threading.Condition()
        self._news = True
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._loop = threading.Thread(target=self._run, name="arc-engine", daemon=True)
        self._heart = threading.Thread(target=self._beat, name="arc-heart", daemon=True)
        self._repair = KeyRepair(catalog, objects)
        self._settled: deque[UnsettledRow] = deque()
        self._key_threads = [
            threading.Thread(target=self._settle_keys, name="arc-keys", daemon=True),
            threading.Thread(target=self._repair_keys, name="arc-repair", daemon=True),
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to claim lots."""
        self._loop.start()
        self._heart.start()
        for thread in self._key_threads:
            thread.start()

    def stop(self) -> None:
        """Claim no more lots; finish running tasks, release lots that have not begun."""
        self._stopping.set()
        self.wake()
        if self._loop.is_alive():
            self._loop.join()
        self._threads.shutdown()
        self._over.set()
        for thread in (self._heart, *self._key_threads):
            if thread.is_alive():
                thread.join()

    def wake(self) -> None:
        """Look for lots now, because the state of a lot has changed."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    @property
    def running(self) -> int:
        """The number of lots that run here."""
        return len(self._running)

    def look(self) -> int:
        """Claim ready lots and run them; return how many."""
        begun = 0
        if not self._outage.is_over():
            return 0
        with self._catalog.read() as tx:
            arcs = [row for row in all_arcs(tx) if self._wanted(row)]
        for row in arcs:
            free = self._concurrency - len(self._running)
            if free < 1 or self._stopping.is_set():
                break
            try:
                begun += self._begin(row, free)
            except (Busy, Unavailable):
                raise
            except PenstockError as refusal:  # other arcs are not affected
                log.warning("no lot of %s/%s is claimed: %s", row.namespace, row.name, refusal)
        return begun

    def _begin(self, row: ArcRow, most: int) -> int:
        command = ClaimArcLots(row.namespace, row.name, self._owner, most)
        claimed = self._catalog.submit(command).result()
        for claim in claimed.claims:
            lot_run = LotRun(
                claimed.arc,
                claimed.job_id,
                claim,
                self._catalog,
                self._objects,
                self._executor,
                self._clock,
                self._stopping.is_set,
                self._outage,
                self._database,
                self._rules,
            )
            self._running[claim.id] = lot_run
            self._threads.submit(self._execute, lot_run)
        return len(claimed.claims)

    def _run(self) -> None:
        trouble = logs.Trouble(log, "the engine could not look for work")
        while not self._stopping.is_set():
            with self._changed:
                if not self._news:
                    self._changed.wait(self._sweep_seconds)
                self._news = False
            try:
                if len(self._running) < self._concurrency:
                    self.look()
                    trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("the engine failed to look for work; retrying")

    def _execute(self, lot_run: LotRun) -> None:
        try:
            lot_run.run()
        except Exception:
            claim = lot_run.claim
            with logs.about(lot=claim.lot, run=claim.id, job=f"{claim.namespace}/{claim.job}"):
                log.exception("lot %s of %s", claim.lot, lot_run.arc.name)
        finally:
            if lot_run.is_settled:
                self._settled.append(lot_run.unsettled)
            self._running.pop(lot_run.claim.id, None)
            self._ended()
            self.wake()

    def _settle_keys(self) -> None:
        """Record in batches that the state keys of lots follow the database."""
        trouble = logs.Trouble(log, "the state keys of lots were not recorded as written; retrying")
        is_over = False
        while not is_over:
            is_over = self._over.wait(SETTLE_SECONDS)
            try:
                while self._settled:
                    rows = [
                        self._settled[n] for n in range(min(len(self._settled), SETTLED_AT_ONCE))
                    ]
                    self._catalog.submit(SettleKeys(tuple(rows))).result()
                    for _ in rows:
                        self._settled.popleft()
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("the state keys of lots were not recorded as written; retrying")

    def _repair_keys(self) -> None:
        """Repair the state keys of lots whose engine died, at the start and regularly."""
        trouble = logs.Trouble(log, "state keys were not repaired; retrying")
        while not self._over.is_set():
            try:
                self._repair.run(self._over.is_set)
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("state keys were not repaired; retrying")
            self._over.wait(REPAIR_SECONDS)

    def _beat(self) -> None:
        """Renew the leases of running lots, until the last has ended."""
        trouble = renewal_trouble()
        while not self._over.wait(self._beat_seconds()):
            for lot_run in list(self._running.values()):
                try_renewal(lot_run.renew_lease, trouble)

    def _beat_seconds(self) -> float:
        leases = [each.claim.lease_seconds for each in list(self._running.values())]
        return (
            min(leases, default=1) / BEATS
        )  # a lot that is claimed meanwhile may have a shorter lease
