"""Removal of a published lot: its data goes, and a `removed` manifest lists it.

First the new manifests are written, which no reader uses yet. Then one transaction attaches them to
the lot and publishes the event. Then the data goes. It can be repeated after an interruption at any
point.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from penstock.arcs.arrivals.rows import ArrivalTables
from penstock.arcs.queries import read_manifest
from penstock.catalog.commands.lookup import dataset_row
from penstock.catalog.rows import DatasetRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Conflict, NotFound
from penstock.locks import work_state
from penstock.locks.commands.admin import AdminCommand
from penstock.locks.commands.lots import LotWasRead, RemoveBareLot
from penstock.locks.events import lock_plan
from penstock.locks.queries.claims import find_dataset
from penstock.locks.rows import LogRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import (
    DatasetRef,
    Manifest,
    ManifestNote,
    PartLine,
    lot_data_folder,
    manifest_key,
)
from penstock.lots.rows import ManifestRow
from penstock.lots.tables import LotEventKind, LotTables
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status, UriType
from penstock.states import MANIFEST, ManifestState
from penstock.store.write_queue import WriteQueue

_WITH_DATA = (ManifestState.COMPLETE, ManifestState.PARTIAL)
# Without a name, so that two concurrent removals write the same manifest.
GONE = "removed; the log of the lot says by whom, and why"


class RemoveLot(AdminCommand, frozen=True):
    """Mark the data of a lot as removed, so that no job reads it until it is made again.

    `versions` are all versions with data, and the manifests that list what goes.
    """

    namespace: str
    dataset: str
    lot: str
    current: str
    versions: tuple[tuple[str, ManifestNote], ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write everything in one transaction; refuse while the lot is written or read."""
        locks, lots = uow.tables(LockTables), uow.tables(LotTables)
        dataset = dataset_row(uow, self.namespace, self.dataset)
        status_row = self._check(uow, dataset)
        for version_id, note in self.versions:
            row = lots.manifests.get(version_id)
            assert row is not None, "it was read in this transaction"
            lots.manifests.put(version_id, replace(row, **msgspec.structs.asdict(note)))
        # Without a run, which tells a removed lot from one that failed.
        locks.put_status(replace(status_row, status=Status.ERROR, run_id=None, since=now))
        entry = (now, "remove", self.lot, None, dataset.id, None, status_row.status, Status.ERROR)
        locks.append(LogRow(*entry, self.who, self.why))
        state = ManifestState.REMOVED
        lots.add_event(
            LotEventKind.REMOVED, dataset.id, self.lot, now, version_id=self.current, state=state
        )
        work_state.refresh_jobs_of(locks, [dataset.id], [self.lot], now)
        self._forget_arrived(uow, dataset)
        self.record(
            uow, now, "lot remove", f"dataset:{dataset.namespace}:{dataset.name} lot {self.lot}"
        )

    def _check(self, uow: UnitOfWork, dataset: DatasetRow) -> StatusRow:
        """Return the row of the lot, if it has not changed and no job reads it."""
        locks = uow.tables(LockTables)
        where = f"lot {self.lot} of {dataset.namespace}/{dataset.name}"
        status_row = locks.outputs.get((dataset.id, self.lot))
        if status_row is None or status_row.status != Status.READY:
            status = status_row.status if status_row is not None else "unknown"
            raise Conflict(f"{where} is {status}: only a lot that is READY can be removed")
        rows = _versions(uow.tx, dataset.id, self.lot)
        full = {row.version_id for row in rows if row.state in _WITH_DATA}
        if status_row.version_id != self.current or full != {
            version for version, _ in self.versions
        }:
            raise Conflict(f"{where} has a newer version; look at it, and try again")
        for job_id in self._readers(locks, dataset):
            reader = locks.inputs.get((dataset.id, job_id, self.lot))
            if reader is not None and reader.status == Status.RUNNING:
                name = lock_plan.name_job(uow, job_id, dataset.namespace)
                raise Conflict(
                    f"{where} is being read by {name}; remove it when that has ended, or "
                    "end its claim first"
                )
        return status_row

    def _readers(self, locks: LockTables, dataset: DatasetRow) -> list[str]:
        wires = locks.wires.get(dataset.id) or ()
        return sorted(job_id for role, job_id in wires if role == DatasetRole.INPUT)

    def _forget_arrived(self, uow: UnitOfWork, dataset: DatasetRow) -> None:
        """Delete the record of arrived objects, so that a later amendment omits them."""
        arrivals = uow.tables(ArrivalTables).arrivals
        row = arrivals.get(dataset.id)
        if row is not None:
            uow.tx.execute("forget_arrived_of_lot", dataset_id=dataset.id, lot=self.lot)
            arrivals.put(dataset.id, replace(row, revision=row.revision + 1))


