"""One scan of a location where the objects of a dataset arrive.

Every decision is stored before readers can see it. First the manifests are written, under an
attempt of their own. Then one transaction publishes the lots and records their objects. A process
that dies before the transaction has changed nothing; after it, the next scan reads the records.

A scan costs one listing, and one lookup by key for each thousand objects.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from penstock import ids
from penstock.arcs.arrivals.arrival import (
    ArrivalStep,
    ArrivedRow,
    Candidate,
    Decision,
    LotChange,
    Placed,
    Sighting,
    closing_lots,
    decide,
    divide_decision,
    find_closing_end,
    is_unchanged,
    lot_span,
)
from penstock.arcs.arrivals.commands import ArrivedLot, PublishArrivals
from penstock.arcs.arrivals.key_patterns import KeyPattern
from penstock.arcs.arrivals.rows import ArrivalRow
from penstock.arcs.commands import SettleKeys
from penstock.arcs.queries import manifest_rows
from penstock.arcs.rows import UnsettledRow
from penstock.catalog.rows import replace
from penstock.clock import SECOND, Micros, format_time
from penstock.errors import Conflict, NotFound, PenstockError, Unavailable
from penstock.locks.lock_rules import writable
from penstock.locks.rows import EXTERNAL_JOB, StatusRow
from penstock.lots.manifest_files import put_manifest, show_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest, ManifestNote
from penstock.objects import Objects, StoredEntry
from penstock.objects.keys import refusal
from penstock.objects.uris import KeyForm, find_object
from penstock.schema.arrivals import TimeFrom
from penstock.schema.lots import Status
from penstock.states import ManifestState
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs, tracing

log = logging.getLogger(__name__)

T = TypeVar("T")

U = TypeVar("U")

_AT_ONCE_MAX = 8
PAGE_LENGTH = 1000


class RoundResult(Struct, frozen=True, kw_only=True):
    """The result of a round.

    `skipped` objects have no lot: their keys do not match the pattern, or their time is before the
    start. `has_more` asks for another round at once. `failed` counts the arrivals that could not be
    scanned.
    """

    assigned: int = 0
    closed: int = 0
    empty: int = 0
    late: int = 0
    refused: int = 0
    skipped: int = 0
    failed: int = 0
    has_more: bool = False

    def __add__(self, other: "RoundResult") -> "RoundResult":
        return RoundResult(
            assigned=self.assigned + other.assigned,
            closed=self.closed + other.closed,
            empty=self.empty + other.empty,
            late=self.late + other.late,
            refused=self.refused + other.refused,
            skipped=self.skipped + other.skipped,
            failed=self.failed + other.failed,
            has_more=self.has_more or other.has_more,
        )


class Untaken(Struct, frozen=True):
    """Objects that cannot go into lots: their number, an example, and the reason."""

    count: int = 0
    example: str = ""
    reason: str = ""

    def __add__(self, other: "Untaken") -> "Untaken":
        first = self if self.count else other
        return Untaken(self.count + other.count, first.example, first.reason)


class Readable(NamedTuple):
    """The objects of a listing that can be read under their keys, and those that cannot."""

    entries: list[StoredEntry]
    untaken: Untaken


class Marks:
    """Listed entries that cannot be read under their keys: folder marks, and keys with a leading
    `/`. Each is checked once.

    A folder mark is an empty object whose key ends in `/`. Listings show it without the `/`.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Micros], bool] = {}
        self._gone: set[tuple[str, Micros]] = set()

    def note_gone(self, uri: str, modified: Micros) -> None:
        """Record that an object was listed but could not be read."""
        self._gone.add((uri, modified))

    def is_gone(self, uri: str, modified: Micros) -> bool:
        """Whether an object, as it is listed now, could not be read."""
        return (uri, modified) in self._gone

    def pass_over(self, store: Objects, entries: Iterable[StoredEntry]) -> Readable:
        """Drop folder marks, and separate keys that cannot be read."""
        readable, untaken = list[StoredEntry](), Untaken()
        for entry in entries:
            if reason := refusal(entry.key):
                untaken += Untaken(1, entry.key, reason)
            elif entry.size or not self._is_mark(store, entry):
                readable.append(entry)
        return Readable(readable, untaken)

    def _is_mark(self, store: Objects, entry: StoredEntry) -> bool:
        key = (entry.key, entry.modified)
        if key not in self._known:
            is_bucket = store.path(entry.key) is None
            self._known[key] = is_bucket and not store.exists(entry.key)
        return self._known[key]


