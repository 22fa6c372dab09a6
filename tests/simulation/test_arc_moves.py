"""Random commands on an arc: the derived states of its lots follow the table ARC."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.arcs.commands import ApplyArc, ClaimArcLots, FailLot, PublishLot, RecordAttempts
from penstock.arcs.overview import list_arc_lots
from penstock.arcs.queries import attempts_of
from penstock.arcs.spec import Arc, Input, Output, Retry, Workload
from penstock.catalog.commands import DatasetName
from penstock.clock import HOUR
from penstock.errors import PenstockError
from penstock.ids import job_id
from penstock.locks.commands import (
    ClaimedLot,
    ClaimRef,
    HoldWork,
    RegisterLots,
    ReleaseClaim,
    ResubmitLots,
    Sweep,
)
from penstock.schema.locks import Stale
from penstock.states import ARC, ArcState, ManifestState
from tests.contract.lot_site import Site, note, open_site
from tests.databases import sqlite_database

ARC_ID = job_id("ns", "make")
LOTS = ("1", "2")
WHO = ("ann", "to see what happens")
OUTPUTS = (("made",), ("made", "extra"))


@dataclass
class Story:
    """One arc, two lots, and all commands on them."""

    site: Site
    chance: random.Random
    claims: list[ClaimedLot] = field(default_factory=list)
    moves: set[tuple[ArcState, ArcState]] = field(default_factory=set)

    def act(self) -> None:
        before = self.states()
        acts: tuple[Callable[[], None], ...] = (
            self.claim,
            self.claim,
            self.publish,
            self.fail,
            self.expire,
            self.release,
            self.resubmit,
            self.clean,
            self.declare,
            self.register,
            self.hold,
        )
        self.chance.choice(acts)()
        for lot, state in self.states().items():
            was = before.get(lot)
            if was is not None and state is not None and was is not state:
                self.moves.add((was, state))

    def states(self) -> dict[str, ArcState | None]:
        with self.site.catalog.read() as tx:
            return {row.lot: row.state for row in list_arc_lots(tx, "ns", "make", None, "", 10)}

    def send(self, command: Any) -> Any:
        self.site.now += 1
        try:
            return self.site.do(command)
        except PenstockError:
            return None

    def declare(self) -> None:
        names = self.chance.choice(OUTPUTS)
        arc = Arc(
            name="make",
            namespace="ns",
            inputs=(Input(dataset="raw"),),
            outputs=tuple(Output(dataset=name) for name in names),
            workload=Workload(function="builtins:print"),
            retry=Retry(tries=3, back_off_seconds=0, lease_seconds=60),
            stale=self.chance.choice(list(Stale)),
        )
        self.send(ApplyArc("ann", arc))

    def register(self) -> None:
        self.send(RegisterLots("ns", "raw", LOTS, "ann", renew=True))

    def claim(self) -> None:
        claimed = self.send(ClaimArcLots("ns", "make", "engine", 1))
        self.claims += claimed.claims if claimed is not None else ()

    def ref(self) -> ClaimRef:
        claim = self.chance.choice(self.claims[-2:])
        return ClaimRef(claim.id, claim.token)

    def publish(self) -> None:
        if self.claims:
            state = self.chance.choice([ManifestState.COMPLETE, ManifestState.PARTIAL])
            self.send(PublishLot(self.ref(), ((DatasetName("ns", "made"), note(state)),)))

    def fail(self) -> None:
        if self.claims:
            self.send(FailLot(self.ref(), "no luck", ("some/key",)))

    def expire(self) -> None:
        self.site.now += HOUR
        self.send(Sweep())

    def release(self) -> None:
        if self.claims:
            self.send(ReleaseClaim(self.ref()))

    def resubmit(self) -> None:
        self.send(ResubmitLots(*WHO, "ns", "make", (self.chance.choice(LOTS),)))

    def hold(self) -> None:
        hold = self.chance.random() < 0.5
        self.send(HoldWork(*WHO, "ns", "make", self.chance.choice(LOTS), hold=hold))

    def clean(self) -> None:
        lot = self.chance.choice(LOTS)
        with self.site.catalog.read() as tx:
            runs = tuple((each.run_id, ()) for each in attempts_of(tx, ARC_ID, lot))
        self.send(RecordAttempts(ARC_ID, lot, runs, ManifestState.REMOVED))


def test_random_commands_make_only_transitions_of_the_arc_table(tmp_path: Path) -> None:
    with open_site(sqlite_database(tmp_path / "penstock.db")) as site:
        story = Story(site, random.Random(7))
        story.declare()
        story.register()
        for _ in range(200):
            story.act()

    assert story.moves
    assert [move for move in sorted(story.moves) if not _is_listed(*move)] == []


def _is_listed(was: ArcState, state: ArcState) -> bool:
    return ARC.allows(was, state) or ARC.allows(was, state, by_hand=True)
