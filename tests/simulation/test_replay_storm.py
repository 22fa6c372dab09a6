"""Replays among all other actions on lots: no invariant breaks, and each replay ends."""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from penstock import ids
from penstock.arcs.commands import PublishLot
from penstock.arcs.executors.local import LocalThreads
from penstock.clock import SECOND
from penstock.config import Settings
from penstock.errors import PenstockError
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    EndClaim,
    FailClaims,
    HoldJob,
    HoldLot,
    HoldWork,
    ResubmitLots,
    Sweep,
    WireJob,
)
from penstock.operations.replays.target import ReplayTarget
from penstock.provenance.checks import catalog, locks, operations
from penstock.provenance.checks.run import check
from penstock.schema.locks import Stale
from penstock.states import ReplayState, StepState
from penstock.store.write_queue import Command
from tests.contract.replay_site import DIAMOND, ReplaySite, open_replays
from tests.invariants import open_grounds_on

LOTS = ("a", "b")
DATASETS = ("raw", "other", "clean", "left", "right", "join")
INVARIANTS = (*catalog.INVARIANTS, *locks.INVARIANTS, *operations.INVARIANTS)
ANN = ("ann", "to see what happens", "ns")
LONG = 4000 * SECOND  # longer than any lease
NEVER = 4 * 10**15
ACTIONS, TURNS_MAX = 60, 100


@dataclass
class Storm:
    """A client that takes any action at any time, often the same one twice at once."""

    here: ReplaySite
    random: random.Random
    threads: LocalThreads
    claims: list[ClaimedLot] = field(default_factory=list)
    replays: list[str] = field(default_factory=list)

    def act(self) -> None:
        """Take a random action. The server may refuse it."""
        acts: list[Callable[[], object]] = [
            self.start, self.step, self.step, self.step, self.move, self.claim, self.claim,
            self.claim, self.end, self.end, self.end, self.administer, self.administer, self.wait,
        ]  # fmt: skip
        self.here.site.now += SECOND
        with suppress(PenstockError):
            self.random.choice(acts)()

    def start(self) -> None:
        one = self.random.choice(DATASETS)
        targets = [
            ReplayTarget(namespace="ns", dataset=one, lot=self.random.choice(LOTS)),
            ReplayTarget(namespace="ns", job=self.random.choice(list(DIAMOND))),
            ReplayTarget(namespace="ns", dataset="clean", start=0, end=NEVER),
        ]
        target, name = self.random.choice(targets), ids.derived_id(self.random.choice("abc"))
        self._twice(lambda: self.here.replays.start(name, "ann", "bad", target, max_running=2))
        if name not in self.replays:
            self.replays.append(name)

    def step(self) -> None:
        name = self.random.choice(self.replays or [""])
        self._twice(lambda: self.here.replays.step(name))

    def move(self) -> None:
        moves = (self.here.replays.pause, self.here.replays.resume, self.here.replays.cancel)
        self.random.choice(moves)(self.random.choice(self.replays or [""]), "ann", "why not")

    def claim(self) -> None:
        self.claims += self.here.site.do(ClaimLots("ns", self._job(), "w", 2))

    def end(self) -> None:
        if self.claims:
            claim = self.claims.pop(self.random.randrange(len(self.claims)))
            ref = ClaimRef(claim.id, claim.token)
            is_good = self.random.random() < 0.8
            self.here.site.do(PublishLot(ref, ()) if is_good else FailClaims((ref,), "no luck"))

    def administer(self) -> None:
        lot, job, hold = self.random.choice(LOTS), self._job(), self.random.random() < 0.5
        commands = (
            HoldLot(*ANN, self.random.choice(DATASETS), lot, hold),
            HoldJob(*ANN, job, hold),
            HoldWork(*ANN, job, lot, hold),
            ResubmitLots(*ANN, job, (lot,)),
            EndClaim(*ANN, job, lot),
        )
        self.here.site.do(self.random.choice(commands))

    def wait(self) -> None:
        self.here.site.now += LONG
        self.here.site.do(Sweep())
        self.here.site.register("raw", [self.random.choice(LOTS)])

    def calm_down(self) -> None:
        """Resume everything that was paused and release every hold."""
        commands: tuple[Command[object], ...] = (
            *(HoldJob(*ANN, job, hold=False) for job in DIAMOND),
            *(HoldLot(*ANN, d, lot, hold=False) for d in DATASETS for lot in LOTS),
            *(HoldWork(*ANN, job, lot, hold=False) for job in DIAMOND for lot in LOTS),
        )
        for command in commands:
            with suppress(PenstockError):
                self.here.site.do(command)
        for name in self.replays:
            with suppress(PenstockError):
                self.here.replays.resume(name, "ann")

    def work(self) -> bool:
        """Advance all replays and do the ready work; return whether a replay still runs."""
        for name in self.replays:
            self.here.replays.step(name)
        self.here.site.now += LONG
        self.here.site.do(Sweep())
        for each in sorted(self.here.ready()):
            with suppress(PenstockError):
                self.here.done(*each.split(" "))
        states = {self.here.replays.status(name).state for name in self.replays}
        return ReplayState.RUNNING in states

    def _job(self) -> str:
        return self.random.choice(list(DIAMOND))

    def _twice(self, call: Callable[[], object]) -> None:
        for answer in [self.threads.submit(call) for _ in range(2)]:
            answer.result()


@pytest.fixture
def here(database_url: str) -> Iterator[ReplaySite]:
    with open_replays(database_url) as here:
        here.all_done(*LOTS)
        yield here


def misplaced(here: ReplaySite, replays: list[str]) -> set[tuple[str, str]]:
    """Return work that is reserved by a replay that does not own it, and the reverse."""
    reserved = {
        (f"{step.job} {step.lot}", name)
        for name in replays
        if here.replays.status(name).state in (ReplayState.RUNNING, ReplayState.PAUSED)
        for state in (StepState.PENDING, StepState.BLOCKED)
        for step in here.replays.steps(name, state=state)
    }
    waiting = {(work, name) for work, names in here.turns().items() for name in names}
    return reserved ^ waiting


def broken_invariants(here: ReplaySite) -> list[str]:
    with open_grounds_on(
        Settings(), here.site.database, lambda: here.site.now
    ) as invariant_grounds:
        return [
            f"{v.name}: {v.error or v.first}"
            for v in check(invariant_grounds, INVARIANTS)
            if not v.holds
        ]


@pytest.mark.parametrize("number", range(3))
def test_invariants_hold_and_every_replay_ends(here: ReplaySite, number: int) -> None:
    for job in DIAMOND:
        here.site.do(WireJob("ns", job, stale=list(Stale)[number]))
    with LocalThreads(2) as threads:
        storm = Storm(here, random.Random(number), threads)
        for _ in range(ACTIONS // 4):
            for _ in range(4):
                storm.act()
            assert broken_invariants(here) == []
            assert misplaced(here, storm.replays) == set()
        storm.calm_down()
        assert storm.replays
        assert any(not storm.work() for _ in range(TURNS_MAX))
    assert (broken_invariants(here), here.turns()) == ([], {})
