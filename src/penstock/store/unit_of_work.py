"""The unit of work: table caches of one writer, shared by all commands of a batch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from penstock.clock import Micros
from penstock.db.database import Ask, Transaction
from penstock.store.table_cache import TableCache, UndoLog

ROWS_CACHED_MAX = 100_000

Changes = list[tuple[str, Sequence[Struct]]]  # a statement and the rows that it writes, in order

R = TypeVar("R", bound=Struct)
G = TypeVar("G", bound="TableGroup")


class NeedsOwnTransaction(Exception):
    """A command changes rows that are not cached, and must be alone in its transaction."""


class TableGroup(Protocol):
    """The table caches of one room."""

    @property
    def cached(self) -> Sequence[TableCache[Any]]:
        """Caches that keep their rows from batch to batch."""

    @property
    def append_only(self) -> Sequence[TableCache[Any]]:
        """Caches of rows that are only written."""

    def changes(self) -> Changes:
        """Return the statements of a batch and their rows, in order."""


class BaseUnitOfWork:
    """Cached rows by table, valid while no other process writes.

    Commands read and put rows here and never see the database. The write queue writes the
    changed rows of a whole batch with a few set-based statements.
    """

    def __init__(self) -> None:
        self.undo = UndoLog()
        self._tx: Transaction | None = None
        self._opener: Callable[[], Transaction] | None = None
        self._has_rewritten = False
        self._is_shared = True  # whether other commands share the transaction
        self._cached: list[TableCache[Any]] = []
        self._append_only: list[TableCache[Any]] = []
        self._groups: dict[Any, TableGroup] = {}

    def cache(self, shape: type[R], statement: str, key: str = "id") -> TableCache[R]:
        """Return a cache that fetches missing rows with a named statement."""

        def fetch(keys: list[Any]) -> dict[Any, R]:
            return {getattr(r, key): r for r in self.tx.rows(shape, statement, ids=keys)}

        return TableCache(fetch, self.undo)

    def tables(self, kind: "Callable[[Any], G]") -> G:
        """Return the table group of a room; create it on first use."""
        group: Any = self._groups.get(kind)
        if group is None:
            group = self._groups[kind] = kind(self)
            self._cached += group.cached
            self._append_only += group.append_only
        tables: G = group
        return tables

    @property
    def groups(self) -> Iterable[TableGroup]:
        """The table groups in use."""
        return self._groups.values()

    @property
    def tx(self) -> Transaction:
        """The transaction of the current batch."""
        if self._tx is None:
            if self._opener is None:
                raise RuntimeError("the unit of work is open only inside a transaction")
            self._tx = self._opener()
        return self._tx

    def open(self, tx: Transaction, *, is_shared: bool = True) -> None:
        """Begin a batch in a transaction that one command owns or several share."""
        self._tx = tx
        self._is_shared = is_shared

    def open_late(self, opener: Callable[[], Transaction]) -> None:
        """Begin a batch; open its transaction when a row is missing."""
        self._tx, self._opener, self._is_shared = None, opener, True

    def close(self) -> None:
        """End the use of the transaction."""
        self._tx = self._opener = None

    def new_keys(self) -> Any:
        """Return an empty set of keys for commands to add to."""
        raise NotImplementedError

    def load(self, keys: Any, now: Micros) -> None:
        """Fetch the rows of these keys in one round trip."""
        raise NotImplementedError

    def mark_sent(self) -> None:
        """Record that the batch was sent. The batch before it may not be committed yet."""
        self.close()
        for table in self._append_only:
            table.clear()
        for table in self._cached:
            table.mark_sent()

    @property
    def is_full(self) -> bool:
        """Whether the caches hold too much, or rows that no longer match the database."""
        return self._has_rewritten or sum(map(len, self._cached)) > ROWS_CACHED_MAX

    def forget(self) -> None:
        """Drop all rows: another process wrote, or a batch failed."""
        self.close()
        self._has_rewritten = False
        self.undo.begin()
        for table in self._cached + self._append_only:
            table.clear()

    def rewrite(self, *statements: Ask) -> None:
        """Change rows without the caches; the caches are dropped after the commit."""
        for statement, params in statements:
            self.tx.execute(statement, **params)
        self._has_rewritten = True

    def require_own_transaction(self) -> None:
        """Raise NeedsOwnTransaction if other commands share the transaction."""
        if self._is_shared:
            raise NeedsOwnTransaction

    def start_over(self) -> None:
        """Drop all rows after a flush and a rewrite; continue in the same transaction."""
        tx, is_shared = self.tx, self._is_shared
        self.forget()
        self._has_rewritten = True
        self.open(tx, is_shared=is_shared)

    @property
    def has_rewritten(self) -> bool:
        """Whether rows changed without the caches; only a rollback can undo that."""
        return self._has_rewritten


def write_changes(tx: Transaction, changes: Changes) -> None:
    """Write a batch; nothing is durable before the commit."""
    for statement, rows in changes:
        tx.write(statement, rows)
