"""A plane where everything holds, and transactions in which something is broken for a while."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.arcs.commands import ApplyArc, BeginParts, ClaimArcLots
from penstock.arcs.engine.single import run_lot
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.spec import Arc, Input, Output, Parts, Retry, Workload
from penstock.config import Settings
from penstock.db import Database, open_database
from penstock.ingest.collections import PutCollection
from penstock.locks.commands import ClaimRef, RegisterLots
from penstock.objects import Objects
from penstock.operations.backfills.service import Backfills
from penstock.operations.replays.service import Replays
from penstock.operations.replays.target import ReplayTarget
from penstock.plane import Plane
from penstock.provenance.checks import Grounds
from penstock.provenance.checks.run import check
from penstock.schema.ingest import Collection
from penstock.schema.lot_ids import Interval
from penstock.schema.provenance import Verdict
from tests.contract.broken import FOLDER
from tests.doors import arc_site
from tests.invariants import transaction_view

NS = "shop"
HOUR = Interval("PT1H")
LOTS = ("20261115PT1H00", "20261115PT1H03")


@dataclass(frozen=True)
class Scene:
    """A database beside the plane's own, with the statements that break things."""

    database: Database
    plane: Plane

    @property
    def objects(self) -> Objects:
        return self.plane.objects

    def verdicts(self, *broken: str, deep: bool = False) -> dict[str, Verdict]:
        """What a check says once these statements were carried out; they are undone after it."""
        found: dict[str, Verdict] = {}
        with suppress(_Undo), self.database.write() as tx:
            for statement in broken:
                tx.execute(statement)
            found = self._check(transaction_view(tx), deep=deep)
            raise _Undo
        return found

    def _check(self, database: Database, *, deep: bool) -> dict[str, Verdict]:
        plane = self.plane
        grounds = Grounds(database, lambda: plane.objects, plane.context, plane.clock, deep=deep)
        return {verdict.name: verdict for verdict in check(grounds)}


class _Undo(Exception):
    """What was broken is whole again."""


@contextmanager
def open_scene(url: str, folder: Path) -> Iterator[Scene]:
    """Lots that were made, one that failed, one under way; a backfill and a replay."""
    settings = Settings(
        database=url,
        objects=str(folder / "objects"),
        ingest_folder=str(folder / "ingest"),
        sweep_seconds=3600,
    )
    with Plane.open(settings) as plane:
        _declare(plane)
        _work(plane)
        with closing(open_database(url, extra=[FOLDER])) as database:
            yield Scene(database, plane)


def _declare(plane: Plane) -> None:
    for name, reads, writes, parts in (
        ("make", "tick", "raw", None),
        ("shout", "raw", "loud", Parts(pattern="day={day}")),
    ):
        arc = Arc(
            name=name,
            namespace=NS,
            inputs=(Input(dataset=reads),),
            outputs=(Output(dataset=writes),),
            workload=Workload(function=f"{arc_site.__name__}:{name}"),
            parts=parts,
            retry=Retry(tries=1, back_off_seconds=0, lease_seconds=3600),
        )
        plane.catalog.submit(ApplyArc("ann", arc)).result()
    maps = Collection(name="maps", namespace=NS, dataset="maps")
    plane.catalog.submit(PutCollection("ann", maps)).result()


def _work(plane: Plane) -> None:
    lots = (*LOTS, arc_site.BAD_LOT, arc_site.EMPTY_LOT)
    plane.catalog.submit(RegisterLots(NS, "tick", lots, "ann")).result()
    with LocalThreads(2) as executor:
        at = (plane.catalog, plane.objects, executor, plane.clock, NS)
        for lot in lots:
            assert run_lot(*at, "make", lot, owner="test") == (lot != arc_site.BAD_LOT)
        assert run_lot(*at, "shout", LOTS[0], owner="test")
    [claim] = plane.catalog.submit(ClaimArcLots(NS, "shout", "test", 1)).result().claims
    plane.catalog.submit(BeginParts(ClaimRef(claim.id, claim.token), {"day=1": ""})).result()
    backfills = Backfills(plane.catalog, plane.clock)
    begun = backfills.start("ann", "look", NS, "shout", claim.lot, claim.lot, interval=HOUR)
    assert backfills.step(begun.id).going == 1
    bad = ReplayTarget(namespace=NS, dataset="raw", lot=LOTS[0])
    assert Replays(plane.catalog, plane.clock).start("again", "ann", "bad", bad).steps == 2
