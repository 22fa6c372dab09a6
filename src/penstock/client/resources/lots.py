"""Calls of lots, work, wiring and holds."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from penstock.client.names import Name, names
from penstock.client.request import Request, call, get, json_body, post, put
from penstock.schema.locks import (
    HeldDataset,
    Locks,
    ReleasedDataset,
    ReleasedJob,
    Stale,
    Why,
    Wiring,
    Work,
    WorkList,
    WorkPage,
)
from penstock.schema.lots import (
    DatasetChecks,
    HeldLots,
    Log,
    Lot,
    LotChecks,
    LotHold,
    LotOnHold,
    Lots,
    Registered,
)
from penstock.states import WorkState

T = TypeVar("T")


class LotCalls:
    """Calls of lots, work, wiring and holds.

    Calls with a reason need an administrator's key; the reason goes into the audit log.
    """

    @call
    def wiring(self, namespace: str, job: str) -> Request[Wiring]:
        """The wiring of a job."""
        return get(Wiring, *_job(namespace, job), "wiring")

    @call
    def wire_job(
        self,
        namespace: str,
        job: str,
        *,
        inputs: Iterable[Name] | None = None,
        outputs: Iterable[Name] | None = None,
        lease_seconds: int | None = None,
        tries_max: int | None = None,
        back_off_seconds: int | None = None,
        enforced: bool | None = None,
        stale: Stale | str | None = None,
    ) -> Request[Wiring]:
        """Wire a job: set its inputs and outputs lot by lot; None leaves a field as it is."""
        body = json_body(
            inputs=names(inputs, namespace),
            outputs=names(outputs, namespace),
            leaseSeconds=lease_seconds,
            triesMax=tries_max,
            backOffSeconds=back_off_seconds,
            enforced=enforced,
            stale=stale,
        )
        return put(Wiring, *_job(namespace, job), "wiring", body=body)

    @call
    def locks(
        self,
        *,
        namespace: str | None = None,
        job: str | None = None,
        dataset: str | None = None,
        lot: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[Locks]:
        """The live claims, and the locks of each."""
        return get(
            Locks,
            "locks",
            namespace=namespace,
            job=job,
            dataset=dataset,
            lot=lot,
            limit=limit,
            offset=offset,
        )

    @call
    def job_lots(
        self,
        namespace: str,
        job: str,
        *,
        state: WorkState | str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[WorkList]:
        """The work of a job, by lot."""
        at = (*_job(namespace, job), "lots")
        return get(WorkList, *at, state=state, limit=limit, offset=offset)

    @call
    def job_lot(self, namespace: str, job: str, lot: str) -> Request[Work]:
        """The work of a job on one lot."""
        return get(Work, *_job(namespace, job), "lots", lot)

    @call
    def why(self, namespace: str, job: str, lot: str) -> Request[Why]:
        """The reasons why a job does not work on a lot, down to the root cause."""
        return get(Why, *_job(namespace, job), "lots", lot, "why")

    @call
    def job_log(
        self,
        namespace: str,
        job: str,
        *,
        lot: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[Log]:
        """The transitions of a job's lots, or of one of them, newest first."""
        at = (*_job(namespace, job), "log")
        return get(Log, *at, lot=lot, limit=limit, offset=offset)

    @call
    def lot_log(
        self, namespace: str, dataset: str, lot: str, *, limit: int = 100, offset: int = 0
    ) -> Request[Log]:
        """The transitions of a lot of a dataset, newest first."""
        at = (*_dataset(namespace, dataset), "lots", lot, "log")
        return get(Log, *at, limit=limit, offset=offset)

    @call
    def run_log(self, run_id: str, *, limit: int = 100, offset: int = 0) -> Request[Log]:
        """The transitions of a run's claim, newest first."""
        return get(Log, "jobs", "runs", run_id, "log", limit=limit, offset=offset)

    @call
    def register_lots(
        self,
        namespace: str,
        dataset: str,
        lots: Sequence[str],
        *,
        priority: int = 0,
        renew: bool = False,
    ) -> Request[int]:
        """Register lots that no job made; return the number of new ones."""
        body = json_body(lots=lots, priority=priority, renew=renew)
        at = (*_dataset(namespace, dataset), "lots")
        registered = post(Registered, *at, body=body, repeatable=not renew)
        return registered.then(lambda answer: answer.registered)

    @call
    def lots(
        self,
        namespace: str,
        dataset: str,
        *,
        named: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[Lots]:
        """The lots of a dataset; with `named`, only those with free names."""
        at = (*_dataset(namespace, dataset), "lots")
        return get(Lots, *at, named=named, limit=limit, offset=offset)

    @call
    def lot(self, namespace: str, dataset: str, lot: str) -> Request[Lot]:
        """One lot of a dataset: its producer, its locks and its consumers."""
        return get(Lot, *_dataset(namespace, dataset), "lots", lot)

    @call
    def resubmit(
        self, namespace: str, job: str, lots: Sequence[str], why: str
    ) -> Request[WorkList]:
        """Resubmit lots of a job; all of them, or none."""
        at = (*_job(namespace, job), "resubmit")
        return post(WorkList, *at, body=json_body(lots=lots, why=why))

    @call
    def hold_work(self, namespace: str, job: str, lot: str, why: str) -> Request[Work]:
        """Hold a job's work on a lot."""
        return _act(Work, *_job(namespace, job), "lots", lot, "hold", why=why)

    @call
    def release_work(self, namespace: str, job: str, lot: str, why: str) -> Request[Work]:
        """Release the hold of a job's work on a lot, with all its tries; else a conflict."""
        at = (*_job(namespace, job), "lots", lot, "release")
        return _act(Work, *at, why=why, repeatable=False)

    @call
    def end_claim(self, namespace: str, job: str, lot: str, why: str) -> Request[Work]:
        """End another worker's claim on a lot."""
        return _act(
            Work, *_job(namespace, job), "lots", lot, "end-claim", why=why, repeatable=False
        )

    @call
    def prioritize(
        self, namespace: str, job: str, lot: str, priority: int, why: str
    ) -> Request[Work]:
        """Set the priority of a job's work on a lot, high first."""
        at = (*_job(namespace, job), "lots", lot, "priority")
        body = json_body(priority=priority, why=why)
        return post(Work, *at, body=body, repeatable=True)

    @call
    def hold_job(self, namespace: str, job: str, why: str) -> Request[Wiring]:
        """Hold a job: none of its lots is claimed."""
        return _act(Wiring, *_job(namespace, job), "hold", why=why)

    @call
    def release_job(self, namespace: str, job: str, why: str) -> Request[ReleasedJob]:
        """Release the hold of a job; a conflict if the job itself is not held."""
        at = (*_job(namespace, job), "release")
        return _act(ReleasedJob, *at, why=why, repeatable=False)

    @call
    def hold_dataset(self, namespace: str, dataset: str, why: str) -> Request[HeldDataset]:
        """Hold a dataset: every job that reads or writes its lots stops."""
        return _act(HeldDataset, *_dataset(namespace, dataset), "hold", why=why)

    @call
    def release_dataset(self, namespace: str, dataset: str, why: str) -> Request[ReleasedDataset]:
        """Release the hold of a dataset; a conflict if it is not held."""
        at = (*_dataset(namespace, dataset), "release")
        return _act(ReleasedDataset, *at, why=why, repeatable=False)

    @call
    def hold_lot(self, namespace: str, dataset: str, lot: str, why: str) -> Request[LotOnHold]:
        """Hold a lot of a dataset for all jobs."""
        return _act(LotOnHold, *_dataset(namespace, dataset), "lots", lot, "hold", why=why)

    @call
    def release_lot(self, namespace: str, dataset: str, lot: str, why: str) -> Request[Lot]:
        """Release the hold of a lot; a conflict if it is not held."""
        at = (*_dataset(namespace, dataset), "lots", lot, "release")
        return _act(Lot, *at, why=why, repeatable=False)

    @call
    def lot_hold(self, namespace: str, dataset: str, lot: str) -> Request[LotHold]:
        """The hold of a lot, and the command that releases it."""
        return get(LotHold, *_dataset(namespace, dataset), "lots", lot, "hold")

    @call
    def dataset_checks(
        self,
        namespace: str,
        dataset: str,
        *,
        failed: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[DatasetChecks]:
        """The check results of a dataset's lots, newest first, or only the failures."""
        query = {"failed": failed, "limit": limit, "offset": offset}
        return get(DatasetChecks, *_dataset(namespace, dataset), "checks", **query)

    @call
    def lot_checks(self, namespace: str, dataset: str, lot: str) -> Request[LotChecks]:
        """The check results of a lot, newest first."""
        return get(LotChecks, *_dataset(namespace, dataset), "lots", lot, "checks")

    @call
    def accept_lot(self, namespace: str, dataset: str, lot: str, why: str) -> Request[Lot]:
        """Accept a lot whose checks failed."""
        at = _dataset(namespace, dataset)
        return _act(Lot, *at, "lots", lot, "accept", why=why, repeatable=False)

    @call
    def stale_work(
        self,
        *,
        namespace: str | None = None,
        job: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[WorkPage]:
        """Stale work: lots that were made from inputs that have newer versions."""
        return get(WorkPage, "stale", namespace=namespace, job=job, limit=limit, offset=offset)

    @call
    def held_lots(
        self,
        *,
        namespace: str | None = None,
        for_checks: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[HeldLots]:
        """Held lots, last held first; or only those whose checks failed."""
        which = {"namespace": namespace, "forChecks": for_checks}
        return get(HeldLots, "held-lots", **which, limit=limit, offset=offset)


def _act(shape: type[T], *segments: str, why: str, repeatable: bool = True) -> Request[T]:
    return post(shape, *segments, body=json_body(why=why), repeatable=repeatable)


def _job(namespace: str, job: str) -> tuple[str, ...]:
    return "namespaces", namespace, "jobs", job


def _dataset(namespace: str, dataset: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset
