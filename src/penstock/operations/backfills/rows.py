"""The rows of backfills, and their tables in a unit of work."""

from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.locks.gaps.spans import Span
from penstock.operations.backfills.lots import LotList, Range
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import BackfillAction, Scope
from penstock.states import BackfillState
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes


class LotOutcome(StrEnum):
    """The result of a lot that a backfill has set going."""

    GOING = "going"
    DONE = "done"
    FAILED = "failed"  # out of tries again
    WAITING = "waiting"  # an input of it went away meanwhile


class BackfillRequest(Struct, frozen=True, kw_only=True):
    """The request for a backfill.

    With an interval, `start` and `end` are the times of the first and after the last lot. Without
    one, they are positions in `lots`; `is_cut` if more lots needed it than were listed.
    """

    interval: Interval | None
    start: Micros
    end: Micros
    scope: Scope
    newest_first: bool
    max_running: int
    priority: int
    lots: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def span(self) -> Range:
        """All its lots."""
        return self._between(self.start, self.end)

    def remaining(self, looked_to: Micros) -> Range:
        """Return the lots that were not surveyed yet."""
        if self.newest_first:
            return self._between(self.start, looked_to)
        return self._between(looked_to, self.end)

    def _between(self, start: Micros, end: Micros) -> Range:
        if self.interval is None:
            return LotList(self.lots, start, end, self.is_cut)
        return Span(self.interval, start, end)

    @property
    def beginning(self) -> Micros:
        """The position before the first step."""
        return self.end if self.newest_first else self.start


class BackfillCounts(Struct, frozen=True):
    """The lots that a backfill has surveyed, without those that are going."""

    good: int = 0  # left as they are
    held: int = 0  # by a person, and left so
    waiting: int = 0  # for something that is not there
    done: int = 0
    failed: int = 0


# A list of lots can be long, and every step decodes it.
_decode_request = lru_cache(maxsize=16)(msgspec.json.Decoder(BackfillRequest).decode)
_decode_counts = msgspec.json.Decoder(BackfillCounts).decode


class BackfillRow(Row, frozen=True):
    """A backfill of an arc."""

    id: str
    job_id: str
    state: BackfillState
    spec: str
    looked_to: Micros
    counts: str
    who: str
    why: str
    ran: Micros
    since: Micros
    created_at: Micros

    @property
    def request(self) -> BackfillRequest:
        """The request."""
        return _decode_request(self.spec)

    @property
    def lot_counts(self) -> BackfillCounts:
        """The counts so far."""
        return _decode_counts(self.counts)


class BackfillLotRow(Row, frozen=True):
    """A lot that a backfill has set going."""

    backfill_id: str
    lot: str
    state: LotOutcome
    action: BackfillAction
    at: Micros


class BackfillTables:
    """Backfills by id; their lots are only written."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.backfills: TableCache[BackfillRow] = TableCache(self._fetch, uow.undo)
        self.lots: TableCache[BackfillLotRow] = TableCache(write_only, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.backfills,)
        self.append_only: tuple[TableCache[Any], ...] = (self.lots,)

    def changes(self) -> Changes:
        """Return the rows to write, by statement."""
        return [
            ("put_backfills", self.backfills.changed()),
            ("put_backfill_lots", self.lots.changed()),
        ]

    def lots_going(self, backfill_id: str) -> list[BackfillLotRow]:
        """Read the lots that have not ended; for exclusive writes only."""
        return self._uow.tx.rows(BackfillLotRow, "going_backfill_lots", backfill_id=backfill_id)

    def put_lot(self, row: BackfillLotRow) -> None:
        """Write a lot that was set going."""
        self.lots.put((row.backfill_id, row.lot), row)

    def _fetch(self, ids: list[str]) -> dict[str, BackfillRow]:
        rows = self._uow.tx.rows(BackfillRow, "backfills_by_ids", ids=ids)
        return {row.id: row for row in rows}
