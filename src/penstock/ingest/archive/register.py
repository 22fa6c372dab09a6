"""Which object is which: ARKs, local ids, stored versions. Kept in SQL, wherever the queue is."""

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
from penstock.ingest.archive.arks import plain
from penstock.ingest.queue.sql.tables import IngestTables
from penstock.ingest.search_keys import SearchKeyRow
from penstock.lots.tables import LotTables
from penstock.store.table_cache import TableCache, write_only
from penstock.store.unit_of_work import Changes

Spin = Callable[[int], str]  # the ARK with a number
LocalIdKey = tuple[str, str, str]  # namespace, owner, name

_LOOKED_AHEAD = 100


class MintedRow(Row, frozen=True):
    """The number, and then the ARK, that was minted for a deposit."""

    key: str
    shoulder: str
    number: int
    ark: str | None
    at: Micros


class ArkRow(Row, frozen=True):
    """An ARK that is in use, whoever minted it, and whose it is.

    `storage` is where its object is kept, once it is stored; empty is the server's own store.
    """

    ark: str
    namespace: str
    storage: str | None


class LocalIdRow(Row, frozen=True):
    """Which ARK an owner's own name for an object stands for, in a namespace."""

    namespace: str
    owner: str
    local_id: str
    ark: str


class WriterRow(Row, frozen=True):
    """The one deposit that may write a version of an object now."""

    ark: str
    key: str
    job_id: str


class StoredRow(Row, frozen=True):
    """One version of an object, and the deposit that made it."""

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
    """Rows by table."""

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
            self.minted, self.arks, self.local_ids, self.writers, self.stored,
        )  # fmt: skip
        self.append_only: tuple[TableCache[Any], ...] = (self.search_keys,)

    def changes(self) -> Changes:
        """Every change of the batch of writes."""
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
        """Whether an ARK in the very same spelling is in use."""
        return self.arks.get(ark) is not None

    def write(self, writer: WriterRow) -> WriterRow:
        """Let a deposit write an object.

        One that has long been recorded is asked about only by a worker that lost its lock: what
        it would write is there, and nobody would ever take its name away again.
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
        found: dict[LocalIdKey, LocalIdRow] = {}
        for (namespace, owner), same in groupby(sorted(keys), key=lambda key: key[:2]):
            rows = self._uow.tx.rows(
                LocalIdRow,
                "local_ids_of_owner",
                namespace=namespace,
                owner=owner,
                names=[name for _, _, name in same],
            )
            found |= {(row.namespace, row.owner, row.local_id): row for row in rows}
        return found

    def _fetch_writers(self, arks: list[str]) -> dict[str, WriterRow]:
        rows = self._uow.tx.rows(WriterRow, "ark_writers_by_arks", ids=arks)
        return {row.ark: row for row in rows}

    def _fetch_stored(self, keys: list[str]) -> dict[str, StoredRow]:
        rows = self._uow.tx.rows(StoredRow, "stored_objects_by_keys", ids=keys)
        return {row.key: row for row in rows}


class ReserveArks(Write, frozen=True):
    """Keep ARKs that a depositor has given from being minted for others before their turn."""

    namespace: str
    arks: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Those that are in use stay whose they are."""
        tables = uow.tables(RegisterTables)
        tables.arks.prefetch(map(plain, self.arks))
        for ark in map(plain, self.arks):
            if not tables.is_used(ark):
                tables.arks.put(ark, ArkRow(ark, self.namespace, None))


class Offer(NamedTuple):
    """A new ARK, and its number if it was spun from one: the deposit's, if it is taken up.

    Whoever takes it up has looked before whether something is stored under it already. What is
    not taken up is offered to nobody else.
    """

    ark: str
    number: int = 0


class Identified(NamedTuple):
    """The ARK of a deposit and which deposit may write that object now, or else an offer."""

    ark: str | None
    writer: WriterRow | None
    offer: Offer | None = None


