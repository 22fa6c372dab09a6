"""A catalog whose time is set by hand, and what jobs do with its lots."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.catalog.writes import open_write_queue
from penstock.clock import Micros, parse_time
from penstock.db import Database, open_database
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    FailClaims,
    RegisterLots,
    WireJob,
)
from penstock.locks.gaps.gaps import load_gaps
from penstock.locks.gaps.spans import Bound
from penstock.lots.manifests import ManifestNote
from penstock.schema.gaps import Gaps
from penstock.schema.lot_ids import Interval
from penstock.states import ManifestState
from penstock.store.write_queue import Command, WriteQueue

T = TypeVar("T")
NOON = parse_time("2026-11-15T12:00:00Z")


@dataclass
class Site:
    """Everything is in the namespace `ns`."""

    database: Database
    catalog: WriteQueue
    now: Micros = NOON

    def do(self, command: Command[T]) -> T:
        return self.catalog.submit(command).result()

    def wire(self, job: str, reads: Sequence[str], writes: Sequence[str], **how: int) -> None:
        inputs, outputs = (tuple(DatasetName("ns", d) for d in side) for side in (reads, writes))
        self.do(WireJob("ns", job, inputs, outputs, **how))  # type: ignore[arg-type]

    def register(
        self, dataset: str, lots: Sequence[str], state: ManifestState | None = None
    ) -> None:
        notes = tuple(note(state) for _ in lots) if state is not None else ()
        self.do(RegisterLots("ns", dataset, tuple(lots), "ann", renew=True, manifests=notes))

    def claim(self, job: str, lot: str, owner: str = "w1") -> ClaimedLot:
        (claimed,) = self.do(ClaimLots("ns", job, owner, lots=(lot,), manager="arcs"))
        return claimed

    def complete(
        self, job: str, lots: Sequence[str], state: ManifestState = ManifestState.COMPLETE
    ) -> None:
        """Publish lots, with a manifest in this state for each output."""
        for lot in lots:
            claim = self.claim(job, lot)
            names = (DatasetName(o.namespace, o.name) for o in claim.outputs)
            notes = tuple((name, note(state)) for name in names)
            self.do(PublishLot(ClaimRef(claim.id, claim.token), notes))

    def fail(self, job: str, lot: str, error: str = "disk full") -> None:
        claim = self.claim(job, lot)
        (ended,) = self.do(FailClaims((ClaimRef(claim.id, claim.token),), error))
        assert ended.refused is None

    def gaps(
        self,
        dataset: str,
        first: Bound,
        last: Bound,
        *,
        interval: Interval | None = None,
        only: str | None = None,
        with_causes: bool = True,
    ) -> Gaps:
        with self.catalog.read() as tx:
            return load_gaps(
                tx, "ns", dataset, first, last, self.now,
                with_causes=with_causes, interval=interval, only=only,
            )  # fmt: skip


@contextmanager
def open_site(url: str) -> Iterator[Site]:
    """A site on an empty database."""
    database = open_database(url)
    database.migrate()
    made: list[Site] = []
    catalog = open_write_queue(
        database, clock=lambda: made[0].now, batch_events_max=64, queue_length_max=1000
    )
    made.append(Site(database, catalog))
    catalog.start()
    yield made[0]
    catalog.stop()
    database.close()


def note(state: ManifestState) -> ManifestNote:
    full = state is not ManifestState.EMPTY
    return ManifestNote(state, "some/manifest.json", int(full), 10 * full, "0" * 64, "")


def hours(first: int, end: int, day: str = "20261114") -> list[str]:
    """Hourly lots of a day."""
    return [f"{day}PT1H{hour:02}" for hour in range(first, end)]
