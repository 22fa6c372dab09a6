"""The tables of lots in a unit of work."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Invalid
from penstock.lots.manifests import ManifestNote
from penstock.lots.rows import LandingRow, LotDatasetRow, LotEventRow, ManifestRow, RunEndRow
from penstock.schema.lot_ids import Interval, IntervalLot, check_lot, parse_interval
from penstock.states import ManifestState
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

Notes = Mapping[str, ManifestNote]  # by dataset id
NO_NOTES: Notes = MappingProxyType({})


class LotEventKind(StrEnum):
    """The kinds of lot events."""

    PUBLISHED = "published"  # a version can be read
    ANNOUNCED = "announced"  # a version exists, but cannot be read yet
    REMOVED = "removed"  # the data was removed


class _Gone(Struct, frozen=True):
    dataset_id: str


class LotTables:
    """The rows of each table by key; the outboxes are only written."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        undo = uow.undo
        self.datasets: TableCache[LotDatasetRow] = TableCache(self._fetch_datasets, undo)
        self.manifests: TableCache[ManifestRow] = TableCache(self._fetch_manifests, undo)
        self.landings: TableCache[LandingRow] = TableCache(self._fetch_landings, undo)
        self.events: TableCache[LotEventRow] = TableCache(write_only, undo)
        self.run_ends: TableCache[RunEndRow] = TableCache(write_only, undo)
        self.cached: tuple[TableCache[Any], ...] = (self.datasets, self.manifests, self.landings)
        self.append_only: tuple[TableCache[Any], ...] = (self.events, self.run_ends)

    def changes(self) -> Changes:
        """Return every change."""
        return [
            ("put_lot_datasets", self.datasets.changed()),
            ("forget_lot_landings", [_Gone(key) for key in self.landings.gone()]),
            ("put_lot_landings", self.landings.changed()),
            ("put_lot_manifests", self.manifests.changed()),
            ("add_lot_events", self.events.changed()),
            ("add_run_ends", self.run_ends.changed()),
        ]

    def check_interval(self, dataset_id: str, name: str, lots: Iterable[str]) -> None:
        """Refuse lots that do not have the interval of the dataset."""
        row = self.datasets.get(dataset_id)
        if row is None or not row.interval:
            return
        for lot in lots:
            parsed = parse_interval(check_lot(lot))
            if parsed is None or parsed.interval != row.interval:
                raise Invalid(
                    f"the lots of {name}, version {row.label}, are cut by {row.interval}, and lot "
                    f"{lot} is none of these; name one such as "
                    f"{IntervalLot(Interval(row.interval), 0).id}"
                )

    def add_event(
        self,
        kind: LotEventKind,
        dataset_id: str,
        lot: str,
        now: Micros,
        *,
        version_id: str | None,
        state: ManifestState = ManifestState.COMPLETE,
        job_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Put an event into the outbox; it is sent only if the unit of work commits."""
        row = LotEventRow(now, kind, dataset_id, lot, state, version_id, job_id, run_id)
        self.events.put(object(), row)

    def add_run_end(self, run_id: str, now: Micros) -> None:
        """Put the end of a run into the outbox of runs."""
        self.run_ends.put(run_id, RunEndRow(now, run_id))

    def put_manifest(
        self, version_id: str, dataset_id: str, lot: str, note: ManifestNote, now: Micros
    ) -> None:
        """Write the manifest of a lot's new version."""
        row = ManifestRow(
            version_id, dataset_id, lot, note.state, note.key, note.uris, note.bytes, note.digest,
            note.attempt, now,
        )  # fmt: skip
        self.manifests.put(version_id, row)

    def publish(
        self,
        lot: str,
        versions: Mapping[str, str],
        now: Micros,
        *,
        notes: Notes,
        job_id: str | None,
        run_id: str | None,
        held: Collection[str] = (),
    ) -> None:
        """Write the manifests and events of new versions of a lot, by dataset.

        Versions of datasets in `held` are announced only: they cannot be read yet.
        """
        for dataset_id, version_id in versions.items():
            note = notes.get(dataset_id)
            if note is not None:
                self.put_manifest(version_id, dataset_id, lot, note, now)
            state = note.state if note is not None else ManifestState.COMPLETE
            kind = LotEventKind.ANNOUNCED if dataset_id in held else LotEventKind.PUBLISHED
            self.add_event(
                kind, dataset_id, lot, now,
                version_id=version_id, state=state, job_id=job_id, run_id=run_id,
            )  # fmt: skip

    def _fetch_datasets(self, ids: list[str]) -> dict[str, LotDatasetRow]:
        rows = self._uow.tx.rows(LotDatasetRow, "lot_datasets_by_ids", ids=ids)
        return {row.dataset_id: row for row in rows}

    def _fetch_landings(self, ids: list[str]) -> dict[str, LandingRow]:
        rows = self._uow.tx.rows(LandingRow, "lot_landings_by_ids", ids=ids)
        return {row.dataset_id: row for row in rows}

    def _fetch_manifests(self, ids: list[str]) -> dict[str, ManifestRow]:
        rows = self._uow.tx.rows(ManifestRow, "lot_manifests_by_versions", ids=ids)
        return {row.version_id: row for row in rows}
