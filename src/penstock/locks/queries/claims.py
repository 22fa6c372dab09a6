"""Reads of wiring, claims and locks.

A list costs the same few statements whatever its length. A missing thing raises `NotFound`.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from penstock import ids
from penstock.catalog.entities.runs import lot_facet
from penstock.clock import SECOND, Micros, format_time
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import NotFound
from penstock.locks.explain.facts import WholeHold
from penstock.locks.lock_rules import locks_of
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.schema.catalog import DatasetRole, EntityId
from penstock.schema.locks import (
    HeldDataset,
    HeldWhole,
    Lock,
    LockedDataset,
    PinnedInput,
    ReleasedDataset,
    ReleasedJob,
    ShownClaim,
    Wiring,
)
from penstock.schema.lots import Held, Status
from penstock.schema.shape import Page, time_or_none
from penstock.states import RunState

TOTAL_MAX = 10_000  # a total of this height means: so many, or more

_decode_ids = msgspec.json.Decoder(tuple[str, ...]).decode


class ClaimedRun(Struct, frozen=True):
    """A run of a job that works lot by lot."""

    id: str
    job_id: str
    state: RunState
    facets: str
    namespace: str
    job: str
    outputs: str
    tries_max: int


class _LiveRow(Struct, frozen=True):
    job_id: str
    namespace: str
    job: str
    lot: str
    owner: str
    run_id: str
    token: int
    since: Micros
    lease_until: Micros
    inputs: str
    outputs: str

    def datasets(self) -> Iterable[tuple[DatasetRole, str]]:
        yield from ((DatasetRole.INPUT, dataset) for dataset in _decode_ids(self.inputs))
        yield from ((DatasetRole.OUTPUT, dataset) for dataset in _decode_ids(self.outputs))


def get_wiring(tx: Transaction, namespace: str, job: str) -> Wiring:
    """Read the wiring of a job."""
    row = get_lot_job(tx, namespace, job)
    wanted = [*row.input_ids, *row.output_ids]
    names, held = tx.fetch_many(
        [("read_dataset_names", {"ids": wanted}), ("read_held_gates", {"ids": [row.job_id]})]
    )
    name_of = {dataset: EntityId(space, name) for dataset, space, name in names}
    hold = next((WholeHold(*row[1:]) for row in held), None)
    return Wiring(
        namespace=namespace,
        job=job,
        inputs=[name_of[dataset] for dataset in row.input_ids],
        outputs=[name_of[dataset] for dataset in row.output_ids],
        lease_seconds=row.lease_seconds,
        tries_max=row.tries_max,
        back_off_seconds=row.back_off_seconds,
        enforced=bool(row.enforced),
        stale=row.stale,
        held=Held(hold.who, hold.why, format_time(hold.since)) if hold is not None else None,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        held_through=hold.source if hold is not None else None,
    )


def get_lot_job(tx: Transaction, namespace: str, job: str) -> LotJobRow:
    """Read the row of a job's wiring."""
    row = tx.fetch_one("read_lot_job", id=ids.job_id(namespace, job))
    if row is not None and row[0]:
        raise NotFound(
            f"job {job!r} in namespace {namespace!r} was deleted; restore it, or wire it again"
        )
    if row is None:
        raise NotFound(
            f"there is no job {job!r} in namespace {namespace!r}; wire it with PUT …/wiring first"
        )
    if row[1] is None:
        raise NotFound(
            f"job {job!r} in namespace {namespace!r} does not work lot by lot yet; name its "
            "inputs and outputs with PUT …/wiring, or with the first claim"
        )
    return LotJobRow(*row[1:])


def get_held_dataset(tx: Transaction, namespace: str, dataset: str) -> HeldDataset:
    """Read the hold of a dataset."""
    dataset_id = find_dataset(tx, namespace, dataset)
    held = tx.fetch("read_held_gates", ids=[dataset_id])
    return HeldDataset(
        namespace,
        dataset,
        next((Held(who, why, format_time(at)) for *_, who, why, at in held), None),
    )


