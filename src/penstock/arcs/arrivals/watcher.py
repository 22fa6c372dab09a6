"""The watcher: scans every location where objects arrive, again and again.

Two watchers do no harm: a decision of one makes void a concurrent decision of the other.

Some keys sort by time and some stores list in order. Then a round lists only keys of open
intervals, and only when one closes. It lists all keys at the start and every `whole_seconds`, to
find late and changed objects. In other cases, each round lists the whole location.
"""

import logging
import threading
from collections.abc import Callable
from typing import Self

from penstock.arcs.arrivals.arrival import find_closing_end
from penstock.arcs.arrivals.commands import RecordLanding
from penstock.arcs.arrivals.key_patterns import KeyPattern
from penstock.arcs.arrivals.rows import ArrivalRow, all_arrivals, landings_of
from penstock.arcs.arrivals.scan import (
    ArrivalRound,
    Landing,
    Marks,
    RoundResult,
    Untaken,
    WatcherStopped,
)
from penstock.catalog.rows import replace
from penstock.clock import SECOND, Clock, Micros
from penstock.errors import Invalid, PenstockError, Unavailable
from penstock.lots.rows import LandingRow
from penstock.objects import Objects
from penstock.objects.keys import local_folder
from penstock.objects.uris import KeyForm, find_key_form, open_store
from penstock.schema.arrivals import Late
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
WHOLE_SECONDS = 600


def open_location(url: str) -> Objects:
    """Open the store of a location that others write to. A folder must exist.

    A folder created here would look like a location without objects.
    """
    folder = local_folder(url)
    if folder is not None and not folder.is_dir():
        raise Unavailable(f"there is no folder {folder}; make it, or mount what is to be there")
    return open_store(url)


def find_arrival_form(objects: Objects, url: str) -> KeyForm:
    """Return the form of keys at a location, which our own store must not be in."""
    form = find_key_form(objects, url)
    folder, folder_key = local_folder(url), objects.path("x")
    if folder is None:
        is_above = f"{objects.url}/".startswith(form.uri(""))
    else:
        is_above = folder_key is not None and folder_key.parent.is_relative_to(folder.absolute())
    if is_above:
        raise Invalid(
            f"{url} cannot receive arrivals: it contains the object store {objects.url}; use a "
            "separate folder"
        )
    return form


class Watcher:
    """A thread that makes lots of arrived objects."""

    def __init__(
        self,
        catalog: WriteQueue,
        objects: Objects,
        clock: Clock,
        *,
        every_seconds: float = EVERY_SECONDS,
        whole_seconds: int = WHOLE_SECONDS,
        open_at: Callable[[str], Objects] = open_location,
    ) -> None:
        self._catalog = catalog
        self._objects = objects
        self._clock = clock
        self._every_seconds = every_seconds
        self._whole_seconds = whole_seconds
        self._open_at = open_at
        self._whole_at: dict[tuple[str, Micros], Micros] = {}  # by declaration
        self._marks: dict[tuple[str, Micros], Marks] = {}
        self._named_at: dict[tuple[str, Micros], tuple[Micros, Untaken]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-watcher", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and return when no round is running."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def go_round(self, now: Micros) -> RoundResult:
        """Scan every arrival once. A failure does not stop the others."""
        with self._catalog.read() as tx:
            rows = all_arrivals(tx)
            landings = landings_of(tx, [row.dataset_id for row in rows])
        seen = RoundResult()
        for row in rows:
            if self._stopped.is_set():
                break
            with logs.about(dataset=f"{row.namespace}/{row.name}"):
                try:
                    seen += self._seen(row, landings.get(row.dataset_id), now)
                except WatcherStopped:
                    break
        return seen

    def _seen(self, row: ArrivalRow, landing: LandingRow | None, now: Micros) -> RoundResult:
        stored = landing or LandingRow(row.dataset_id)
        try:
            seen, untaken = self._look(row, now)
        except PenstockError as error:
            log.warning("arrivals of %s/%s: %s", row.namespace, row.name, error)
            self._note(stored, replace(stored, error=str(error)))
            return RoundResult(failed=1)
        observed = replace(stored, error="", failed_at=0)
        if untaken is not None:
            facts = untaken.count, untaken.example, untaken.reason
            observed = LandingRow(row.dataset_id, "", 0, *facts)
            if untaken.count and observed != stored:
                log.warning(
                    "arrivals of %s/%s: %d objects are in no lot, such as %r: %s",
                    row.namespace, row.name, *facts,
                )  # fmt: skip
        self._note(stored, observed)
        return seen

    def _note(self, stored: LandingRow, landing: LandingRow) -> None:
        """Record the problem of a location if it has changed."""
        if landing != stored:
            self._catalog.submit(RecordLanding(landing)).result()

    def _look(self, row: ArrivalRow, now: Micros) -> tuple[RoundResult, Untaken | None]:
        """Return the result of a scan and, if it was complete, the objects that cannot be taken."""
        arrival = row.arrival
        form = find_arrival_form(self._objects, arrival.location)
        store = self._open_at(arrival.location)
        declared = row.dataset_id, row.updated_at
        before = self._whole_at.get(declared)
        after = ""
        if before is not None and now < before + self._whole_seconds * SECOND:
            after = _first_key(row, store)
            if after and find_closing_end(arrival, row.open_from, now) == row.open_from:
                return RoundResult(), None
            if arrival.late is Late.NEXT:
                after = ""  # late objects wait for a closing lot, and one closes
        landing = Landing(store, form, after, self._marks.setdefault(declared, Marks()))
        is_stopped = self._stopped.is_set
        looking = ArrivalRound(self._catalog, self._objects, row, landing, now, is_stopped)
        seen = looking.run()
        if after or seen.has_more:
            return seen, None
        untaken = looking.untaken + self._nameless(declared, store, now)
        self._whole_at[declared] = now
        return seen, untaken

    def _nameless(self, declared: tuple[str, Micros], store: Objects, now: Micros) -> Untaken:
        """Find files whose names cannot be keys; only now and then, because it costs a listing."""
        at, untaken = self._named_at.get(declared, (None, Untaken()))
        if at is None or now >= at + self._whole_seconds * SECOND:
            untaken = Untaken()
            for each in store.nameless():
                path = str(each.path).encode(errors="backslashreplace").decode()
                untaken += Untaken(1, path, each.reason)
            self._named_at[declared] = now, untaken
        return untaken

    def _run(self) -> None:
        has_more = False
        trouble = logs.Trouble(log, "the watcher failed; retrying")
        while not self._stopped.wait(0 if has_more else self._every_seconds):
            has_more = False
            try:
                has_more = self.go_round(self._clock()).has_more
                trouble.over()
            except PenstockError as error:
                trouble.met(error)
            except Exception:
                log.exception("the watcher failed; retrying")


def _first_key(row: ArrivalRow, store: Objects) -> str:
    """Return the first key of open intervals; empty if keys do not sort by time."""
    arrival = row.arrival
    is_sorted = store.path("x") is None  # only folders list without order
    if not is_sorted or arrival.cut is None or not arrival.pattern:
        return ""
    return KeyPattern(arrival.pattern).before(row.open_from)
