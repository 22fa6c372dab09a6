"""The tables of the replay gate in a unit of work; they are read only while the gate has owners."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db.database import Ask
from penstock.locks.rows import GatedWorkRow, GateOwnerRow
from penstock.store.table_cache import TableCache
from penstock.store.unit_of_work import Changes

WorkKey = tuple[str, str]  # job id, lot

_ALL: Final = "all"  # the one key of all owners, of which there are few


class _DeletedOwner(Struct, frozen=True):
    id: str


class _DeletedWork(Struct, frozen=True):
    job_id: str
    lot: str


class ReplayGateTables:
    """The owners of the gate, and the work behind it."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self._owners: TableCache[tuple[GateOwnerRow, ...]] = TableCache(
            self._fetch_owners, uow.undo
        )
        self._work: TableCache[GatedWorkRow] = TableCache(self._fetch_work, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self._owners, self._work)
        self.append_only: tuple[TableCache[Any], ...] = ()

    def changes(self) -> Changes:
        """Return every change."""
        owners = [row for rows in self._owners.changed() for row in rows]
        before = [row for rows in self._owners.before.values() for row in rows or ()]
        deleted = {row.id for row in before} - {row.id for row in owners}
        return [
            ("forget_turn_keepers", [_DeletedOwner(owner_id) for owner_id in sorted(deleted)]),
            ("put_turn_keepers", owners),
            ("forget_lot_turns", [_DeletedWork(*key) for key in self._work.gone()]),
            ("put_lot_turns", self._work.changed()),
        ]

    @property
    def owners(self) -> tuple[GateOwnerRow, ...]:
        """The owners of the gate."""
        return self._owners.get(_ALL) or ()

    def put_owner(self, row: GateOwnerRow) -> None:
        """Add or change an owner."""
        self._owners.put(_ALL, (*self._others(row.id), row))

    def drop_owner(self, owner_id: str) -> None:
        """Delete an owner."""
        if len(others := self._others(owner_id)) < len(self.owners):
            self._owners.put(_ALL, others)

    def _others(self, owner_id: str) -> tuple[GateOwnerRow, ...]:
        return tuple(row for row in self.owners if row.id != owner_id)

    def find(self, job_id: str, lot: str) -> GatedWorkRow | None:
        """Return a job's work on a lot, if it is behind the gate."""
        return self._work.get((job_id, lot)) if self.owners else None

    def prefetch(self, keys: Sequence[WorkKey]) -> None:
        """Fetch the rows that `find` reads."""
        if self.owners:
            self._work.prefetch(keys)

    def add(self, owner: GateOwnerRow, keys: Sequence[WorkKey]) -> None:
        """Put work behind the gate until this owner removes it."""
        self.prefetch(keys)
        rows = {key: self.find(*key) for key in keys}
        self.put_owner(owner)
        for (job_id, lot), row in rows.items():
            ids = (*(row.owner_ids if row is not None else ()), owner.id)
            since = row.kept_since if row is not None else None
            self._work.put((job_id, lot), GatedWorkRow.of(job_id, lot, ids, since))

    def mark_stale(self, row: GatedWorkRow, stale_since: Micros) -> None:
        """Remember the `stale_since` of work that became stale behind the gate."""
        if row.kept_since is None:
            self._work.put((row.job_id, row.lot), replace(row, kept_since=stale_since))

    def remove(self, owner_id: str, keys: Iterable[WorkKey]) -> list[GatedWorkRow]:
        """Remove an owner from work; return the work that has no owner left."""
        released = []
        for key in keys:
            row = self.find(*key)
            if row is None or owner_id not in row.owner_ids:
                continue
            others = tuple(other for other in row.owner_ids if other != owner_id)
            after = GatedWorkRow.of(*key, others, row.kept_since) if others else None
            self._work.put(key, after)
            if after is None:
                released.append(row)
        return released

    def _fetch_owners(self, keys: list[str]) -> dict[str, tuple[GateOwnerRow, ...]]:
        return {_ALL: tuple(self._uow.tx.rows(GateOwnerRow, "all_turn_keepers"))}

    def _fetch_work(self, keys: list[WorkKey]) -> dict[WorkKey, GatedWorkRow]:
        lots: dict[str, list[str]] = {}
        for job_id, lot in keys:
            lots.setdefault(job_id, []).append(lot)
        asks: list[Ask] = [
            ("lot_turns", {"job_id": job_id, "lots": some}) for job_id, some in lots.items()
        ]
        rows = (GatedWorkRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.job_id, row.lot): row for row in rows}
