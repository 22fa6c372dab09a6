"""A model of locks in plain Python, without SQL or any code under test.

This file has the rows and their consequences. `lock_following` has the effect of each command.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.clock import HOUR, SECOND, Micros
from penstock.locks.commands import ClaimedLot, ClaimRef

LOTS = ("2", "9", "10", "100")  # in the order of work
OUTSIDE = ""  # the maker of a lot that no job made
NOWHERE = OUTSIDE  # an input on which a person holds the job's work
# A job's progress from its output row: the status, and the one before a hold.
_WROTE = {
    ("READY", ""): "DONE",
    ("HOLD", "READY"): "DONE",
    ("HOLD", ""): "HOLD",
    ("HOLD", "ERROR"): "HOLD",
}
QUALITY = "!"  # the reason of a hold after failed checks
UNKNOWN = "?"  # an existing version whose id the model has not read yet


@dataclass
class Wiring:
    """The inputs and outputs of a job, and its retry settings."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lease_seconds: int
    tries_max: int
    back_off_seconds: int
    stale: str = "ignore"


@dataclass
class Row:
    """A status row.

    `edition` tells versions apart before their ids are read; `token` does so for claims.
    """

    status: str
    by: str
    version: str | None = None
    held_from: str = ""
    edition: int = field(default=0, compare=False)
    token: int = field(default=0, compare=False)


@dataclass
class Work:
    """The state of a job's lot apart from its rows."""

    rank: int = 0
    tries: int = 0
    token: int = 0
    not_before: Micros = 0


