"""Orphans: objects of attempts that no manifest lists. They are searched and removed.

An object is an orphan if its attempt has ended and none of these lists it: a published manifest, a
part that can be reused, the list of what the attempt left. Objects of a live attempt are never
orphans. Objects of an attempt that the database does not know are orphans only if the search asks
for them by age. Such attempts are those of arrivals, or of a restored database.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import ClassVar, NamedTuple
from urllib.parse import unquote
from uuid import UUID

from msgspec import Struct

from penstock.access import audit
from penstock.arcs.outputs.leftovers import attempt_of, keys_in_use
from penstock.arcs.rows import AttemptRow, PartRow
from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import RunRow
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Database
from penstock.errors import NotFound, PenstockError, Unavailable
from penstock.locks.queries.claims import find_dataset
from penstock.lots.manifests import DATA, DATASETS, DatasetRef
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects, StoredEntry
from penstock.states import ManifestState, RunState
from penstock.store.write_queue import WriteQueue

log = logging.getLogger(__name__)

LOTS_AT_ONCE = 200
_MADE = (f"state={ManifestState.COMPLETE}", f"state={ManifestState.EMPTY}")
_ATTEMPT = "attempt="


class Orphan(Struct, frozen=True):
    """An object that no manifest lists."""

    namespace: str
    dataset: str
    lot: str
    attempt: str
    key: str
    size: int


class _Left(NamedTuple):
    """An object that an attempt on a lot left."""

    lot: str
    attempt: str
    entry: StoredEntry


class OrphanSearch:
    """A search for orphans in the folders of all lots, in batches of lots.

    With `unknown_before`, older objects of unknown attempts are orphans too.
    """

    def __init__(
        self, database: Database | WriteQueue, objects: Objects, unknown_before: Micros = 0
    ) -> None:
        self._database = database
        self._objects = objects
        self._unknown_before = unknown_before

    def pages(self) -> Iterator[list[Orphan]]:
        """Yield the orphans of one dataset at a time, without empty pages."""
        for top in (DATA, DATASETS):
            for ref, folder in self._datasets(top):
                left = self._left(top, folder)
                groups = ((lot, list(group)) for lot, group in groupby(left, lambda one: one.lot))
                while page := dict(islice(groups, LOTS_AT_ONCE)):
                    if orphans := self._orphans(ref, page):
                        yield orphans

    def _datasets(self, top: str) -> Iterator[tuple[DatasetRef, str]]:
        for namespace in self._folders(top, "namespace="):
            for name in self._folders(f"{top}/{namespace}", "name="):
                for version in self._folders(f"{top}/{namespace}/{name}", "version="):
                    values = (each.partition("=")[2] for each in (namespace, name, version))
                    ref = DatasetRef(*map(unquote, values))
                    yield ref, f"{top}/{namespace}/{name}/{version}"

    def _folders(self, prefix: str, begin: str) -> list[str]:
        return sorted(name for name in self._objects.folders(prefix) if name.startswith(begin))

    def _left(self, top: str, folder: str) -> Iterator[_Left]:
        for entry in self._objects.list(folder):
            lot, *segments = entry.key.removeprefix(f"{folder}/").split("/")
            if top == DATASETS and segments.pop(0) not in _MADE:
                continue
            if lot.startswith("lot=") and segments and segments[0].startswith(_ATTEMPT):
                yield _Left(unquote(lot.removeprefix("lot=")), attempt_of(segments[0]), entry)

    def _orphans(self, ref: DatasetRef, page: Mapping[str, Sequence[_Left]]) -> list[Orphan]:
        attempts = sorted({one.attempt for left in page.values() for one in left if _is_id(one)})
        manifest_rows: list[ManifestRow] = []
        with self._database.read() as tx:
            with suppress(NotFound):
                dataset_id = find_dataset(tx, ref.namespace, ref.name)
                which = {"dataset_id": dataset_id, "lots": list(page)}
                manifest_rows = tx.rows(ManifestRow, "manifests_of_lots", **which)
            runs = {row.id: row for row in tx.rows(RunRow, "runs_by_ids", ids=attempts)}
            listed = tx.rows(AttemptRow, "arc_attempts_by_ids", ids=attempts)
        known_left = {row.run_id for row in listed if row.state == ManifestState.PARTIAL}
        manifests: dict[str, list[ManifestRow]] = {}
        for row in manifest_rows:
            manifests.setdefault(row.lot, []).append(row)
        orphans: list[Orphan] = []
        for lot, left in page.items():
            published = manifests.get(lot, ())
            suspects = [
                one
                for attempt, group in _by_attempt(left)
                if attempt not in known_left
                for one in self._suspects(runs.get(attempt), published, group)
            ]
            orphans += self._confirmed(ref, lot, suspects, published, runs)
        return orphans

    def _suspects(
        self, run: RunRow | None, published: Sequence[ManifestRow], left: Sequence[_Left]
    ) -> Sequence[_Left]:
        """Return the objects of an attempt, if any of them may be an orphan."""
        if run is None:
            return [one for one in left if one.entry.modified < self._unknown_before]
        if run.state in (RunState.FAILED, RunState.ABORTED):
            return left
        manifests = [row for row in published if row.attempt.startswith(run.id)]
        if run.state != RunState.COMPLETED or not manifests:
            return ()
        # If all objects are listed, no manifest must be read. This holds for almost every lot.
        size = sum(one.entry.size for one in left)
        is_whole = any((row.uris, row.bytes) == (len(left), size) for row in manifests)
        is_manifest = {one.entry.key for one in left} == {row.key for row in manifests}
        return () if is_whole or is_manifest else left

    def _confirmed(
        self,
        ref: DatasetRef,
        lot: str,
        suspects: Sequence[_Left],
        published: Sequence[ManifestRow],
        runs: Mapping[str, RunRow],
    ) -> list[Orphan]:
        if not suspects:
            return []
        jobs = {runs[one.attempt].job_id for one in suspects if one.attempt in runs}
        needed = [row.key for row in published if row.state != ManifestState.REMOVED]
        with self._database.read() as tx:
            for job_id in sorted(jobs):
                parts = tx.rows(PartRow, "arc_parts_of_lots", job_id=job_id, lots=[lot])
                needed += [note.key for row in parts for _, note in row.named_notes]
        try:
            listed = keys_in_use(self._objects, [ref], lot, needed)
        except Unavailable:
            raise
        except PenstockError as error:
            # The list of a lost manifest is unknown, so no object of this lot may go.
            name = f"{ref.namespace}/{ref.name}"
            log.warning("lot %s of %s is skipped: %s", lot, name, error)
            return []
        return [
            Orphan(ref.namespace, ref.name, lot, one.attempt, one.entry.key, one.entry.size)
            for one in suspects
            if one.entry.key not in listed
        ]


class RecordSweep(Write, frozen=True):
    """Append the removal of orphans of one dataset to the audit log."""

    exclusive: ClassVar[bool] = True  # for the audit log

    who: str
    why: str
    orphans: tuple[Orphan, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Append one entry for each page, before any object goes."""
        first = self.orphans[0]
        size = sum(orphan.size for orphan in self.orphans)
        detail = f"{len(self.orphans)} objects, {size} bytes, the first is {first.key}"
        target = f"{first.namespace}/{first.dataset}"
        words = f"{detail}: {self.why}" if self.why else detail
        audit.append(uow.tx, now, self.who, "sweep objects", target, words)


def remove_orphans(
    catalog: WriteQueue, objects: Objects, who: str, why: str, orphans: Sequence[Orphan]
) -> None:
    """Remove orphans of one dataset; a repetition does no harm."""
    catalog.submit(RecordSweep(who, why, tuple(orphans))).result()
    for orphan in orphans:
        objects.delete(orphan.key)


def _is_id(one: _Left) -> bool:
    try:
        return str(UUID(one.attempt)) == one.attempt
    except ValueError:
        return False


def _by_attempt(left: Iterable[_Left]) -> Iterator[tuple[str, list[_Left]]]:
    ordered = sorted(left, key=lambda one: one.attempt)
    for attempt, group in groupby(ordered, lambda one: one.attempt):
        yield attempt, list(group)
