"""What `penstock check` says of a database, its queue and its object store, for every test."""

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
    """Fail with what breaks an invariant, if anything does. Nothing is written, or waited for."""
    with grounds(settings, deep=deep) as found:
        verdicts = list(check(found))
    wrong = {v.name: v.error or v.first for v in verdicts if not v.holds}
    assert wrong == {}, wrong
    assert len(verdicts) > 20


def assert_database_holds(url: str) -> None:
    """The same for a test that has only a database, and lots without data."""
    with TemporaryDirectory(prefix="penstock-checked-") as folder:
        settings = Settings(database=url, objects=folder, ingest_folder=f"{folder}/ingest")
        assert_all_holds(settings)


def broken_invariants(database: Database, clock: Clock) -> list[str]:
    """What breaks the invariants of catalog and locks now, for tests that look at every step."""
    with opened(Settings(), database, clock) as found:
        verdicts = list(check(found, (*catalog.INVARIANTS, *locks.INVARIANTS)))
    return [f"{v.name}: {v.error or v.first}" for v in verdicts if not v.holds]


@contextmanager
def grounds(settings: Settings, *, deep: bool = False) -> Iterator[Grounds]:
    """What a check looks at, opened beside whoever works on it."""
    with (
        closing(open_database(settings.database)) as database,
        opened(settings, database, system_clock, deep=deep) as found,
    ):
        yield found


@contextmanager
def opened(
    settings: Settings, database: Database, clock: Clock, *, deep: bool = False
) -> Iterator[Grounds]:
    """The same on a database that is open; its catalog never begins to write."""
    idle = open_write_queue(database, clock=clock, batch_events_max=1, queue_length_max=1)
    with closing(open_ingest(settings, idle, clock)) as shop:
        yield Grounds(database, lambda: Objects.open(settings.objects), shop, clock, deep=deep)


def inside(tx: Transaction) -> Database:
    """The database as it is inside of one transaction that is not committed; only for reading."""
    return cast(Database, _Inside(tx))


class _Inside:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        yield self._tx
