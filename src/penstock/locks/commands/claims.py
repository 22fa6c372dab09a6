"""Claims of workers: acquire, renew, complete, fail and release."""

from itertools import count, groupby, takewhile

from msgspec import Struct

from penstock import ids
from penstock.catalog.commands import DatasetName, MarkRun
from penstock.catalog.commands.lookup import Write, job_row
from penstock.catalog.rows import JobRow
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, PenstockError
from penstock.locks import claiming, work_state
from penstock.locks.claiming import ClaimRef, keyed_run
from penstock.locks.commands.wiring import WireJob
from penstock.locks.explain import advice
from penstock.locks.explain.text import ask_why
from penstock.locks.rows import RELEASE_PREFIX, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.schema.locks import LEASE_SECONDS_MAX
from penstock.schema.lot_ids import check_lot
from penstock.states import RUN, WorkState


class MarkUnclaimedRun(Write, frozen=True):
    """Report the state of a run that has no claim; a claim ends its run itself."""

    mark: MarkRun

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Change the state, or refuse to end a run that has a live claim."""
        run_id = ids.run_id(self.mark.run_id)
        claims = (
            uow.tables(LockTables).list_live_claims(run_id)
            if self.mark.state in RUN.terminal
            else []
        )
        if claims:
            raise Conflict(
                f"run {run_id} has claimed lot {claims[0].lot}: end it with its claim, "
                f"POST /api/v1/claims/{run_id}/complete, fail or release, or by its events"
            )
        self.mark.execute(uow, now)


CLAIMS_AT_ONCE_MAX = 1000


class ClaimDataset(Struct, frozen=True, gc=False):
    """A dataset of a claim; an input has the version that is read."""

    namespace: str
    name: str
    version: str | None = None


class ClaimedLot(Struct, frozen=True, gc=False):
    """A claim of one job on one lot; its id is also that of its run."""

    id: str
    token: int
    namespace: str
    job: str
    lot: str
    owner: str
    attempt: int
    attempts_max: int
    lease_seconds: int
    lease_until: Micros
    inputs: tuple[ClaimDataset, ...]
    outputs: tuple[ClaimDataset, ...]


class ClaimLots(Write, frozen=True):
    """Claim lots that are READY for a job."""

    namespace: str
    job: str
    owner: str
    count: int = 1
    newest: bool = False
    lease_seconds: int | None = None
    lots: tuple[str, ...] | None = None  # claim exactly these, or none
    key: str | None = None  # a repeated call with the same key returns the same claims
    wiring: WireJob | None = None  # applied first; undone if the claim is refused
    manager: str | None = None  # the engine that claims, if one does

    def prefetch(self, keys: RowKeys) -> None:
        """Prefetch the run of an earlier call with the same key."""
        if self.key is not None:
            keys.runs.add(keyed_run(ids.job_id(self.namespace, self.job), self.key, 0))

    def execute(self, uow: UnitOfWork, now: Micros) -> list[ClaimedLot]:
        """Claim up to `count` lots; return an empty list if none is READY."""
        if not 1 <= self.count <= CLAIMS_AT_ONCE_MAX:
            raise Invalid(f"one call claims 1 to {CLAIMS_AT_ONCE_MAX} lots, not {self.count}")
        tables = uow.tables(LockTables)
        self._check_manager(tables)
        if self.wiring is not None:
            self.wiring.execute(uow, now)
        catalog_job = job_row(uow, self.namespace, self.job, visible=True)
        job = require_wiring(tables, catalog_job)
        if before := self._claimed_before(uow, job):
            return [describe_claim(uow, catalog_job, job, claim) for claim in before]
        if work_state.find_hold(tables, job) is not None:
            return []
        rows = self._choose(tables, catalog_job, job, now)
        seconds = check_lease(self.lease_seconds) or job.lease_seconds
        claims = claiming.acquire(uow, job, rows, self.owner, seconds, now, self.key)
        return [describe_claim(uow, catalog_job, job, claim) for claim in claims]

    def _check_manager(self, tables: LockTables) -> None:
        job = tables.jobs.get(ids.job_id(self.namespace, self.job))
        if job is not None and job.managed_by not in (None, self.manager):
            command = advice.run_arc(f"{self.namespace}/{self.job}")
            raise Conflict(
                f"job {self.namespace}/{self.job} is an arc, whose engine claims its lots; to make "
                f"one here and now: `{command}`"
            )

    def _claimed_before(self, uow: UnitOfWork, job: LotJobRow) -> list[WorkRow]:
        """Return the live claims of an earlier call with the same key."""
        if self.key is None or uow.runs.get(keyed_run(job.job_id, self.key, 0)) is None:
            return []
        tables = uow.tables(LockTables)
        numbered = (keyed_run(job.job_id, self.key, number) for number in count())
        runs = list(takewhile(uow.runs.get, numbered))
        tables.prefetch_claims(runs)
        live = [claim for claim in map(tables.find_live_claim, runs) if claim is not None]
        where = f"by job {self.namespace}/{self.job} with key {self.key!r}"
        if not live:
            raise Conflict(f"all claims {where} are over; claim more with another key")
        if live[0].owner != self.owner:
            raise Conflict(
                f"lot {live[0].lot} was claimed {where} by {live[0].owner!r}, not by "
                f"{self.owner!r}; each call needs a key of its own"
            )
        return live

    def _choose(
        self, tables: LockTables, catalog_job: JobRow, job: LotJobRow, now: Micros
    ) -> list[WorkRow]:
        if self.lots is None:
            return tables.list_ready_work(job.job_id, self.count, newest=self.newest)
        lots = [check_lot(lot) for lot in dict.fromkeys(self.lots)]
        tables.work.prefetch((job.job_id, lot) for lot in lots)
        if not job.input_ids:  # no input announces lots, so the caller does
            work_state.refresh(tables, job, lots, now)
        rows = []
        for lot in lots:
            row = tables.work.get((job.job_id, lot))
            if row is None or row.state != WorkState.READY:
                state = f"is {row.state}" if row is not None else "is not known"
                raise Conflict(
                    f"lot {lot} {state} for job {catalog_job.namespace}/{catalog_job.name}"
                    " and cannot be "
                    f"claimed; {ask_why(catalog_job.namespace, catalog_job.name, lot)}"
                )
            rows.append(row)
        return rows


def require_wiring(tables: LockTables, job: JobRow) -> LotJobRow:
    """Return the wiring of a job, or raise Invalid."""
    row = tables.jobs.get(job.id)
    if row is None:
        raise Invalid(
            f"job {job.namespace}/{job.name} does not work lot by lot yet; name its inputs and "
            f"outputs with the claim, or with PUT …/jobs/{job.name}/wiring"
        )
    return row


def check_lease(seconds: int | None) -> int | None:
    """Check the length of a lease."""
    if seconds is not None and not 1 <= seconds <= LEASE_SECONDS_MAX:
        raise Invalid(f"a lease is between 1 and {LEASE_SECONDS_MAX} seconds, not {seconds}")
    return seconds


def describe_claim(
    uow: UnitOfWork, catalog_job: JobRow, job: LotJobRow, claim: WorkRow
) -> ClaimedLot:
    """Describe a claim to its worker."""
    assert claim.run_id is not None, "a live claim is a run"
    io = uow.io_of(claim.run_id)
    versions = {dataset: row.version_id for (_, dataset), row in io.items()}
    return ClaimedLot(
        id=claim.run_id,
        token=claim.token,
        namespace=catalog_job.namespace,
        job=catalog_job.name,
        lot=claim.lot,
        owner=claim.owner,
        attempt=claim.tries,
        attempts_max=job.tries_max,
        lease_seconds=claim.lease_seconds,
        lease_until=claim.lease_until,
        inputs=tuple(_dataset(uow, d, versions.get(d)) for d in job.input_ids),
        outputs=tuple(_dataset(uow, d, None) for d in job.output_ids),
    )


def _dataset(uow: UnitOfWork, dataset_id: str, version: str | None) -> ClaimDataset:
    dataset = uow.datasets.get(dataset_id)
    assert dataset is not None, "the datasets of a job that claims lots exist"
    return ClaimDataset(dataset.namespace, dataset.name, version)


class RenewClaim(Write, frozen=True):
    """Renew the lease of a claim."""

    claim: ClaimRef
    lease_seconds: int | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> Micros:
        """Renew the lease and return its new end."""
        return claiming.renew(uow, self.claim, check_lease(self.lease_seconds), now).lease_until


class ClaimResult(Struct, frozen=True):
    """The end of a claim: its versions, the state of its work, or the refusal."""

    id: str
    versions: tuple[tuple[DatasetName, str], ...] = ()
    state: WorkState = WorkState.DONE
    not_before: Micros = 0
    refused: PenstockError | None = None
    lot: str = ""


class CompleteClaims(Write, frozen=True):
    """Complete claims and publish their outputs; each succeeds or is refused alone."""

    claims: tuple[ClaimRef, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> list[ClaimResult]:
        """Complete the claims; return the results in the same order."""
        tables = uow.tables(LockTables)
        tables.prefetch_claims(ref.id for ref in self.claims)
        results: dict[ClaimRef, ClaimResult] = {}
        rows: list[tuple[ClaimRef, WorkRow]] = []
        for ref in dict.fromkeys(self.claims):
            try:
                _check_unmanaged(uow, ref)
                rows.append((ref, claiming.find_live(uow, ref)))
            except PenstockError as refusal:
                results[ref] = ClaimResult(ref.id, refused=refusal)
        for _, group in groupby(rows, key=lambda pair: pair[1].job_id):
            refs, claims = zip(*group, strict=True)
            versions = claiming.complete(uow, claims, now)
            for ref, claim, of_claim in zip(refs, claims, versions, strict=True):
                pairs = tuple((_name(uow, d), version) for d, version in of_claim.items())
                results[ref] = ClaimResult(ref.id, pairs, lot=claim.lot)
        return [results[ref] for ref in self.claims]


def _check_unmanaged(uow: UnitOfWork, ref: ClaimRef) -> None:
    run = uow.runs.get(ref.id)
    job = uow.tables(LockTables).jobs.get(run.job_id) if run is not None else None
    if job is not None and job.managed_by is not None:
        raise Conflict(
            f"claim {ref.id} is of an arc, whose engine publishes its lots; wait for the engine, "
            "or release the claim to have the lot made again"
        )


class ClaimsTurnover(Struct, frozen=True):
    """The results of completed claims, and the claims that follow them."""

    ended: list[ClaimResult]
    claimed: list[ClaimedLot]


class CompleteAndClaim(Write, frozen=True):
    """Complete claims, then claim more lots, in one transaction.

    A worker that goes from lot to lot needs half the transactions. Each claim to complete is
    refused alone; if the new claim is refused, nothing is completed.
    """

    claim: ClaimLots
    complete: tuple[ClaimRef, ...] = ()

    def prefetch(self, keys: RowKeys) -> None:
        """Prefetch the rows of the claim."""
        self.claim.prefetch(keys)

    def execute(self, uow: UnitOfWork, now: Micros) -> ClaimsTurnover:
        """Complete, then claim."""
        ended = CompleteClaims(self.complete).execute(uow, now) if self.complete else []
        return ClaimsTurnover(ended, self.claim.execute(uow, now))


def _name(uow: UnitOfWork, dataset_id: str) -> DatasetName:
    dataset = _dataset(uow, dataset_id, None)
    return DatasetName(dataset.namespace, dataset.name)


class FailClaims(Write, frozen=True):
    """Fail claims; each is refused alone."""

    claims: tuple[ClaimRef, ...]
    error: str = ""

    def execute(self, uow: UnitOfWork, now: Micros) -> list[ClaimResult]:
        """Fail the claims; return the results in the same order."""
        uow.tables(LockTables).prefetch_claims(ref.id for ref in self.claims)
        return [self._fail(uow, ref, now) for ref in self.claims]

    def _fail(self, uow: UnitOfWork, ref: ClaimRef, now: Micros) -> ClaimResult:
        try:
            row = claiming.find_live(uow, ref)
        except PenstockError as refusal:
            return ClaimResult(ref.id, refused=refusal)
        after = claiming.fail(uow, row, self.error, now)
        return ClaimResult(ref.id, state=after.state, not_before=after.not_before, lot=after.lot)


class ReleaseClaim(Write, frozen=True):
    """Release a claim unfinished; it does not count as a try.

    If the dependency `away` is unavailable, the lot is not claimed again before a pause.
    """

    claim: ClaimRef
    away: str = ""
    pause_seconds: int = 0

    def execute(self, uow: UnitOfWork, now: Micros) -> ClaimResult:
        """Release the claim."""
        row = claiming.find_live(uow, self.claim)
        why = f"{RELEASE_PREFIX}{self.away}" if self.away else ""
        after = claiming.release(uow, row, "release", row.owner, why, now, self.pause_seconds)
        return ClaimResult(
            self.claim.id, state=after.state, not_before=after.not_before, lot=after.lot
        )
