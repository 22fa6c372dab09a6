"""Reporting the state of a run that nobody holds a lot for."""

from itertools import count, groupby, takewhile

from msgspec import Struct

from penstock import ids
from penstock.catalog.commands import DatasetName, MarkRun
from penstock.catalog.commands.lookup import Write, job_row
from penstock.catalog.rows import JobRow
from penstock.catalog.unit_of_work import Keys, UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, PenstockError
from penstock.locks import claiming, work
from penstock.locks.claiming import Ref, keyed_run
from penstock.locks.commands.wiring import WireJob
from penstock.locks.explain.text import ask_why
from penstock.locks.rows import GIVEN_BACK, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.schema.locks import LEASE_SECONDS_MAX
from penstock.schema.lot_ids import check_lot
from penstock.states import RUN, WorkState


class MarkFreeRun(Write, frozen=True):
    """Report the state of a run; a run that holds a lot ends with its claim."""

    mark: MarkRun

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Move the run, unless its lot would be left behind."""
        run_id = ids.run_id(self.mark.run_id)
        claims = uow.tables(LockTables).claims_of(run_id) if self.mark.state in RUN.terminal else []
        if claims:
            raise Conflict(
                f"run {run_id} holds lot {claims[0].lot}: end it with its claim, "
                f"POST /api/v1/claims/{run_id}/complete, fail or release, or by its events"
            )
        self.mark.execute(uow, now)


CLAIMS_AT_ONCE_MAX = 1000


class Pinned(Struct, frozen=True, gc=False):
    """A dataset of a claim; the version that is read, where it is an input."""

    namespace: str
    name: str
    version: str | None = None


class Claimed(Struct, frozen=True, gc=False):
    """One job's hold on one lot."""

    id: str  # of its run, too
    token: int
    namespace: str
    job: str
    lot: str
    owner: str
    attempt: int
    attempts_max: int
    lease_seconds: int
    lease_until: Micros
    inputs: tuple[Pinned, ...]
    outputs: tuple[Pinned, ...]


class ClaimLots(Write, frozen=True):
    """Find lots that a job can work on, and claim them."""

    namespace: str
    job: str
    owner: str
    count: int = 1
    newest: bool = False
    lease_seconds: int | None = None
    lots: tuple[str, ...] | None = None  # only these; all of them READY, or none is claimed
    key: str | None = None  # asked again with the same, the same claims are the answer
    wiring: WireJob | None = None  # stated first; a claim that is refused states nothing

    def prefetch(self, keys: Keys) -> None:
        """Whether the key was used before."""
        if self.key is not None:
            keys.runs.add(keyed_run(ids.job_id(self.namespace, self.job), self.key, 0))

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Claimed]:
        """Claim up to `count`; none is an empty list."""
        if not 1 <= self.count <= CLAIMS_AT_ONCE_MAX:
            raise Invalid(f"between 1 and {CLAIMS_AT_ONCE_MAX} lots are claimed at once")
        if self.wiring is not None:
            self.wiring.execute(uow, now)
        room = uow.tables(LockTables)
        named = job_row(uow, self.namespace, self.job, visible=True)
        job = wired(room, named)
        if before := self._claimed_before(uow, job):
            return [describe(uow, named, job, claim) for claim in before]
        if work.held_gate(room, job) is not None:
            return []
        rows = self._chosen(room, named, job, now)
        seconds = lease(self.lease_seconds) or job.lease_seconds
        claims = claiming.take(uow, job, rows, self.owner, seconds, now, self.key)
        return [describe(uow, named, job, claim) for claim in claims]

    def _claimed_before(self, uow: UnitOfWork, job: LotJobRow) -> list[WorkRow]:
        """What was claimed with the same key and is still held; nothing, if the key is new."""
        if self.key is None or uow.runs.get(keyed_run(job.job_id, self.key, 0)) is None:
            return []
        room = uow.tables(LockTables)
        numbered = (keyed_run(job.job_id, self.key, number) for number in count())
        runs = list(takewhile(uow.runs.get, numbered))
        room.prefetch_claims(runs)
        live = [claim for claim in map(room.claimed, runs) if claim is not None]
        where = f"by job {self.namespace}/{self.job} with key {self.key!r}"
        if not live:
            raise Conflict(f"all that was claimed {where} is over; claim more with another key")
        if live[0].owner != self.owner:
            raise Conflict(
                f"lot {live[0].lot} was claimed {where} by {live[0].owner!r}, not by "
                f"{self.owner!r}; each call needs a key of its own"
            )
        return live

    def _chosen(
        self, room: LockTables, named: JobRow, job: LotJobRow, now: Micros
    ) -> list[WorkRow]:
        if self.lots is None:
            return room.ready(job.job_id, self.count, newest=self.newest)
        lots = [check_lot(lot) for lot in dict.fromkeys(self.lots)]
        room.work.prefetch((job.job_id, lot) for lot in lots)
        if not job.input_ids:  # nothing that arrives tells which lots there are: the caller does
            work.refresh(room, job, lots, now)
        rows = []
        for lot in lots:
            row = room.work.get((job.job_id, lot))
            if row is None or row.state != WorkState.READY:
                state = f"is {row.state}" if row is not None else "is not known"
                raise Conflict(
                    f"lot {lot} {state} for job {named.namespace}/{named.name} and cannot be "
                    f"claimed; {ask_why(named.namespace, named.name, lot)}"
                )
            rows.append(row)
        return rows


