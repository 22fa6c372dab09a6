"""The register of objects: ARKs, local ids, writers and stored versions.

It is in SQL, wherever the queue is.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count, groupby
from typing import Any, NamedTuple

from msgspec import Struct

from penstock.catalog.commands.lookup import Write
from penstock.catalog.events.apply import receive
from penstock.catalog.events.parse import Event
from penstock.catalog.rows import Row, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Conflict
from penstock.ingest.archive.arks import normalize_ark
from penstock.ingest.queue.sql.tables import IngestTables
from penstock.ingest.search_keys import SearchKeyRow
from penstock.lots.tables import LotTables
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

Spin = Callable[[int], str]  # returns the ARK of a number
LocalIdKey = tuple[str, str, str]  # namespace, owner, name

_LOOKED_AHEAD = 100


class MintedRow(Row, frozen=True):
    """The number and the ARK that were minted for a deposit."""

    key: str
    shoulder: str
    number: int
    ark: str | None
    at: Micros


class ArkRow(Row, frozen=True):
    """An ARK in use, from any minter, and the namespace that owns it.

    `storage` is the storage of the stored object; empty is the server's own store.
    """

    ark: str
    namespace: str
    storage: str | None


class LocalIdRow(Row, frozen=True):
    """The ARK of an owner's local id in a namespace."""

    namespace: str
    owner: str
    local_id: str
    ark: str


class WriterRow(Row, frozen=True):
    """The only deposit that may write a version of an object now."""

    ark: str
    key: str
    job_id: str


class StoredRow(Row, frozen=True):
    """A version of an object, and the deposit that made it."""

    ark: str
    version: int
    key: str
    namespace: str
    collection: str
    batch_id: str
    job_id: str
    location: str
    digest: str
    files: int
    bytes: int
    title: str
    run_id: str
    at: Micros


class _GoneWriter(Struct, frozen=True):
    ark: str


