"""A diamond of jobs over lots, and a replay of it, shown as plain texts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock import ids
from penstock.arcs.commands import PublishLot
from penstock.clock import SECOND
from penstock.locks.commands import ClaimedLot, ClaimRef
from penstock.locks.explain.why import explain_work
from penstock.locks.queries.claims import get_wiring
from penstock.locks.rows import GatedWorkRow, StatusRow, WorkRow
from penstock.operations.replays.service import Replays
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.operations import Replay, ReplayPlan
from penstock.states import ReplayState
from tests.contract.lot_site import Site, open_site

REPLAY = "0199aaaa-0000-7000-8000-000000000001"
LOTS = ["a", "b"]
DIAMOND = {  # what each job reads and writes; raw comes from outside
    "clean": (["raw"], ["clean"]),
    "left": (["clean"], ["left"]),
    "right": (["clean"], ["right"]),
    "join": (["left", "right"], ["join"]),
    "apart": (["other"], ["apart"]),
}


@dataclass
class ReplaySite:
    """A site with replays and a settable clock."""

    site: Site
    replays: Replays

    def done(self, job: str, *lots: str, seconds: int = 1) -> None:
        """Let a job complete lots, each after some time."""
        for lot in lots:
            claim = self.site.claim(job, lot)
            self.publish(claim, seconds)

    def publish(self, claim: ClaimedLot, seconds: int = 1) -> None:
        """Complete a claim after some time."""
        self.site.now += seconds * SECOND
        self.site.do(PublishLot(ClaimRef(claim.id, claim.token), ()))

    def all_done(self, *lots: str, jobs: Sequence[str] = tuple(DIAMOND)) -> None:
        """Register lots, and let all jobs complete them."""
        self.site.register("raw", lots)
        self.site.register("other", lots)
        for job in jobs:
            self.done(job, *lots)

    def plan(self, *, at_once: int = 4, **target: Any) -> ReplayPlan:
        return self.replays.plan(ReplayTarget(**{"namespace": "ns", **target}), at_once=at_once)

    def start(self, *, max_running: int = 4, **target: Any) -> Replay:
        wanted = ReplayTarget(**{"namespace": "ns", **target})
        return self.replays.start(REPLAY, "ann", "bad digest", wanted, max_running=max_running)

    def step(self) -> Replay:
        return self.replays.step(REPLAY)

    def states(self) -> dict[str, str]:
        """Return the states of the steps, by job and lot."""
        return {f"{s.job} {s.lot}": str(s.state) for s in self.replays.steps(REPLAY)}

    def ready(self) -> set[str]:
        """Return the work that could be claimed now, by job and lot."""
        rows = [row for job in DIAMOND for row in self._open(job) if row.state == "READY"]
        names = {ids.job_id("ns", job): job for job in DIAMOND}
        return {f"{names[row.job_id]} {row.lot}" for row in rows}

    def _open(self, job: str) -> list[WorkRow]:
        with self.site.catalog.read() as tx:
            return tx.rows(WorkRow, "open_work_of_job", job_id=ids.job_id("ns", job))

    def work(self, job: str, lot: str) -> WorkRow:
        with self.site.catalog.read() as tx:
            [row] = tx.rows(WorkRow, "lot_work_by_lots", job_id=ids.job_id("ns", job), lots=[lot])
        return row

    def runs(self, *lots: str) -> dict[str, str | None]:
        """Return the last run of every job on lots."""
        return {f"{job} {lot}": self.work(job, lot).run_id for job in DIAMOND for lot in lots}

    def output(self, dataset: str, lot: str) -> StatusRow:
        wanted = {"dataset_id": ids.dataset_id("ns", dataset), "lots": [lot]}
        with self.site.catalog.read() as tx:
            [row] = tx.rows(StatusRow, "lot_outputs", **wanted)
        return row

    def turns(self) -> dict[str, list[str]]:
        """Return the replays that reserve work, by job and lot."""
        names = {ids.job_id("ns", job): job for job in (*DIAMOND, "late")}
        with self.site.catalog.read() as tx:
            asked = [{"job_id": job_id, "lots": LOTS} for job_id in names]
            rows = [row for which in asked for row in tx.rows(GatedWorkRow, "lot_turns", **which)]
        return {f"{names[row.job_id]} {row.lot}": [*row.owner_ids] for row in rows}

    def rule(self, job: str) -> str:
        """Set the stale rule of a job."""
        with self.site.catalog.read() as tx:
            return str(get_wiring(tx, "ns", job).stale)

    def why(self, job: str, lot: str) -> str:
        """Explain why a job does not run a lot."""
        with self.site.catalog.read() as tx:
            return explain_work(tx, "ns", job, lot, self.site.now).sentence

    def finish(self, state: ReplayState = ReplayState.DONE) -> Replay:
        """Complete all READY work, step by step, until the replay has ended."""
        while (now := self.step()).state is ReplayState.RUNNING:
            ready = self.ready()
            assert ready, "a replay that runs and has nothing to do would run for ever"
            for each in sorted(ready):
                self.done(*each.split(" "))
        assert now.state is state
        return now


def steps(plan: ReplayPlan) -> list[tuple[str, int, list[int]]]:
    """Return each step as job and lot, its depth, and what it waits for."""
    return [(f"{step.job} {step.lot}", step.depth, list(step.before)) for step in plan.steps]


def names(plan: ReplayPlan) -> set[str]:
    """Return the steps, as job and lot."""
    return {f"{step.job} {step.lot}" for step in plan.steps}


@contextmanager
def open_replays(url: str) -> Iterator[ReplaySite]:
    """Open the diamond on an empty database."""
    with open_site(url) as site:
        for job, (reads, writes) in DIAMOND.items():
            site.wire(job, reads, writes, tries_max=2, back_off_seconds=0)
        yield ReplaySite(site, Replays(site.catalog, lambda: site.now))
