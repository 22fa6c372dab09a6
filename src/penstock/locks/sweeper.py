"""The thread that looks after what time alone changes.

Every server has one. Two that sweep at once do no harm: the second finds nothing left.
"""

import logging
import threading

from msgspec.structs import asdict

from penstock import logs
from penstock.catalog.catalog import Catalog
from penstock.clock import Clock
from penstock.errors import PenstockError
from penstock.locks.commands.sweep import Limits, Sweep, Swept

log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps once in a while, and only when something is due."""

    def __init__(self, catalog: Catalog, *, clock: Clock, every_seconds: float) -> None:
        self._catalog = catalog
        self._clock = clock
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-sweeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Return when no sweep is under way."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        trouble = logs.Trouble(log, "leases were not looked at, and will be again")
        while not self._stopped.wait(self._every_seconds):
            try:
                while self._is_due() and self._sweep().has_more:
                    pass
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("leases were not looked at, and will be again")

    def _sweep(self) -> Swept:
        swept = self._catalog.submit(Sweep()).result()
        for run_id, lot in swept.lost:
            with logs.about(lot=lot, run=run_id):
                log.warning("the lease of lot %s ran out, and its run has failed", lot)
        if swept.shortened:
            log.warning(
                "%d leases came from a clock that was far ahead; they last as long as they were "
                "given for, from now on: look after the clocks of the servers",
                swept.shortened,
            )
        return swept

    def _is_due(self) -> bool:
        with self._catalog.read() as tx:
            found = tx.fetch_one("sweep_is_due", **asdict(Limits.at(self._clock())))
        return bool(found and found[0])