class RegisterTables:
    """The cached rows of the register."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        undo = uow.undo
        self.minted: TableCache[MintedRow] = TableCache(self._fetch_minted, undo)
        self.arks: TableCache[ArkRow] = TableCache(self._fetch_arks, undo)
        self.local_ids: TableCache[LocalIdRow] = TableCache(self._fetch_local_ids, undo)
        self.writers: TableCache[WriterRow] = TableCache(self._fetch_writers, undo)
        self.stored: TableCache[StoredRow] = TableCache(self._fetch_stored, undo)
        self.search_keys: TableCache[SearchKeyRow] = TableCache(write_only, undo)
        self.cached: tuple[TableCache[Any], ...] = (
            self.minted,
            self.arks,
            self.local_ids,
            self.writers,
            self.stored,
        )
        self.append_only: tuple[TableCache[Any], ...] = (self.search_keys,)

    def changes(self) -> Changes:
        return [
            ("put_minted_arks", self.minted.changed()),
            ("put_arks", self.arks.changed()),
            ("put_local_ids", self.local_ids.changed()),
            ("forget_ark_writers", [_GoneWriter(ark) for ark in self.writers.gone()]),
            ("put_ark_writers", self.writers.changed()),
            ("put_stored_objects", self.stored.changed()),
            ("add_search_keys", self.search_keys.changed()),
        ]

    def is_used(self, ark: str) -> bool:
        """Whether an ARK in this exact spelling is in use."""
        return self.arks.get(ark) is not None

    def write(self, writer: WriterRow) -> WriterRow:
        """Make a deposit the writer of an object.

        A recorded deposit gets no row: only a worker that lost its lock asks for it, and the row
        would never be deleted.
        """
        if self.stored.get(writer.key) is None:
            self.writers.put(writer.ark, writer)
        return writer

    def _fetch_minted(self, keys: list[str]) -> dict[str, MintedRow]:
        rows = self._uow.tx.rows(MintedRow, "minted_arks_by_keys", ids=keys)
        return {row.key: row for row in rows}

    def _fetch_arks(self, arks: list[str]) -> dict[str, ArkRow]:
        return {row.ark: row for row in self._uow.tx.rows(ArkRow, "arks_by_arks", ids=arks)}

    def _fetch_local_ids(self, keys: list[LocalIdKey]) -> dict[LocalIdKey, LocalIdRow]:
        rows_by_key: dict[LocalIdKey, LocalIdRow] = {}
        for (namespace, owner), same in groupby(sorted(keys), key=lambda key: key[:2]):
            rows = self._uow.tx.rows(
                LocalIdRow,
                "local_ids_of_owner",
                namespace=namespace,
                owner=owner,
                names=[name for _, _, name in same],
            )
            rows_by_key |= {(row.namespace, row.owner, row.local_id): row for row in rows}
        return rows_by_key

    def _fetch_writers(self, arks: list[str]) -> dict[str, WriterRow]:
        rows = self._uow.tx.rows(WriterRow, "ark_writers_by_arks", ids=arks)
        return {row.ark: row for row in rows}

    def _fetch_stored(self, keys: list[str]) -> dict[str, StoredRow]:
        rows = self._uow.tx.rows(StoredRow, "stored_objects_by_keys", ids=keys)
        return {row.key: row for row in rows}


class ReserveArks(Write, frozen=True):
    """Reserve the ARKs that a depositor named, so that they are not minted for other deposits."""

    namespace: str
    arks: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        tables = uow.tables(RegisterTables)
        tables.arks.prefetch(map(normalize_ark, self.arks))
        for ark in map(normalize_ark, self.arks):
            if not tables.is_used(ark):
                tables.arks.put(ark, ArkRow(ark, self.namespace, None))


class Offer(NamedTuple):
    """A new ARK for a deposit, and the number that it was minted from, if any.

    The caller checks that no object is stored under it, and then takes it up. An ARK that is not
    taken up is never offered again.
    """

    ark: str
    number: int = 0


class Identified(NamedTuple):
    """The ARK of a deposit and the current writer of its object, or else an offer."""

    ark: str | None
    writer: WriterRow | None
    offer: Offer | None = None


class Identify(Write, frozen=True):
    """Find the ARK of a deposit, bind its local ids to it, and ask to write the object.

    A deposit without an ARK gets `taken_up`. Without that, the result is an offer, if there is
    `spin`.
    """

    key: str
    job_id: str
    namespace: str
    storage: str
    owner: str
    local_ids: tuple[str, ...]
    primary: str | None
    shoulder: str
    spin: Spin | None
    taken_up: Offer | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> Identified:
        """Raise Conflict for a local id of another object, or an ARK of another namespace."""
        tables = uow.tables(RegisterTables)
        ark = self._find_known(tables) or self._take_up(tables, now)
        if ark is None:
            return Identified(None, None, self.spin and _unused(uow, self.shoulder, self.spin))
        writer = tables.writers.get(ark)
        self._bind(tables, ark, writer)
        for name in self.local_ids:
            key = (self.namespace, self.owner, name)
            if tables.local_ids.get(key) is None:
                tables.local_ids.put(key, LocalIdRow(*key, ark))
        return Identified(ark, writer or tables.write(WriterRow(ark, self.key, self.job_id)))

    def _bind(self, tables: RegisterTables, ark: str, writer: WriterRow | None) -> None:
        """Bind the ARK to the namespace; the binding is permanent once an object is stored."""
        row = tables.arks.get(ark)
        row_of_namespace = ArkRow(ark, self.namespace, None)
        if row is None or (row.storage is None and (not writer or writer.key == self.key)):
            if row != row_of_namespace:
                tables.arks.put(ark, row_of_namespace)
        elif row.namespace != self.namespace:
            raise Conflict(
                f"{ark} belongs to another namespace than {self.namespace!r}; "
                "correct the identifiers and submit the object again"
            )
        elif row.storage not in (None, self.storage):
            raise Conflict(
                f"{ark} is kept in another storage than that of its collection; "
                "submit the object to the collection that has stored it"
            )

    def _find_known(self, tables: RegisterTables) -> str | None:
        ark = None if self.primary is None else normalize_ark(self.primary)
        for name in self.local_ids:
            bound = tables.local_ids.get((self.namespace, self.owner, name))
            if bound is None:
                continue
            if ark is not None and bound.ark != ark:
                raise Conflict(
                    f"local id {name!r} of {self.owner} stands for {bound.ark}, not for {ark}; "
                    "correct the identifiers and submit the object again"
                )
            ark = bound.ark
        return ark

    def _take_up(self, tables: RegisterTables, now: Micros) -> str | None:
        row = tables.minted.get(self.key)
        if row is not None and row.ark is not None:
            return row.ark
        if self.taken_up is None:
            return None
        ark, number = normalize_ark(self.taken_up.ark), self.taken_up.number
        if tables.is_used(ark):
            if self.spin is not None:
                return None  # a depositor has just named this ARK
            raise Conflict(
                f"{ark} was minted, but is in use here already; resume the job, and it gets another"
            )
        tables.minted.put(self.key, MintedRow(self.key, self.shoulder, number, ark, now))
        return ark


def _unused(uow: UnitOfWork, shoulder: str, spin: Spin) -> Offer:
    """Offer the next number whose ARK is not in use; depositors may have named many ARKs."""
    tables = uow.tables(RegisterTables)
    for tried in count():
        number = uow.tables(IngestTables).next_number(f"ark {shoulder}")
        if tried % _LOOKED_AHEAD == 1:
            arks = [normalize_ark(spin(each)) for each in range(number, number + _LOOKED_AHEAD)]
            tables.arks.prefetch(arks)
        if not tables.is_used(normalize_ark(spin(number))):
            break
    return Offer(spin(number), number)


class TakeOver(Write, frozen=True):
    """Ask to write an object in place of a deposit that no longer writes it."""

    ark: str
    key: str
    job_id: str
    instead_of: str

    def execute(self, uow: UnitOfWork, now: Micros) -> WriterRow:
        """Return the current writer."""
        tables = uow.tables(RegisterTables)
        row = tables.writers.get(self.ark)
        if row is None or row.key == self.instead_of:
            row = tables.write(WriterRow(self.ark, self.key, self.job_id))
        return row


class DeleteWriter(Write, frozen=True):
    """Delete the row of a writer that was recorded or abandoned."""

    ark: str
    key: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Do nothing if another deposit is the writer now."""
        tables = uow.tables(RegisterTables)
        writer = tables.writers.get(self.ark)
        if writer is not None and writer.key == self.key:
            tables.writers.put(self.ark, None)