class Landing(Struct, frozen=True):
    """A location where objects arrive, and the key after which it is listed."""

    store: Objects
    form: KeyForm
    after: str = ""
    marks: Marks = field(default_factory=Marks)


class WatcherStopped(Exception):
    """The watcher must end. Unpublished work has not begun."""


class ObjectReader:
    """A reader of arrived objects, as streams; larger objects than its limit get no digest."""

    def __init__(
        self,
        landing: Landing,
        bytes_max: int,
        is_stopped: Callable[[], bool],
        *,
        has_empty_lots: bool = False,
    ) -> None:
        self._landing = landing
        self._bytes_max = bytes_max
        self._is_stopped = is_stopped
        self._has_empty_lots = has_empty_lots

    def read(self, step: ArrivalStep) -> ArrivalStep:
        """Return the step with digests of the gained objects, without objects that are gone.

        A change without objects is dropped, unless empty intervals get lots.
        """
        fresh = [row for change in step.lots for row in change.add]
        digested = iter(map_parallel(self._digested, fresh))
        lots = []
        for change in step.lots:
            rows = [next(digested) for _ in change.add]
            present = tuple(row for row in rows if row is not None)
            if present or change.drop or (change.is_new and self._has_empty_lots):
                lots.append(replace(change, add=present))
        return replace(step, lots=tuple(lots))

    def _digested(self, row: ArrivedRow) -> ArrivedRow | None:
        key = self._landing.form.key(row.uri)
        assert key is not None, "a listed key is at the location"
        if row.size > self._bytes_max or not self._bytes_max:
            return row
        size, digest = 0, hashlib.sha256()
        try:
            with self._landing.store.get_stream(key) as chunks:
                for chunk in chunks:
                    if self._is_stopped():
                        raise WatcherStopped
                    size += len(chunk)
                    digest.update(chunk)
        except NotFound:
            self._landing.marks.note_gone(row.uri, row.modified)
            return None
        if size != row.size:
            return row  # it changed after the listing, so it is late and is read again
        return replace(row, digest=f"sha-256:{digest.hexdigest()}")


