"""`penstock check` for tests: the invariants of a database, its queue and its object store."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from tempfile import TemporaryDirectory
from typing import cast

from penstock.catalog.writes import open_write_queue
from penstock.clock import Clock, system_clock
from penstock.config import Settings
from penstock.db import Database, Transaction, open_database
from penstock.ingest.opening import open_ingest
from penstock.objects import Objects
from penstock.provenance.checks import Grounds, catalog, locks
from penstock.provenance.checks.run import check


def assert_all_holds(settings: Settings, *, deep: bool = True) -> None:
    """Fail with every broken invariant. This writes nothing and does not wait."""
    with open_grounds(settings, deep=deep) as invariant_grounds:
        verdicts = list(check(invariant_grounds))
    wrong = {v.name: v.error or v.first for v in verdicts if not v.holds}
    assert wrong == {}, wrong
    assert len(verdicts) > 20


def assert_database_holds(url: str) -> None:
    """Fail with every broken invariant of a test that has only a database, without lot data."""
    with TemporaryDirectory(prefix="penstock-checked-") as folder:
        settings = Settings(database=url, objects=folder, ingest_folder=f"{folder}/ingest")
        assert_all_holds(settings)


def broken_invariants(database: Database, clock: Clock) -> list[str]:
    """Return the invariants of catalog and locks that do not hold now, for use after each step."""
    with open_grounds_on(Settings(), database, clock) as invariant_grounds:
        verdicts = list(check(invariant_grounds, (*catalog.INVARIANTS, *locks.INVARIANTS)))
    return [f"{v.name}: {v.error or v.first}" for v in verdicts if not v.holds]


@contextmanager
def open_grounds(settings: Settings, *, deep: bool = False) -> Iterator[Grounds]:
    """Open everything that a check reads, beside the processes that use it."""
    with (
        closing(open_database(settings.database)) as database,
        open_grounds_on(settings, database, system_clock, deep=deep) as invariant_grounds,
    ):
        yield invariant_grounds


@contextmanager
def open_grounds_on(
    settings: Settings, database: Database, clock: Clock, *, deep: bool = False
) -> Iterator[Grounds]:
    """Do the same with an open database. Its write queue is never started."""
    idle = open_write_queue(database, clock=clock, batch_events_max=1, queue_length_max=1)
    with closing(open_ingest(settings, idle, clock)) as shop:
        yield Grounds(database, lambda: Objects.open(settings.objects), shop, clock, deep=deep)


def transaction_view(tx: Transaction) -> Database:
    """A read-only view of the database inside a transaction that is not committed."""
    return cast(Database, _Inside(tx))


class _Inside:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        yield self._tx