class RecordDeposit(Write, frozen=True):
    """Record a stored version in the catalog once, with its run if that is known."""

    stored: StoredRow
    storage: str
    events: tuple[Event, ...]
    search_keys: tuple[SearchKeyRow, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """Return False if it was recorded before."""
        tables = uow.tables(RegisterTables)
        DeleteWriter(self.stored.ark, self.stored.key).execute(uow, now)
        if tables.stored.get(self.stored.key) is not None:
            return False
        ark = tables.arks.get(self.stored.ark)
        if ark is None or ark.storage is None:
            row = ArkRow(self.stored.ark, self.stored.namespace, self.storage)
            tables.arks.put(row.ark, row)
        for event in self.events:
            receive(uow, event, now)
        tables.stored.put(self.stored.key, replace(self.stored, at=now))
        for key in self.search_keys:
            tables.search_keys.put(object(), key)
        if self.events:
            uow.tables(LotTables).add_run_end(self.stored.run_id, now)
        return True


def list_writers(tx: Transaction, after: str, most: int) -> list[WriterRow]:
    """Return a page of current writers, by ARK."""
    return tx.rows(WriterRow, "ark_writers_from", after=after, most=most)


def list_versions(tx: Transaction, ark: str) -> list[StoredRow]:
    """Return every stored version of the object of an ARK, newest first."""
    return tx.rows(StoredRow, "versions_of_object", ark=normalize_ark(ark))


def stored_versions(tx: Transaction, keys: Iterable[str]) -> list[StoredRow]:
    """Return the stored versions of these deposits, by key."""
    return tx.rows(StoredRow, "stored_objects_by_keys", ids=list(keys))


def list_stored(tx: Transaction, collection: str, before: Micros, most: int) -> Sequence[StoredRow]:
    """Return the stored versions of a collection, newest first."""
    return tx.rows(
        StoredRow, "objects_of_collection", collection=collection, before=before, most=most
    )