class _Version(Struct, frozen=True):
    """A version of a lot: its manifest, and those of its parts by name."""

    row: ManifestRow
    root: Manifest
    parts: dict[str, Manifest]

    @property
    def manifests(self) -> Iterator[Manifest]:
        """All its manifests."""
        yield self.root
        yield from self.parts.values()


def remove_lot(
    catalog: WriteQueue,
    objects: Objects,
    who: str,
    why: str,
    namespace: str,
    dataset: str,
    lot: str,
    *,
    force: bool = False,
) -> None:
    """Remove the data of all versions of a lot that arcs have written.

    Data of other writers must be gone before. A repetition completes an interrupted removal. A lot
    without a manifest is deleted if no job has read it. With `force`, one that was read is marked
    as removed.
    """
    name = f"{namespace}/{dataset}"
    with catalog.read() as tx:
        dataset_id = find_dataset(tx, namespace, dataset)
        version, current, rows = _find(tx, dataset_id, name, lot)
    if current is None:
        bare = RemoveBareLot(who, why, namespace, dataset, lot, force=force)
        _remove_bare(catalog, objects, bare, version, is_known=bool(rows))
        return
    if current.state != ManifestState.REMOVED:
        MANIFEST.check(ManifestState(current.state), ManifestState.REMOVED, f"of lot {lot}")
        command = RemoveLot(who, why, namespace, dataset, lot, current.version_id, ())
        try:
            _record(catalog, objects, command, rows)
        except NotFound:
            # A concurrent removal may have deleted the data: then only the rest remains.
            with catalog.read() as tx:
                _, current, _ = _find(tx, dataset_id, name, lot)
            if current is None or current.state != ManifestState.REMOVED:
                raise
        with catalog.read() as tx:
            rows = _versions(tx, dataset_id, lot)
    for row in rows:
        if row.state == ManifestState.REMOVED:
            _delete(objects, _read(objects, row))


def _remove_bare(
    catalog: WriteQueue,
    objects: Objects,
    command: RemoveBareLot,
    version: str | None,
    *,
    is_known: bool,
) -> None:
    """Remove a lot whose version has no manifest; `is_known` if an older version has one."""
    if not is_known:
        try:
            catalog.submit(msgspec.structs.replace(command, force=False)).result()
        except LotWasRead:
            if not command.force:
                raise
        else:
            return
    ref = DatasetRef(command.namespace, command.dataset)
    manifest = Manifest(
        state=ManifestState.REMOVED,
        lot=command.lot,
        dataset=ref,
        attempt=version or "",
        comment=GONE,
    )
    note = put_manifest(objects, manifest)[1] if version is not None else None
    catalog.submit(msgspec.structs.replace(command, note=note)).result()


def _record(
    catalog: WriteQueue, objects: Objects, command: RemoveLot, rows: Sequence[ManifestRow]
) -> None:
    """Write the manifests that list what goes, and attach them to the lot."""
    full = [_read(objects, row) for row in rows if row.state in _WITH_DATA]
    _check_others(objects, full)
    notes = tuple((each.row.version_id, _write(objects, each)) for each in full)
    catalog.submit(msgspec.structs.replace(command, versions=notes)).result()