class Identify(Write, frozen=True):
    """Find the ARK of a deposit, bind its local ids to it, and ask to write the object.

    Where it has none it gets the one that is taken up, once. Without that it is offered one, if
    there is `spin`.
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
        """A local id that stands for another object, or an ARK of others, is a Conflict."""
        room = uow.tables(RegisterTables)
        ark = self._known(room) or self._minted(room, now)
        if ark is None:
            return Identified(None, None, self.spin and _unused(uow, self.shoulder, self.spin))
        writer = room.writers.get(ark)
        self._bind(room, ark, writer)
        for name in self.local_ids:
            key = (self.namespace, self.owner, name)
            if room.local_ids.get(key) is None:
                room.local_ids.put(key, LocalIdRow(*key, ark))
        return Identified(ark, writer or room.write(WriterRow(ark, self.key, self.job_id)))

    def _bind(self, room: RegisterTables, ark: str, writer: WriterRow | None) -> None:
        """Let the ARK be the namespace's own: for ever once something is stored under it."""
        row = room.arks.get(ark)
        own = ArkRow(ark, self.namespace, None)
        if row is None or (row.storage is None and (not writer or writer.key == self.key)):
            if row != own:
                room.arks.put(ark, own)
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

    def _known(self, room: RegisterTables) -> str | None:
        ark = None if self.primary is None else plain(self.primary)
        for name in self.local_ids:
            bound = room.local_ids.get((self.namespace, self.owner, name))
            if bound is None:
                continue
            if ark is not None and bound.ark != ark:
                raise Conflict(
                    f"local id {name!r} of {self.owner} stands for {bound.ark}, not for {ark}; "
                    "correct the identifiers and submit the object again"
                )
            ark = bound.ark
        return ark

    def _minted(self, room: RegisterTables, now: Micros) -> str | None:
        row = room.minted.get(self.key)
        if row is not None and row.ark is not None:
            return row.ark
        if self.taken_up is None:
            return None
        ark, number = plain(self.taken_up.ark), self.taken_up.number
        if room.is_used(ark):
            if self.spin is not None:
                return None  # somebody gave it by hand just now
            raise Conflict(
                f"{ark} was minted, but is in use here already; resume the job, and it gets another"
            )
        room.minted.put(self.key, MintedRow(self.key, self.shoulder, number, ark, now))
        return ark


def _unused(uow: UnitOfWork, shoulder: str, spin: Spin) -> Offer:
    """The next number whose ARK nobody has given by hand; they may have given many."""
    room = uow.tables(RegisterTables)
    for tried in count():
        number = uow.tables(IngestTables).next_number(f"ark {shoulder}")
        if tried % _LOOKED_AHEAD == 1:
            arks = [plain(spin(each)) for each in range(number, number + _LOOKED_AHEAD)]
            room.arks.prefetch(arks)
        if not room.is_used(plain(spin(number))):
            break
    return Offer(spin(number), number)


class TakeOver(Write, frozen=True):
    """Ask to write an object in place of a deposit that does not write it any more."""

    ark: str
    key: str
    job_id: str
    instead_of: str

    def execute(self, uow: UnitOfWork, now: Micros) -> WriterRow:
        """Who may write it now."""
        room = uow.tables(RegisterTables)
        row = room.writers.get(self.ark)
        if row is None or row.key == self.instead_of:
            row = room.write(WriterRow(self.ark, self.key, self.job_id))
        return row


class ForgetWriter(Write, frozen=True):
    """Let a deposit that was given up write its object no more."""

    ark: str
    key: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Nothing happens if another may write it by now."""
        room = uow.tables(RegisterTables)
        writer = room.writers.get(self.ark)
        if writer is not None and writer.key == self.key:
            room.writers.put(self.ark, None)


class RecordDeposit(Write, frozen=True):
    """Write a stored version into the catalog once, with its run if that is known."""

    stored: StoredRow
    storage: str
    events: tuple[Event, ...]
    search_keys: tuple[SearchKeyRow, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """False if it was recorded before."""
        room = uow.tables(RegisterTables)
        ForgetWriter(self.stored.ark, self.stored.key).execute(uow, now)
        if room.stored.get(self.stored.key) is not None:
            return False
        ark = room.arks.get(self.stored.ark)
        if ark is None or ark.storage is None:
            row = ArkRow(self.stored.ark, self.stored.namespace, self.storage)
            room.arks.put(row.ark, row)
        for event in self.events:
            receive(uow, event, now)
        room.stored.put(self.stored.key, replace(self.stored, at=now))
        for key in self.search_keys:
            room.search_keys.put(object(), key)
        if self.events:
            uow.tables(LotTables).add_run_end(self.stored.run_id, now)
        return True


def writers_from(tx: Transaction, after: str, most: int) -> list[WriterRow]:
    """A page of who may write objects now, by ARK."""
    return tx.rows(WriterRow, "ark_writers_from", after=after, most=most)


def versions_of(tx: Transaction, ark: str) -> list[StoredRow]:
    """Every stored version of the object that an ARK names, newest first."""
    return tx.rows(StoredRow, "versions_of_object", ark=plain(ark))


def stored_by(tx: Transaction, keys: Iterable[str]) -> list[StoredRow]:
    """What deposits have stored."""
    return tx.rows(StoredRow, "stored_objects_by_keys", ids=list(keys))


def stored_in(tx: Transaction, collection: str, before: Micros, most: int) -> Sequence[StoredRow]:
    """What a collection has stored, newest first."""
    return tx.rows(
        StoredRow, "objects_of_collection", collection=collection, before=before, most=most
    )