def show_hold(gate: WholeHold) -> HeldWhole:
    """Show the hold of a whole dataset or job."""
    since, source = format_time(gate.since), gate.source
    return HeldWhole(
        gate.kind, gate.namespace, gate.name, gate.who, gate.why, since, source, gate.command
    )


def list_stops_of_job(tx: Transaction, job: LotJobRow) -> list[WholeHold]:
    """List the holds that stop a whole job: its own, and those of its datasets."""
    keys = [job.job_id, *job.input_ids, *job.output_ids]
    return [WholeHold(*row[1:]) for row in tx.fetch("read_held_gates", ids=keys)]


def list_stops_of_dataset(tx: Transaction, dataset_id: str, only: str | None) -> list[WholeHold]:
    """List the holds of jobs that read or write a dataset; with `only`, in one namespace."""
    jobs = [job_id for (job_id,) in tx.fetch("read_jobs_of_dataset", dataset_id=dataset_id)]
    rows = tx.fetch("read_held_gates", ids=jobs) if jobs else ()
    gates = [WholeHold(*row[1:]) for row in rows]
    return [gate for gate in gates if only is None or gate.namespace == only]


def get_released_job(tx: Transaction, namespace: str, job: str) -> ReleasedJob:
    """Read a released job, with the holds that still stop it."""
    stops = list_stops_of_job(tx, get_lot_job(tx, namespace, job))
    wiring = get_wiring(tx, namespace, job)
    return ReleasedJob(*astuple(wiring), stopped_by=[show_hold(gate) for gate in stops])


def get_released_dataset(
    tx: Transaction, namespace: str, dataset: str, only: str | None
) -> ReleasedDataset:
    """Read a released dataset, with the holds that still stop the jobs around it."""
    stops = list_stops_of_dataset(tx, find_dataset(tx, namespace, dataset), only)
    shown = get_held_dataset(tx, namespace, dataset)
    return ReleasedDataset(*astuple(shown), stopped_by=[show_hold(gate) for gate in stops])


def find_dataset(tx: Transaction, namespace: str, dataset: str) -> str:
    """Find the id of a dataset by its first or second name."""
    row = tx.fetch_one("read_dataset_by_name", id=ids.dataset_id(namespace, dataset))
    if row is None:
        raise NotFound(
            f"there is no dataset {dataset!r} in namespace {namespace!r}; "
            "list the namespace's datasets, or search for a part of the name"
        )
    dataset_id: str = row[0]
    return dataset_id


def get_claim(tx: Transaction, run_id: str) -> ShownClaim:
    """Read a claim, live or over."""
    run = find_claimed_run(tx, run_id)
    facet = lot_facet(run.facets) if run is not None else None
    if run is None or facet is None or not facet.attempt:
        raise NotFound(f"there is no claim {run_id}; list the locks to see live claims")
    outputs = _decode_ids(run.outputs)
    of_claim = {"job_id": run.job_id, "lot": facet.lot, "run_id": run.id}
    work, claimers, touched, names = tx.fetch_many(
        [
            ("lot_work_by_lots", {"job_id": run.job_id, "lots": [facet.lot]}),
            ("read_claimer", of_claim),
            ("read_run_datasets", {"ids": [run.id]}),
            ("read_dataset_names", {"ids": outputs}),
        ]
    )
    held = next((row for row in (WorkRow(*found) for found in work) if row.run_id == run.id), None)
    name_of = {dataset: EntityId(space, name) for dataset, space, name in names}
    return ShownClaim(
        id=run.id,
        state=RunState(run.state),
        token=held.token if held is not None else None,
        namespace=run.namespace,
        job=run.job,
        lot=facet.lot,
        owner=held.owner if held is not None else next((who for (who,) in claimers), ""),
        attempt=facet.attempt,
        attempts_max=run.tries_max,
        lease_seconds=held.lease_seconds if held is not None else None,
        lease_until=time_or_none(held.lease_until or None) if held is not None else None,
        inputs=[
            PinnedInput(space, name, version)
            for _, role, space, name, version, *_ in touched
            if role == DatasetRole.INPUT
        ],
        outputs=[name_of[dataset] for dataset in outputs],
    )


