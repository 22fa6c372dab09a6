"""Who waits for a turn, as a batch of writes sees it: asked only while somebody keeps turns."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db.database import Ask
from penstock.locks.rows import KeeperRow, TurnRow
from penstock.store.table_cache import TableCache
from penstock.store.unit_of_work import Changes

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
        self._keepers: TableCache[tuple[KeeperRow, ...]] = TableCache(self._fetch_keepers, uow.undo)
        self._turns: TableCache[TurnRow] = TableCache(self._fetch_turns, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self._keepers, self._turns)
        self.append_only: tuple[TableCache[Any], ...] = ()

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
    def keepers(self) -> tuple[KeeperRow, ...]:
        """Who keeps turns now."""
        return self._keepers.get(_ALL) or ()

    def put_keeper(self, row: KeeperRow) -> None:
        """Somebody keeps turns, or does so in another way."""
        self._keepers.put(_ALL, (*self._others(row.id), row))

    def drop_keeper(self, keeper_id: str) -> None:
        """Somebody keeps no turns any more."""
        if len(others := self._others(keeper_id)) < len(self.keepers):
            self._keepers.put(_ALL, others)

    def _others(self, keeper_id: str) -> tuple[KeeperRow, ...]:
        return tuple(row for row in self.keepers if row.id != keeper_id)

    def waiting(self, job_id: str, lot: str) -> TurnRow | None:
        """The turn that a job's work on a lot waits for, if it waits for one."""
        return self._turns.get((job_id, lot)) if self.keepers else None

    def prefetch(self, keys: Sequence[WorkKey]) -> None:
        """Fetch what `waiting` will ask for."""
        if self.keepers:
            self._turns.prefetch(keys)

    def wait(self, keeper: KeeperRow, keys: Sequence[WorkKey]) -> None:
        """Let work wait for its turn, which this keeper keeps."""
        self.prefetch(keys)
        turns = {key: self.waiting(*key) for key in keys}
        self.put_keeper(keeper)
        for (job_id, lot), turn in turns.items():
            ids = (*(turn.keeper_ids if turn is not None else ()), keeper.id)
            since = turn.kept_since if turn is not None else None
            self._turns.put((job_id, lot), TurnRow.of(job_id, lot, ids, since))

    def mark(self, turn: TurnRow, stale_since: Micros) -> None:
        """Work that waits for its turn has become stale: remember what was known before."""
        if turn.kept_since is None:
            self._turns.put((turn.job_id, turn.lot), replace(turn, kept_since=stale_since))

    def leave(self, keeper_id: str, keys: Iterable[WorkKey]) -> list[TurnRow]:
        """Work waits for this keeper no more: the turns of what waits for nobody now."""
        left = []
        for key in keys:
            turn = self.waiting(*key)
            if turn is None or keeper_id not in turn.keeper_ids:
                continue
            others = tuple(other for other in turn.keeper_ids if other != keeper_id)
            after = TurnRow.of(*key, others, turn.kept_since) if others else None
            self._turns.put(key, after)
            if after is None:
                left.append(turn)
        return left

    def _fetch_keepers(self, keys: list[str]) -> dict[str, tuple[KeeperRow, ...]]:
        return {_ALL: tuple(self._uow.tx.rows(KeeperRow, "all_turn_keepers"))}

    def _fetch_turns(self, keys: list[WorkKey]) -> dict[WorkKey, TurnRow]:
        lots: dict[str, list[str]] = {}
        for job_id, lot in keys:
            lots.setdefault(job_id, []).append(lot)
        asks: list[Ask] = [
            ("lot_turns", {"job_id": job_id, "lots": some}) for job_id, some in lots.items()
        ]
        rows = (TurnRow(*row) for found in self._uow.tx.fetch_many(asks) for row in found)
        return {(row.job_id, row.lot): row for row in rows}