def _versions(tx: Transaction, dataset_id: str, lot: str) -> list[ManifestRow]:
    return tx.rows(ManifestRow, "lot_manifests_of_lot", dataset_id=dataset_id, lot=lot)


def _find(
    tx: Transaction, dataset_id: str, name: str, lot: str
) -> tuple[str | None, ManifestRow | None, list[ManifestRow]]:
    """Return the version of a lot, its manifest if there is one, and the manifests of all
    versions.
    """
    status_rows = tx.rows(StatusRow, "lot_outputs", dataset_id=dataset_id, lots=[lot])
    if not status_rows:
        raise NotFound(f"there is no lot {lot} of {name}; `penstock lots list` lists them")
    rows = _versions(tx, dataset_id, lot)
    version = status_rows[0].version_id
    return version, next((row for row in rows if row.version_id == version), None), rows


def _read(objects: Objects, row: ManifestRow) -> _Version:
    root = read_manifest(objects, row.key)
    parts = {
        line.part: read_manifest(objects, line.key)
        for line in root.parts
        if line.state is not ManifestState.EMPTY
    }
    return _Version(row, root, parts)


def _check_others(objects: Objects, versions: Sequence[_Version]) -> None:
    for manifest in (manifest for each in versions for manifest in each.manifests):
        for store, key in _data(objects, manifest):
            if not _is_own(objects, manifest, store, key) and store.exists(key):
                raise Conflict(
                    f"lot {manifest.lot} has {store.url}/{key}, which no arc has written for it; "
                    "remove it there, then repeat the command"
                )


def _write(objects: Objects, version: _Version) -> ManifestNote:
    lines = {line.part: line for line in version.root.parts}
    for name, part in version.parts.items():
        _, note = put_manifest(objects, _removed(part, part.attempt))
        lines[name] = PartLine(name, note.key, note.state, note.uris, note.bytes)
    root = _removed(version.root, version.root.attempt or version.row.version_id)
    return put_manifest(objects, msgspec.structs.replace(root, parts=tuple(lines.values())))[1]


def _removed(manifest: Manifest, attempt: str) -> Manifest:
    return msgspec.structs.replace(
        manifest, state=ManifestState.REMOVED, attempt=attempt, comment=GONE
    )


def _delete(objects: Objects, version: _Version) -> None:
    """Delete the data that the manifests of a removed version list, and their old manifests."""
    root = version.root
    current_key = manifest_key(root.dataset, root.lot, ManifestState.COMPLETE)
    with suppress(NotFound):
        if read_manifest(objects, current_key).attempt in (root.attempt, ""):
            objects.delete(current_key)
    for manifest in version.manifests:
        for store, key in list(_data(objects, manifest)):
            if _is_own(objects, manifest, store, key):
                objects.delete(key)
        for state in _WITH_DATA:
            before = (manifest.dataset, manifest.lot, state, manifest.attempt, manifest.part)
            objects.delete(manifest_key(*before))


def _is_own(objects: Objects, manifest: Manifest, store: Objects, key: str) -> bool:
    folder = lot_data_folder(manifest.dataset, manifest.lot)
    return store is objects and key.startswith(f"{folder}/")


def _data(objects: Objects, manifest: Manifest) -> Iterator[tuple[Objects, str]]:
    """Yield the stores and keys that a manifest lists; single objects may be gone."""
    for item in manifest.uris:
        store, key = find_object(objects, item.uri)
        if manifest.uri_type is UriType.IDENTIFIER:
            yield store, key
            continue
        path = manifest.uri_type is UriType.PATH
        folder = key.rstrip("/") if path else key.rpartition("/")[0]
        begin = f"{folder}/" if path else key
        for entry in store.list(folder):
            if entry.key.startswith(begin):
                yield store, entry.key
