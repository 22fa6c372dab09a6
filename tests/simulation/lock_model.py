"""What locks promise, told again in plain Python: dicts, no SQL, none of the code under test.

These are the rows and what follows from them; `lock_following` has what each command does to them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.clock import HOUR, SECOND, Micros
from penstock.locks.commands import ClaimedLot, ClaimRef

LOTS = ("2", "9", "10", "100")  # in the order they are worked on
OUTSIDE = ""  # who made a lot that no job made
NOWHERE = OUTSIDE  # what a job reads that a person keeps from a lot
# How far a job is by what it wrote: its status, and what that was before somebody held it.
_WROTE = {
    ("READY", ""): "DONE",
    ("HOLD", "READY"): "DONE",
    ("HOLD", ""): "HOLD",
    ("HOLD", "ERROR"): "HOLD",
}
QUALITY = "!"  # why a lot is held whose checks failed
UNKNOWN = "?"  # a version that was made, and not looked at yet


@dataclass
class Wiring:
    """What a job reads and writes, and how it is tried."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lease_seconds: int
    tries_max: int
    back_off_seconds: int
    stale: str = "ignore"


@dataclass
class Row:
    """A status row; `edition` tells versions apart before they are looked at, `token` claims."""

    status: str
    by: str
    version: str | None = None
    held_from: str = ""
    edition: int = field(default=0, compare=False)
    token: int = field(default=0, compare=False)


@dataclass
class Work:
    """What is known of a job and a lot besides its rows."""

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
    """Everything that is true of locks at one moment."""

    now: Micros
    swept_at: Micros = 0
    jobs: dict[str, Wiring] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)  # jobs and datasets
    made: dict[tuple[str, str], Row] = field(default_factory=dict)  # by dataset and lot
    used: dict[tuple[str, str, str], Row] = field(default_factory=dict)  # by dataset, job and lot
    work: dict[tuple[str, str], Work] = field(default_factory=dict)  # by job and lot
    claims: dict[str, Claim] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)  # the state of each
    current: dict[str, Row] = field(default_factory=dict)  # what was published last, by dataset
    reasons: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # by dataset and lot
    editions: int = 0

    # What follows from the rows.

    def states(self, job: str, lot: str) -> set[str]:
        """Where a job stands with a lot; two answers while a back-off is over and unswept."""
        wiring = self.jobs[job]
        if self.claim_on(job, lot) is not None:
            return {"RUNNING"}
        read = (*wiring.inputs, NOWHERE)
        own = {row.status for d in read if (row := self.used.get((d, job, lot)))}
        if not own:  # what it wrote tells how far it is
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
            return {"LATER"}
        return {"LATER", "READY"} if not_before > self.swept_at else {"READY"}

    def claim_on(self, job: str, lot: str) -> Claim | None:
        """The live claim of a job on a lot."""
        return next((c for c in self.claims.values() if (c.job, c.lot) == (job, lot)), None)

    def is_live(self, ref: ClaimRef) -> bool:
        """Whether this is a claim with its own token."""
        return ref.id in self.claims and self.claims[ref.id].token == ref.token

    def meet(self, jobs: Iterable[str], lot: str, rank: int = 0) -> None:
        """These jobs have something to do with a lot from now on."""
        for job in jobs:
            work = self.work.setdefault((job, lot), Work(rank))
            if rank < 0 and self.claim_on(job, lot) is None:
                work.rank = min(work.rank, rank)

    def around(self, datasets: Iterable[str]) -> list[str]:
        """The jobs that read or write these datasets."""
        wanted = set(datasets)
        return [job for job, w in self.jobs.items() if wanted & {*w.inputs, *w.outputs}]

    def writers(self, datasets: Iterable[str]) -> list[str]:
        """The jobs that write these datasets."""
        wanted = set(datasets)
        return [job for job, w in self.jobs.items() if wanted & {*w.outputs}]

    # How claims change the rows.

    def take(self, claimed: ClaimedLot, owner: str, lease_seconds: int) -> None:
        """A claim was given, as it must be."""
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
        """Change an OUTPUT row; what was published before stays what it was."""
        row = self.made.setdefault((dataset, lot), Row(status, job))
        row.status, row.by, row.held_from = status, job, ""

    def complete(self, claim_id: str, versions: dict[str, str]) -> None:
        """A claim has published these versions."""
        claim = self.claims.pop(claim_id)
        job, lot = claim.job, claim.lot
        assert versions.keys() == set(claim.outputs)
        for dataset in claim.inputs:
            self.used[dataset, job, lot].status = "DONE"
        for dataset in claim.outputs:
            row = Row("READY", job, versions[dataset], token=claim.token)
            if self.made[dataset, lot].held_from:  # what it was made from is held by now
                row.status, row.held_from = "HOLD", "READY"
            self.publish(dataset, lot, row)
        self.runs[claim_id] = "COMPLETED"
        self.meet(self.around(claim.outputs), lot, self.work[job, lot].rank)

    def publish(self, dataset: str, lot: str, row: Row) -> None:
        """A lot has a new version."""
        self.editions += 1
        row.edition = self.editions
        self.made[dataset, lot] = self.current[dataset] = row

    def fail(self, claim_id: str, *, expired: bool) -> None:
        """A claim has ended badly: it is tried again, or held."""
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
        """A claim has ended without a result; it was no try."""
        claim = self.claims[claim_id]
        self.work[claim.job, claim.lot].tries -= 1
        self._stop(claim_id, "ERROR", "ABORTED")

    # What follows from holds, checks and new versions.

    def hold_made_of(self, root: str, lot: str) -> None:
        """Hold what was made, or is being made, of a lot."""
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
                by = job, row.token  # whatever the job was wired to since
                yield from (d for d, output in made if (output.by, output.token) == by)

    def let_go(self, root: str, lot: str) -> None:
        """What was held for a lot is not any more, unless for something else."""
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
        """Jobs that work on what is made of a held dataset, and not on that itself."""
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
        """Work that is done waits for nothing."""
        for (job, lot), work in self.work.items():
            if self.states(job, lot) == {"DONE"}:
                work.not_before = 0

    def make_stale_again(self) -> None:
        """What was made of a version that is not the last is to be made again, where that is
        asked for; nothing new can be read for it, so that one look is enough.
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