@dataclass
class Claim:
    """A live claim."""

    job: str
    lot: str
    token: int
    lease_seconds: int
    lease_until: Micros
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass
class Model:
    """The complete state of locks at one moment."""

    now: Micros
    swept_at: Micros = 0
    jobs: dict[str, Wiring] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)  # jobs and datasets
    made: dict[tuple[str, str], Row] = field(default_factory=dict)  # by dataset and lot
    used: dict[tuple[str, str, str], Row] = field(default_factory=dict)  # by dataset, job and lot
    work: dict[tuple[str, str], Work] = field(default_factory=dict)  # by job and lot
    claims: dict[str, Claim] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)  # the state of each
    current: dict[str, Row] = field(default_factory=dict)  # the last publication, by dataset
    reasons: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # by dataset and lot
    editions: int = 0

    # Consequences of the rows.

    def states(self, job: str, lot: str) -> set[str]:
        """Return the state of a job's lot;

        two states while a backoff has ended and was not swept.
        """
        wiring = self.jobs[job]
        if self.claim_on(job, lot) is not None:
            return {"RUNNING"}
        read = (*wiring.inputs, NOWHERE)
        own = {row.status for d in read if (row := self.used.get((d, job, lot)))}
        if not own:  # the output row shows the progress
            rows = [self.made.get((d, lot)) for d in wiring.outputs]
            wrote = [(row.status, row.held_from) for row in rows if row and row.by == job]
            own = {_WROTE[told] for told in wrote if told in _WROTE}
        if "HOLD" in own:
            return {"HELD"}
        if own - {"ERROR"}:
            return {"DONE"}
        sources = [self.made.get((d, lot)) for d in wiring.inputs]
        targets = [self.made.get((d, lot)) for d in wiring.outputs]
        if not all(row is not None and row.status == "READY" for row in sources):
            return {"WAITING"}
        if not all(row is None or row.status in ("ERROR", "RESUBMIT") for row in targets):
            return {"WAITING"}
        not_before = self.work[job, lot].not_before if (job, lot) in self.work else 0
        if not_before > self.now:
            return {"RETRYABLE"}
        return {"RETRYABLE", "READY"} if not_before > self.swept_at else {"READY"}

    def claim_on(self, job: str, lot: str) -> Claim | None:
        """Return the live claim of a job on a lot."""
        return next((c for c in self.claims.values() if (c.job, c.lot) == (job, lot)), None)

    def is_live(self, ref: ClaimRef) -> bool:
        """Return whether this claim is live under its own token."""
        return ref.id in self.claims and self.claims[ref.id].token == ref.token

    def meet(self, jobs: Iterable[str], lot: str, rank: int = 0) -> None:
        """Add the lot to the work of these jobs."""
        for job in jobs:
            work = self.work.setdefault((job, lot), Work(rank))
            if rank < 0 and self.claim_on(job, lot) is None:
                work.rank = min(work.rank, rank)

    def around(self, datasets: Iterable[str]) -> list[str]:
        """Return the jobs that read or write these datasets."""
        wanted = set(datasets)
        return [job for job, w in self.jobs.items() if wanted & {*w.inputs, *w.outputs}]

    def writers(self, datasets: Iterable[str]) -> list[str]:
        """Return the jobs that write these datasets."""
        wanted = set(datasets)
        return [job for job, w in self.jobs.items() if wanted & {*w.outputs}]

    # Effects of claims on the rows.

    def take(self, claimed: ClaimedLot, owner: str, lease_seconds: int) -> None:
        """Record a claim and check that it was correct."""
        job, lot = claimed.job, claimed.lot
        wiring, work = self.jobs[job], self.work[job, lot]
        work.tries += 1
        work.token += 1
        work.not_before = 0
        assert (claimed.owner, claimed.attempt, claimed.token) == (owner, work.tries, work.token)
        assert claimed.lease_until == self.now + lease_seconds * SECOND
        assert claimed.id not in self.runs
        assert tuple(pinned.name for pinned in claimed.inputs) == wiring.inputs
        assert tuple(made.name for made in claimed.outputs) == wiring.outputs
        for pinned in claimed.inputs:
            version = self.made[pinned.name, lot].version
            assert pinned.version is not None
            assert version in (UNKNOWN, pinned.version)
            edition = self.made[pinned.name, lot].edition
            self.used[pinned.name, job, lot] = Row(
                "RUNNING", job, pinned.version, "", edition, work.token
            )
        for dataset in wiring.outputs:
            self._write(dataset, lot, "RUNNING", job)
            self.made[dataset, lot].token = work.token
        self.claims[claimed.id] = Claim(
            job,
            lot,
            work.token,
            lease_seconds,
            claimed.lease_until,
            wiring.inputs,
            wiring.outputs,
        )
        self.runs[claimed.id] = "RUNNING"
        self.meet(self.writers(wiring.outputs), lot)

    def _write(self, dataset: str, lot: str, status: str, job: str) -> None:
        """Change an OUTPUT row. The published version stays."""
        row = self.made.setdefault((dataset, lot), Row(status, job))
        row.status, row.by, row.held_from = status, job, ""

    def complete(self, claim_id: str, versions: dict[str, str]) -> None:
        """Record that a claim published these versions."""
        claim = self.claims.pop(claim_id)
        job, lot = claim.job, claim.lot
        assert versions.keys() == set(claim.outputs)
        for dataset in claim.inputs:
            self.used[dataset, job, lot].status = "DONE"
        for dataset in claim.outputs:
            row = Row("READY", job, versions[dataset], token=claim.token)
            if self.made[dataset, lot].held_from:  # an input of it was held meanwhile
                row.status, row.held_from = "HOLD", "READY"
            self.publish(dataset, lot, row)
        self.runs[claim_id] = "COMPLETED"
        self.meet(self.around(claim.outputs), lot, self.work[job, lot].rank)

    def publish(self, dataset: str, lot: str, row: Row) -> None:
        """Record a new version of a lot."""
        self.editions += 1
        row.edition = self.editions
        self.made[dataset, lot] = self.current[dataset] = row

    def fail(self, claim_id: str, *, expired: bool) -> None:
        """End a claim as failed: retry it, or hold the lot."""
        claim = self.claims[claim_id]
        wiring, work = self.jobs[claim.job], self.work[claim.job, claim.lot]
        spent = work.tries >= wiring.tries_max
        if not spent and not expired:
            wait = min(wiring.back_off_seconds * 2 ** (work.tries - 1) * SECOND, HOUR)
            work.not_before = self.now + wait
        self._stop(claim_id, "HOLD" if spent else "ERROR", "FAILED")

    def _stop(self, claim_id: str, status: str, run_state: str) -> None:
        claim = self.claims.pop(claim_id)
        for dataset in claim.inputs:
            self.used[dataset, claim.job, claim.lot].status = status
        for dataset in claim.outputs:
            self._write(dataset, claim.lot, status, claim.job)
            self.reasons.pop((dataset, claim.lot), None)
        self.runs[claim_id] = run_state
        self.meet(self.writers(claim.outputs), claim.lot)

    def give_back(self, claim_id: str) -> None:
        """End a claim without a result. It costs no try."""
        claim = self.claims[claim_id]
        self.work[claim.job, claim.lot].tries -= 1
        self._stop(claim_id, "ERROR", "ABORTED")

    # Effects of holds, checks and new versions.

    def hold_made_of(self, root: str, lot: str) -> None:
        """Hold the outputs, finished or in progress, that depend on a lot."""
        level, seen = [root], {root}
        while level:
            level = [d for d in dict.fromkeys(self._made_of(level, lot)) if d not in seen]
            seen.update(level)
            for dataset in level:
                row = self.made[dataset, lot]
                if row.status == "RUNNING":
                    row.held_from = "READY"
                elif row.status == "READY":
                    row.status, row.held_from = "HOLD", "READY"
                if row.held_from:
                    self.reasons.setdefault((dataset, lot), set()).add(root)

    def _made_of(self, datasets: list[str], lot: str) -> Iterable[str]:
        for (source, job, of), row in self.used.items():
            if of == lot and source in datasets:
                made = [(d, output) for (d, of), output in self.made.items() if of == lot]
                by = job, row.token  # under any wiring since then
                yield from (d for d, output in made if (output.by, output.token) == by)

    def let_go(self, root: str, lot: str) -> None:
        """Release the holds that a lot caused, unless another lot causes them too."""
        for key, reasons in list(self.reasons.items()):
            if key[1] != lot or root not in reasons:
                continue
            reasons.discard(root)
            if not reasons:
                del self.reasons[key]
                row = self.made[key]
                if row.status == "HOLD":
                    row.status = row.held_from
                row.held_from = ""

    def beyond_held(self) -> set[str]:
        """Return the jobs that read dependents of a held dataset, and not the dataset itself."""
        found: set[str] = set()
        for root in self.held - self.jobs.keys():
            level, seen, readers = [root], {root}, set[str]()
            while level:
                more = {job for job, w in self.jobs.items() if {*level} & {*w.inputs}}
                readers |= more
                level = list({d for job in more for d in self.jobs[job].outputs} - seen)
                seen.update(level)
            found |= readers - {*self.around([root])}
        return found

    def end_backoffs(self) -> None:
        """End the backoff of finished work."""
        for (job, lot), work in self.work.items():
            if self.states(job, lot) == {"DONE"}:
                work.not_before = 0

    def make_stale_again(self) -> None:
        """Mark outputs of old versions as stale, for jobs that want this.

        No job can read a new version meanwhile, so one pass is enough.
        """
        for job, wiring in self.jobs.items():
            for lot in LOTS if wiring.stale == "rerun" else ():
                if self.states(job, lot) == {"DONE"} and self._is_stale(job, lot):
                    self._make_again(job, lot)

    def _is_stale(self, job: str, lot: str) -> bool:
        pairs = [
            (self.used.get((d, job, lot)), self.made.get((d, lot))) for d in self.jobs[job].inputs
        ]
        return any(
            used.status == "DONE" and made.status == "READY" and made.edition > used.edition
            for used, made in pairs
            if used is not None and made is not None
        )

    def _make_again(self, job: str, lot: str) -> None:
        for dataset in self.jobs[job].inputs:
            used = self.used.get((dataset, job, lot))
            if used is not None and used.status == "DONE":
                used.status = "ERROR"
        for dataset in self.jobs[job].outputs:
            made = self.made.get((dataset, lot))
            if made is None or made.by != job:
                continue
            reasons = self.reasons.get((dataset, lot))
            if made.status == "READY" or (made.status == "HOLD" and reasons == {QUALITY}):
                made.status, made.held_from = "RESUBMIT", ""
                self.reasons.pop((dataset, lot), None)
            elif made.held_from == "READY":
                made.held_from = "RESUBMIT"
        work = self.work[job, lot]
        work.tries = work.not_before = 0
