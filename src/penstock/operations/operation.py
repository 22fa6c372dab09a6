"""The parts that backfills and replays share: states, moves, stepping, progress and pruning.

An operation is a row, so it outlives every process, and any process may step it. A person pauses,
resumes and cancels it. Steps set work going until `max_running` lots take part.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

from penstock import ids
from penstock.access import audit
from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Clock, Micros
from penstock.db import Database, Transaction
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, paced_write, pages_of_ended
from penstock.errors import Invalid, NotFound, PenstockError
from penstock.locks.rows import WorkRow
from penstock.states import Moves, WorkState
from penstock.store.table_cache import TableCache
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

MAX_RUNNING = 4
_RUNNING = "running"  # each kind has these three states
_PAUSED = "paused"
_CANCELLED = "cancelled"

P = TypeVar("P")


class OperationRow(Protocol):
    """The columns that every kind of operation has."""

    @property
    def id(self) -> str:
        """The id of the operation."""

    @property
    def state(self) -> Any:
        """The state, one of its kind."""

    @property
    def ran(self) -> Micros:
        """The time that it ran before `since`."""

    @property
    def since(self) -> Micros:
        """The time of its last move."""


R = TypeVar("R", bound=OperationRow)


class OperationStatements(NamedTuple):
    """The names of the statements of one kind of operation."""

    by_ids: str
    latest: str
    steppable: str
    ended: str
    some_parts: str
    delete_parts: Sequence[str]  # each by the operation's id and `part_keys`
    delete: str


class OperationKind(ABC, Generic[R]):
    """A kind of operation: its words, states and rows."""

    name: ClassVar[str]  # in messages, in the audit log, and with `_id` in statements
    part: ClassVar[str]  # the unit of `max_running`
    part_keys: ClassVar[str]
    states: ClassVar[Moves[Any]]
    statements: ClassVar[OperationStatements]
    row: Callable[..., R]  # from the columns in order

    @abstractmethod
    def cache(self, uow: UnitOfWork) -> TableCache[R]:
        """Return the operations of this kind in a unit of work."""

    def put(self, uow: UnitOfWork, row: R) -> None:
        """Write an operation."""
        self.cache(uow).put(row.id, row)

    def on_move(self, uow: UnitOfWork, row: R, now: Micros) -> R:
        """Change what depends on a move by a person; return the row to write."""
        return row

    def get(self, uow: UnitOfWork, operation_id: str) -> R:
        """Return an operation, or raise NotFound."""
        row = self.cache(uow).get(ids.run_id(operation_id))
        if row is None:
            raise self._not_found(operation_id)
        return row

    def read(self, tx: Transaction, operation_id: str) -> R:
        """Read an operation, or raise NotFound."""
        rows = tx.fetch(self.statements.by_ids, ids=[ids.run_id(operation_id)])
        if not rows:
            raise self._not_found(operation_id)
        return self.row(*rows[0])

    def check_max_running(self, max_running: int) -> None:
        """Refuse a limit with which nothing would ever run."""
        if max_running < 1:
            raise Invalid(f"a {self.name} has at least one {self.part} running at a time")

    def _not_found(self, operation_id: str) -> NotFound:
        return NotFound(
            f"there is no {self.name} {operation_id}; `penstock {self.name}s list` lists them"
        )


class AuditedWrite(Write, frozen=True):
    """A write that appends to the audit log, so it reads all that was committed before it."""

    exclusive: ClassVar[bool] = True


class MoveOperation(AuditedWrite, Generic[R], frozen=True):
    """Pause, resume or cancel an operation. Work that was set going ends by itself."""

    kind: OperationKind[R]
    who: str
    why: str
    id: str
    state: str

    def execute(self, uow: UnitOfWork, now: Micros) -> R:
        """Return the operation after the move; a move to its own state changes nothing."""
        row = self.kind.get(uow, self.id)
        moved = move(self.kind, row, self.state, now)
        if row.state == self.state:
            return row
        moved = self.kind.on_move(uow, moved, now)
        self.kind.put(uow, moved)
        action = f"{self.state} {self.kind.name}"
        audit.append(uow.tx, now, self.who, action, row.id, self.why)
        return moved


def move(kind: OperationKind[R], row: R, state: str, now: Micros) -> R:
    """Return an operation in another state, or refuse the move."""
    target = type(kind.states.initial)(state)
    kind.states.check(type(target)(row.state), target, row.id)
    return cast(R, replace(cast(Any, row), state=target, ran=elapsed(row, now), since=now))


def elapsed(row: OperationRow, now: Micros) -> Micros:
    """Return how long an operation has been running, without pauses."""
    return row.ran + (now - row.since if row.state == _RUNNING else 0)


def is_active(work: WorkRow | None) -> bool:
    """Whether work that was set going runs, or will as soon as it can: it counts as running."""
    return work is not None and work.state in (
        WorkState.READY,
        WorkState.RUNNING,
        WorkState.RETRYABLE,
    )


class Operations(ABC, Generic[R, P]):
    """The operations of one kind: moves them, steps them, and reports their progress."""

    kind: OperationKind[R]

    def __init__(self, writes: WriteQueue, clock: Clock) -> None:
        self._writes = writes
        self._clock = clock

    @abstractmethod
    def step(self, operation_id: str) -> P:
        """Record what has ended and set the next work going; safe to call at any time."""

    @abstractmethod
    def _progress(self, tx: Transaction, row: R) -> P: ...

    def pause(self, operation_id: str, who: str, why: str = "") -> P:
        """Set no more work going until the operation is resumed."""
        return self._move(operation_id, who, why, _PAUSED)

    def resume(self, operation_id: str, who: str, why: str = "") -> P:
        """Continue where the operation was paused."""
        return self._move(operation_id, who, why, _RUNNING)

    def cancel(self, operation_id: str, who: str, why: str = "") -> P:
        """Stop for good. Work that was set going ends by itself."""
        return self._move(operation_id, who, why, _CANCELLED)

    def _move(self, operation_id: str, who: str, why: str, state: str) -> P:
        self._writes.submit(MoveOperation(self.kind, who, why, operation_id, state)).result()
        return self.status(operation_id)

    def status(self, operation_id: str) -> P:
        """Return the progress of an operation."""
        with self._writes.read() as tx:
            return self._progress(tx, self.kind.read(tx, operation_id))

    def last(self, most: int = 100, namespace: str = "") -> list[P]:
        """Return the last operations, of all namespaces or of one, newest first."""
        with self._writes.read() as tx:
            latest = self.kind.statements.latest
            rows = tx.fetch(latest, most=most, namespace=namespace)
            return [self._progress(tx, self.kind.row(*columns)) for columns in rows]

    def step_all(self) -> int:
        """Step every operation that is not over; return how many there are."""
        with self._writes.read() as tx:
            operation_ids = [each for (each,) in tx.fetch(self.kind.statements.steppable)]
        for operation_id in operation_ids:
            with logs.about(**{self.kind.name: operation_id}):
                try:
                    self._advance(operation_id)
                except PenstockError as error:
                    name = self.kind.name
                    log.warning("%s %s was not stepped; retrying: %s", name, operation_id, error)
        return len(operation_ids)

    def _advance(self, operation_id: str) -> None:
        self.step(operation_id)


def prune_operations(
    kind: OperationKind[Any],
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    pause: Pause = time.sleep,
) -> int:
    """Delete operations that ended longer ago than this, or only count them; return how many.

    Each batch is followed by a pause as long as itself, which leaves other writers their turn.
    """
    before = cutoff(clock, older_than)
    total = 0
    for operation_ids in pages_of_ended(database, kind.statements.ended, before, BATCH_ROWS):
        total += len(operation_ids)
        for operation_id in () if dry_run else operation_ids:
            while _delete_some(kind, database, operation_id, pause):
                pass
    return total


def _delete_some(
    kind: OperationKind[Any], database: Database, operation_id: str, pause: Pause
) -> bool:
    """Delete some parts of an operation, and its row with the last; return whether more remain."""
    by_id = {f"{kind.name}_id": operation_id}
    with database.read() as tx:
        rows = tx.fetch(kind.statements.some_parts, **by_id, most=BATCH_ROWS)
    keys = {kind.part_keys: [key for (key,) in rows]}
    with paced_write(database, pause) as tx:
        for statement in kind.statements.delete_parts:
            tx.execute(statement, **by_id, **keys)
        if len(rows) < BATCH_ROWS:
            tx.execute(kind.statements.delete, **by_id)
    return len(rows) == BATCH_ROWS
