"""Who waits for a turn, as a batch of writes sees it: asked only while somebody keeps turns."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import Changes, UnitOfWork
from penstock.clock import Micros
from penstock.db.database import Ask
from penstock.locks.rows import GatedWorkRow, GateOwnerRow
from penstock.store.table_cache import TableCache

WorkKey = tuple[str, str]  # job id, lot

_ALL: Final = "all"  # the one key of all keepers, of whom there are few


class _GoneKeeper(Struct, frozen=True):
    id: str


class _GoneTurn(Struct, frozen=True):
    job_id: str
    lot: str


class ReplayGateTables:
    """All who keep turns, and the work that waits for one."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self._keepers: TableCache[tuple[GateOwnerRow, ...]] = TableCache(
            self._fetch_keepers, uow.undo
        )
        self._turns: TableCache[GatedWorkRow] = TableCache(self._fetch_turns, uow.undo)
        self.lasting: tuple[TableCache[Any], ...] = (self._keepers, self._turns)
        self.passing: tuple[TableCache[Any], ...] = ()

    def changes(self) -> Changes:
        """Every change of the batch of writes."""
        keepers = [row for rows in self._keepers.changed() for row in rows]
        before = [row for rows in self._keepers.before.values() for row in rows or ()]
        gone = {row.id for row in before} - {row.id for row in keepers}
        return [
            ("forget_turn_keepers", [_GoneKeeper(keeper_id) for keeper_id in sorted(gone)]),
            ("put_turn_keepers", keepers),
            ("forget_lot_turns", [_GoneTurn(*key) for key in self._turns.gone()]),
            ("put_lot_turns", self._turns.changed()),
        ]

    @property
    def owners(self) -> tuple[GateOwnerRow, ...]:
        """Who keeps turns now."""
        return self._keepers.get(_ALL) or ()

    def put_owner(self, row: GateOwnerRow) -> None:
        """Somebody keeps turns, or does so in another way."""
        self._keepers.put(_ALL, (*self._others(row.id), row))

    def drop_owner(self, keeper_id: str) -> None:
        """Somebody keeps no turns any more."""
        if len(others := self._others(keeper_id)) < len(self.owners):
            self._keepers.put(_ALL, others)

    def _others(self, keeper_id: str) -> tuple[GateOwnerRow, ...]:
        return tuple(row for row in self.owners if row.id != keeper_id)

    def find(self, job_id: str, lot: str) -> GatedWorkRow | None:
        """The turn that a job's work on a lot waits for, if it waits for one."""
        return self._turns.get((job_id, lot)) if self.owners else None

    def prefetch(self, keys: Sequence[WorkKey]) -> None:
        """Fetch what `waiting` will ask for."""
        if self.owners:
            self._turns.prefetch(keys)

    def add(self, keeper: GateOwnerRow, keys: Sequence[WorkKey]) -> None:
        """Let work wait for its turn, which this keeper keeps."""
        self.prefetch(keys)
        turns = {key: self.find(*key) for key in keys}
        self.put_owner(keeper)
        for (job_id, lot), turn in turns.items():
            ids = (*(turn.owner_ids if turn is not None else ()), keeper.id)
            since = turn.kept_since if turn is not None else None
            self._turns.put((job_id, lot), GatedWorkRow.of(job_id, lot, ids, since))

    def mark_stale(self, turn: GatedWorkRow, stale_since: Micros) -> None:
        """Work that waits for its turn has become stale: remember what was known before."""
        if turn.kept_since is None:
            self._turns.put((turn.job_id, turn.lot), replace(turn, kept_since=stale_since))

    def remove(self, keeper_id: str, keys: Iterable[WorkKey]) -> list[GatedWorkRow]:
        """Work waits for this keeper no more: the turns of what waits for nobody now."""
        left = []
        for key in keys:
            turn = self.find(*key)
            if turn is None or keeper_id not in turn.owner_ids:
                continue
            others = tuple(other for other in turn.owner_ids if other != keeper_id)
            after = GatedWorkRow.of(*key, others, turn.kept_since) if others else None
            self._turns.put(key, after)
            if after is None:
                left.append(turn)
        return left

    def _fetch_keepers(self, keys: list[str]) -> dict[str, tuple[GateOwnerRow, ...]]:
        return {_ALL: tuple(self._uow.tx.rows(GateOwnerRow, "all_turn_keepers"))}

    def _fetch_turns(self, keys: list[WorkKey]) -> dict[WorkKey, GatedWorkRow]:
        lots: dict[str, list[str]] = {}
        for job_id, lot in keys:
            lots.setdefault(job_id, []).append(lot)
        asks: list[Ask] = [
            ("lot_turns", {"job_id": job_id, "lots": some}) for job_id, some in lots.items()
        ]
        rows = (GatedWorkRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.job_id, row.lot): row for row in rows}