def wired(room: LockTables, job: JobRow) -> LotJobRow:
    """How a job's lots are worked on, or Invalid."""
    found = room.jobs.get(job.id)
    if found is None:
        raise Invalid(
            f"job {job.namespace}/{job.name} does not work lot by lot yet; name its inputs and "
            f"outputs with the claim, or with PUT …/jobs/{job.name}/wiring"
        )
    return found


def lease(seconds: int | None) -> int | None:
    """A lease that is not too long and not too short."""
    if seconds is not None and not 1 <= seconds <= LEASE_SECONDS_MAX:
        raise Invalid(f"a lease is between 1 and {LEASE_SECONDS_MAX} seconds, not {seconds}")
    return seconds


def describe(uow: UnitOfWork, named: JobRow, job: LotJobRow, claim: WorkRow) -> Claimed:
    """A claim as its holder needs it."""
    assert claim.run_id is not None, "a live claim is a run"
    io = uow.io_of(claim.run_id)
    versions = {dataset: row.version_id for (_, dataset), row in io.items()}
    return Claimed(
        id=claim.run_id,
        token=claim.token,
        namespace=named.namespace,
        job=named.name,
        lot=claim.lot,
        owner=claim.owner,
        attempt=claim.tries,
        attempts_max=job.tries_max,
        lease_seconds=claim.lease_seconds,
        lease_until=claim.lease_until,
        inputs=tuple(_pinned(uow, d, versions.get(d)) for d in job.input_ids),
        outputs=tuple(_pinned(uow, d, None) for d in job.output_ids),
    )


def _pinned(uow: UnitOfWork, dataset_id: str, version: str | None) -> Pinned:
    dataset = uow.datasets.get(dataset_id)
    assert dataset is not None, "the datasets of a job that claims lots exist"
    return Pinned(dataset.namespace, dataset.name, version)


class HeartbeatClaim(Write, frozen=True):
    """Say that the work on a claim goes on."""

    claim: Ref
    lease_seconds: int | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> Micros:
        """Extend the lease; returned is until when it holds."""
        return claiming.keep(uow, self.claim, lease(self.lease_seconds), now).lease_until


class Ended(Struct, frozen=True):
    """What became of a claim: what it published, where its lot stands, or why it was refused."""

    id: str
    versions: tuple[tuple[DatasetName, str], ...] = ()
    state: WorkState = WorkState.DONE
    not_before: Micros = 0
    refused: PenstockError | None = None
    lot: str = ""


class CompleteClaims(Write, frozen=True):
    """Publish what claims have made; each succeeds or is refused alone."""

    claims: tuple[Ref, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Ended]:
        """Complete them, in the order given."""
        room = uow.tables(LockTables)
        room.prefetch_claims(ref.id for ref in self.claims)
        ended: dict[Ref, Ended] = {}
        rows: list[tuple[Ref, WorkRow]] = []
        for ref in dict.fromkeys(self.claims):
            try:
                rows.append((ref, claiming.live(uow, ref)))
            except PenstockError as refusal:
                ended[ref] = Ended(ref.id, refused=refusal)
        for _, group in groupby(rows, key=lambda pair: pair[1].job_id):
            refs, claims = zip(*group, strict=True)
            made = claiming.complete(uow, claims, now)
            for ref, claim, versions in zip(refs, claims, made, strict=True):
                named = tuple((_name(uow, d), version) for d, version in versions.items())
                ended[ref] = Ended(ref.id, named, lot=claim.lot)
        return [ended[ref] for ref in self.claims]


def _name(uow: UnitOfWork, dataset_id: str) -> DatasetName:
    pinned = _pinned(uow, dataset_id, None)
    return DatasetName(pinned.namespace, pinned.name)


class FailClaims(Write, frozen=True):
    """Report that work on claims has failed; each is refused alone."""

    claims: tuple[Ref, ...]
    error: str = ""

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Ended]:
        """Fail them."""
        uow.tables(LockTables).prefetch_claims(ref.id for ref in self.claims)
        return [self._fail(uow, ref, now) for ref in self.claims]

    def _fail(self, uow: UnitOfWork, ref: Ref, now: Micros) -> Ended:
        try:
            row = claiming.live(uow, ref)
        except PenstockError as refusal:
            return Ended(ref.id, refused=refusal)
        after = claiming.fail(uow, row, self.error, now)
        return Ended(ref.id, state=after.state, not_before=after.not_before, lot=after.lot)


class ReleaseClaim(Write, frozen=True):
    """Give a claim back untouched; it does not count as a try.

    Where it was given back for what is `away`, it is not claimed again before a pause.
    """

    claim: Ref
    away: str = ""
    pause_seconds: int = 0

    def execute(self, uow: UnitOfWork, now: Micros) -> Ended:
        """Release it."""
        row = claiming.live(uow, self.claim)
        why = f"{GIVEN_BACK}{self.away}" if self.away else ""
        after = claiming.give_back(uow, row, "release", row.owner, why, now, self.pause_seconds)
        return Ended(self.claim.id, state=after.state, not_before=after.not_before, lot=after.lot)