def find_claimed_run(tx: Transaction, run_id: str) -> ClaimedRun | None:
    """Read a run of a job that works lot by lot."""
    return next(iter(tx.rows(ClaimedRun, "read_claimed_run", id=run_id)), None)


def namespaces_of_claims(tx: Transaction, run_ids: Iterable[str]) -> Sequence[str]:
    """Read the namespaces of the jobs of these claims."""
    return [name for (name,) in tx.fetch("read_claim_namespaces", ids=list(run_ids))]


def list_locks(
    tx: Transaction,
    now: Micros,
    *,
    namespace: str | None = None,
    job: str | None = None,
    dataset: str | None = None,
    lot: str | None = None,
    limit: int,
    offset: int,
) -> Page[Lock]:
    """List live claims, in the order in which their leases end.

    A job or a dataset is in the namespace. A dataset selects the claims of every job that reads or
    writes it.
    """
    page = {"lot": lot, "limit": limit, "offset": offset}
    total = {"lot": lot, "most": TOTAL_MAX}
    if job is None and dataset is None:
        asks: list[Ask] = [
            ("read_live_claims", {**page, "namespace": namespace}),
            ("count_live_claims", {**total, "namespace": namespace}),
        ]
    else:
        wanted = {"ids": _jobs(tx, namespace or "", job, dataset)}
        asks = [
            ("read_live_claims_of_jobs", {**page, **wanted}),
            ("count_live_claims_of_jobs", {**total, **wanted}),
        ]
    rows, [(count,)] = tx.fetch_many(asks)
    return Page(_locks(tx, [_LiveRow(*row) for row in rows], now), max(count, offset + len(rows)))


def _jobs(tx: Transaction, namespace: str, job: str | None, dataset: str | None) -> list[str]:
    only_id = get_lot_job(tx, namespace, job).job_id if job is not None else None
    if dataset is None:
        return [only_id] if only_id else []
    dataset_id = find_dataset(tx, namespace, dataset)
    rows = tx.fetch("read_jobs_of_dataset", dataset_id=dataset_id)
    return [job_id for (job_id,) in rows if only_id in (None, job_id)]


def _locks(tx: Transaction, claims: Sequence[_LiveRow], now: Micros) -> list[Lock]:
    """Load the status rows of live claims."""
    if not claims:
        return []
    inputs, outputs = [], []
    for claim in claims:
        for role, dataset in claim.datasets():
            if role == DatasetRole.INPUT:
                inputs.append(dataset + claim.job_id + claim.lot)
            else:
                outputs.append(dataset + claim.lot)
    datasets = list({key[:36] for key in (*inputs, *outputs)})
    names, read, written = tx.fetch_many(
        [
            ("read_dataset_names", {"ids": datasets}),
            ("read_input_statuses", {"keys": inputs}),
            ("read_output_statuses", {"keys": outputs}),
        ]
    )
    name_of = {dataset: (space, name) for dataset, space, name in names}
    statuses = {(DatasetRole.INPUT, d, job, lot): Status(s) for d, lot, job, s in read}
    statuses |= {(DatasetRole.OUTPUT, d, job, lot): Status(s) for d, lot, job, s in written}
    return [_lock(claim, name_of, statuses, now) for claim in claims]


def _lock(
    claim: _LiveRow,
    name_of: dict[str, tuple[str, str]],
    statuses: dict[tuple[DatasetRole, str, str, str], Status],
    now: Micros,
) -> Lock:
    held = []
    for role, dataset in claim.datasets():
        status = statuses.get((role, dataset, claim.job_id, claim.lot))
        if status is not None:
            held.append(LockedDataset(*name_of[dataset], role, status, lock_names(role, status)))
    return Lock(
        namespace=claim.namespace,
        job=claim.job,
        lot=claim.lot,
        owner=claim.owner,
        claim=claim.run_id,
        token=claim.token,
        since=format_time(claim.since),
        lease_until=format_time(claim.lease_until),
        lease_seconds_left=max(0, claim.lease_until - now) / SECOND,
        datasets=held,
    )


def lock_names(role: DatasetRole, status: Status) -> list[str]:
    """Name the locks of a status row: read, write, local."""
    return [name for name, locked in locks_of(role, status)._asdict().items() if locked]