def map_parallel(work: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Apply a function to all items in parallel: a store has latency and serves several."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(_AT_ONCE_MAX, len(items)), "arrivals") as threads:
        return list(threads.map(work, items))


class ArrivalRound:
    """One scan of one arrival."""

    def __init__(
        self,
        catalog: WriteQueue,
        objects: Objects,
        row: ArrivalRow,
        landing: Landing,
        now: Micros,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._catalog = catalog
        self._objects = objects
        self._row = row
        self._arrival = row.arrival
        self._landing = landing
        self._now = now
        self._pattern = KeyPattern(row.arrival.pattern) if row.arrival.pattern else None
        self._until = find_closing_end(row.arrival, row.open_from, now)
        self._ref = DatasetRef(row.namespace, row.name, row.arrival.version)
        self._reader = ObjectReader(
            landing,
            row.arrival.digest_bytes_max,
            is_stopped,
            has_empty_lots=row.arrival.has_empty_lots,
        )
        self._skipped = 0
        self.untaken = Untaken()
        self._there: frozenset[str] = frozenset()

    def run(self) -> RoundResult:
        """Scan, decide, and write the decision."""
        row = self._row
        candidates = self._candidates()
        self._there = self._closed_before(candidates)
        decision = self._decide(self._due(candidates))
        seen, revision = RoundResult(skipped=self._skipped), row.revision
        opened = row.open_from
        decided = divide_decision(self._arrival, decision, row.open_from, self._until, self._there)
        for step in map(self._reader.read, decided):
            try:
                revision, empty = self._take(step, revision)
            except Conflict as refusal:
                log.info("arrivals of %s/%s: %s", row.namespace, row.name, refusal)
                if not self._was_overtaken(revision):
                    raise
                return seen + RoundResult(has_more=True)
            seen += _told(step, empty, self._closed(step, opened))
            opened = step.open_from
        limit = find_closing_end(self._arrival, self._until, self._now)
        return seen + RoundResult(has_more=self._until > row.open_from and limit > self._until)

    def _was_overtaken(self, revision: int) -> bool:
        """Whether another decision came first; if not, a new scan would not help."""
        with self._catalog.read() as tx:
            rows = tx.rows(ArrivalRow, "arrivals_by_ids", ids=[self._row.dataset_id])
        return any(row.revision != revision for row in rows)

    def _closed(self, step: ArrivalStep, opened: Micros) -> int:
        if self._arrival.cut is None:
            return sum(change.is_new for change in step.lots)
        return (step.open_from - opened) // self._arrival.cut.length

    def _candidates(self) -> list[Candidate]:
        """Return the listed objects whose current content is in no lot."""
        candidates: list[Candidate] = []
        landing = self._landing
        for page in _pages(landing.store.list(after=landing.after), PAGE_LENGTH):
            entries, odd = landing.marks.pass_over(landing.store, page)
            homes = {landing.form.uri(entry.key): (entry, self._home(entry)) for entry in entries}
            placed = {uri: home for uri, (_, home) in homes.items() if home is not None}
            self._skipped += len(homes) - len(placed) + odd.count
            self.untaken += odd
            self._note_unfit(entry.key for entry, home in homes.values() if home is None)
            rows = self._known(list(placed))
            for uri, (entry, home) in homes.items():
                mark = entry.etag or f"{entry.modified}-{entry.size}"
                seen = Sighting(uri, entry.size, mark, entry.modified)
                row = rows.get(uri)
                if home is None or (row is not None and is_unchanged(seen, row)):
                    continue
                if landing.marks.is_gone(uri, entry.modified):
                    self.untaken += Untaken(1, entry.key, "it is listed, but cannot be read")
                    continue
                if row is not None and row.state == Placed.REFUSED:
                    row = None  # its current content was not refused
                candidates.append(Candidate(seen, home, row, is_late=row is not None))
        return candidates

    def _home(self, entry: StoredEntry) -> str | None:
        """Return the lot of an object by its time or key; None if it has none."""
        if self._arrival.cut is None:
            assert self._pattern is not None, "lots without an interval are named by keys"
            return self._pattern.lot_of(entry.key) if entry.modified >= self._row.start else None
        at: Micros | None = entry.modified
        if self._arrival.time is TimeFrom.EVENT and self._pattern is not None:
            at = self._pattern.time_of(entry.key)
        return self._arrival.cut.lot_at(at) if at is not None and at >= self._row.start else None

    def _note_unfit(self, keys: Iterable[str]) -> None:
        """Count objects whose keys do not match; objects before the start do not count."""
        if self._pattern is None:
            return
        for key in keys:
            if reason := self._pattern.refusal(key):
                self.untaken += Untaken(1, key, reason)

    def _known(self, uris: list[str]) -> dict[str, ArrivedRow]:
        if not uris:
            return {}
        with self._catalog.read() as tx:
            rows = tx.rows(
                ArrivedRow, "arrived_objects_by_uris", dataset_id=self._row.dataset_id, uris=uris
            )
        return {row.uri: row for row in rows}

    def _closed_before(self, candidates: Iterable[Candidate]) -> frozenset[str]:
        """Return closed lots whose intervals would close now.

        The start was moved, or the arrival was declared again. A lot that a person registered has
        no manifest, and closes as if it did not exist.
        """
        cut = self._arrival.cut
        if cut is None:
            return frozenset()
        lots: Iterable[str] = {each.home for each in candidates}
        if self._arrival.has_empty_lots:
            lots = cut.lots(self._row.open_from, self._until)
        versions = {row.version_id: lot for lot, row in self._statuses(lots).items()}
        with self._catalog.read() as tx:
            noted = manifest_rows(tx, [version for version in versions if version is not None])
        return frozenset(versions[version] for version in noted)

    def _closing(self, decision: Decision) -> list[LotChange]:
        return closing_lots(self._arrival, decision, self._row.open_from, self._until, self._there)

    def _due(self, candidates: list[Candidate]) -> list[Candidate]:
        if self._arrival.cut is None:
            return self._due_by_name(candidates)
        due = []
        starts = {lot: lot_span(lot).start for lot in {each.home for each in candidates}}
        for each in candidates:
            start = starts[each.home]
            if each.is_late or start < self._row.open_from or each.home in self._there:
                due.append(Candidate(each.seen, each.home, each.row, is_late=True))
            elif start < self._until:
                due.append(each)
        return due

    def _due_by_name(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return due candidates of named lots. An existing lot is closed; another closes when its
        newest object is old enough.
        """
        statuses = self._statuses(each.home for each in candidates)
        newest: dict[str, Micros] = {}
        for each in candidates:
            newest[each.home] = max(newest.get(each.home, 0), each.seen.modified)
        quiet = self._now - self._arrival.grace_seconds * SECOND
        due = []
        for each in candidates:
            if each.is_late or each.home in statuses:
                due.append(Candidate(each.seen, each.home, each.row, is_late=True))
            elif newest[each.home] <= quiet:
                due.append(each)
        return due

    def _decide(self, candidates: Sequence[Candidate]) -> Decision:
        """Decide, without lots that cannot be published now because a person holds them."""
        decision = self._decision(candidates)
        new = self._closing(decision)
        lots = dict.fromkeys([*decision.lots, *(change.lot for change in new)])
        shut = {lot for lot, row in self._statuses(lots).items() if not _may_publish(row)}
        if not shut:
            return decision
        log.warning(
            "arrivals of %s/%s: lot %s cannot be published now; it waits, and so do %d others",
            self._row.namespace, self._row.name, min(shut), len(shut) - 1,
        )  # fmt: skip
        closing = [change.lot for change in new if change.lot in shut]
        if closing and self._arrival.cut is not None:
            self._until = lot_span(closing[0]).start
        return self._decision([each for each in candidates if not self._waits(each, shut)])

    def _waits(self, each: Candidate, shut: set[str]) -> bool:
        lot = each.row.lot if each.row is not None else each.home
        if {lot, each.home} & shut:
            return True
        return (
            self._arrival.cut is not None
            and not each.is_late
            and lot_span(each.home).start >= self._until
        )

    def _decision(self, candidates: Sequence[Candidate]) -> Decision:
        cut = self._arrival.cut
        closing = cut.lots(self._row.open_from, self._until) if cut is not None else iter(())
        first = next((lot for lot in closing if lot not in self._there), None)
        return decide(self._arrival, self._row.dataset_id, candidates, first, self._now)

    def _statuses(self, lots: Iterable[str]) -> dict[str, StatusRow]:
        wanted = sorted(set(lots))
        if not wanted:
            return {}
        with self._catalog.read() as tx:
            rows = tx.rows(StatusRow, "lot_outputs", dataset_id=self._row.dataset_id, lots=wanted)
        return {row.lot: row for row in rows}

    def _take(self, step: ArrivalStep, revision: int) -> tuple[int, int]:
        """Write one step; return the revision after it, and the number of empty lots."""
        attempt = ids.new_id()
        contents, gone = self._contents(step)
        manifests = [self._manifest(lot, rows, attempt) for lot, rows in contents.items()]
        written = map_parallel(lambda each: put_manifest(self._objects, each)[1], manifests)
        notes = dict(zip(contents, written, strict=True))
        command = PublishArrivals(
            self._row.namespace,
            self._row.name,
            revision,
            step.open_from,
            tuple(ArrivedLot(lot, note) for lot, note in notes.items()),
            (*step.refused, *(row for change in step.lots for row in change.add)),
            gone,
        )
        try:
            after = self._catalog.submit(command).result()
        except Unavailable:
            raise  # the transaction may have been committed, and then needs these manifests
        except PenstockError:
            for note in notes.values():
                self._objects.delete(note.key)
            raise
        self._tell(notes)
        map_parallel(
            lambda each: show_manifest(self._objects, each[0], self._ref, each[1]), [*notes.items()]
        )
        dataset_id = self._row.dataset_id
        rows = tuple(UnsettledRow(dataset_id, lot, note.attempt) for lot, note in notes.items())
        self._catalog.submit(SettleKeys(rows)).result()
        new = {change.lot for change in step.lots if change.is_new}
        return after, sum(not rows for lot, rows in contents.items() if lot in new)

    def _tell(self, notes: Mapping[str, ManifestNote]) -> None:
        """Log the published lots, with trace spans: these lots have no earlier span."""
        dataset = f"{self._row.namespace}/{self._row.name}"
        for lot, note in notes.items():
            with logs.about(lot=lot), tracing.span("lot.publish", lot=lot, dataset=dataset):
                log.info("lot %s is published: %s, %d objects", lot, note.state, note.uris)

    def _contents(self, step: ArrivalStep) -> tuple[dict[str, list[ArrivedRow]], tuple[str, ...]]:
        lots = [change.lot for change in step.lots]
        contents: dict[str, dict[str, ArrivedRow]] = {lot: {} for lot in lots}
        for row in self._held(lots):
            contents[row.lot][row.uri] = row
        fresh = {row.uri for change in step.lots for row in change.add}
        uris = [uri for rows in contents.values() for uri in rows if uri not in fresh]
        exists = dict(zip(uris, map_parallel(self._is_there, uris), strict=True))
        gone = tuple(uri for uri, is_there in exists.items() if not is_there)
        for change in step.lots:
            for uri in (*change.drop, *gone):
                contents[change.lot].pop(uri, None)
            contents[change.lot].update((row.uri, row) for row in change.add)
        return {lot: [rows[uri] for uri in sorted(rows)] for lot, rows in contents.items()}, gone

    def _held(self, lots: Sequence[str]) -> list[ArrivedRow]:
        if not lots:
            return []
        with self._catalog.read() as tx:
            return tx.rows(
                ArrivedRow, "arrived_objects_of_lots", dataset_id=self._row.dataset_id, lots=lots
            )

    def _is_there(self, uri: str) -> bool:
        """Whether an object still exists under the location that a lot has it from."""
        store, key = self._landing.store, self._landing.form.key(uri)
        if key is None:  # it arrived at a former location
            store, key = find_object(self._objects, uri)
        return store.exists(key)

    def _manifest(self, lot: str, rows: Sequence[ArrivedRow], attempt: str) -> Manifest:
        return Manifest(
            state=ManifestState.COMPLETE if rows else ManifestState.EMPTY,
            lot=lot,
            dataset=self._ref,
            uris=tuple(_item(row) for row in rows),
            attempt=attempt,
            created=format_time(self._now),
        )


def _item(row: ArrivedRow) -> Item:
    return Item(row.uri, row.size, row.digest or None, created=format_time(row.modified))


def _told(step: ArrivalStep, empty: int, closed: int) -> RoundResult:
    states = [row.state for change in step.lots for row in change.add]
    late = sum(state is Placed.LATE for state in states)
    return RoundResult(
        assigned=len(states) - late,
        late=late,
        refused=len(step.refused),
        closed=closed,
        empty=empty,
    )


def _may_publish(row: StatusRow) -> bool:
    """Whether a lot can be registered, as a new or existing one."""
    status = Status(row.status)
    return writable(status) or (status is Status.READY and row.job_id == EXTERNAL_JOB)


def _pages(items: Iterable[T], length: int) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, length)):
        yield page
