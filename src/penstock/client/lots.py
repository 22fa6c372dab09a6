"""The calls of the client about lots, locks and claims."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from penstock.client import lot_documents as docs
from penstock.client.documents import EntityId, Run
from penstock.client.names import Name, read_name

T = TypeVar("T")
WorkState = Literal["WAITING", "READY", "LATER", "RUNNING", "DONE", "HELD"]


class Call(Protocol):
    """One request to a server, and its answer."""

    def __call__(
        self,
        method: str,
        shape: type[T],
        *segments: str,
        body: bytes | None = None,
        **query: object,
    ) -> T: ...


class LotCalls:
    """What a server shows and does about lots, locks and claims.

    What asks for a reason is an administrator's, and goes into the audit log.
    """

    _call: Call

    def wiring(self, namespace: str, job: str) -> docs.Wiring:
        """Which datasets a job reads and writes lot by lot."""
        return self._call("GET", docs.Wiring, *_job(namespace, job), "wiring")

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
    ) -> docs.Wiring:
        """State which datasets a job reads and writes lot by lot; what is None stays as it is."""
        body = _body(
            inputs=_datasets(inputs, namespace),
            outputs=_datasets(outputs, namespace),
            leaseSeconds=lease_seconds,
            triesMax=tries_max,
            backOffSeconds=back_off_seconds,
            enforced=enforced,
        )
        return self._call("PUT", docs.Wiring, *_job(namespace, job), "wiring", body=body)

    def claim_lots(
        self,
        namespace: str,
        job: str,
        *,
        owner: str,
        count: int = 1,
        newest: bool = False,
        lease_seconds: int | None = None,
        lots: Sequence[str] | None = None,
        inputs: Iterable[Name] | None = None,
        outputs: Iterable[Name] | None = None,
    ) -> docs.Claims:
        """Claim up to `count` lots, once; `claims` does it again and again and keeps them alive."""
        body = _body(
            owner=owner,
            count=count,
            order="newest" if newest else "oldest",
            leaseSeconds=lease_seconds,
            lots=lots,
            inputs=_datasets(inputs, namespace),
            outputs=_datasets(outputs, namespace),
        )
        return self._call("POST", docs.Claims, *_job(namespace, job), "claims", body=body)

    def claim(self, claim_id: str) -> docs.ShownClaim:
        """One claim, live or over."""
        return self._call("GET", docs.ShownClaim, "claims", claim_id)

    def heartbeat_claim(
        self, claim_id: str, token: int, lease_seconds: int | None = None
    ) -> docs.Lease:
        """Let a claim's lease begin anew."""
        body = _body(token=token, leaseSeconds=lease_seconds)
        return self._call("POST", docs.Lease, "claims", claim_id, "heartbeat", body=body)

    def complete_claim(self, claim_id: str, token: int) -> docs.Completed:
        """Publish what a claim has made."""
        body = _body(token=token)
        return self._call("POST", docs.Completed, "claims", claim_id, "complete", body=body)

    def fail_claim(self, claim_id: str, token: int, error: str = "") -> docs.Stopped:
        """Report that the work on a claim has failed."""
        body = _body(token=token, error=error)
        return self._call("POST", docs.Stopped, "claims", claim_id, "fail", body=body)

    def release_claim(self, claim_id: str, token: int) -> docs.Stopped:
        """Give a claim back untouched; it does not count as a try."""
        body = _body(token=token)
        return self._call("POST", docs.Stopped, "claims", claim_id, "release", body=body)

    def published(self, claim_id: str) -> docs.Completed | None:
        """What a claim has published, if it has."""
        run = self._call("GET", Run, "jobs", "runs", claim_id)
        if run.state != "COMPLETED":
            return None
        versions = tuple(version.dataset_version_id for version in run.output_dataset_versions)
        return docs.Completed(claim_id, versions)

    def complete_claims(self, claims: Iterable[tuple[str, int]]) -> docs.EndedClaims:
        """Publish what several claims, each an id and a token, have made; each ends alone."""
        body = _body(claims=_refs(claims))
        return self._call("POST", docs.EndedClaims, "claims", "complete", body=body)

    def fail_claims(self, claims: Iterable[tuple[str, int]], error: str = "") -> docs.EndedClaims:
        """Report that the work on several claims has failed; each ends alone."""
        body = _body(claims=_refs(claims), error=error)
        return self._call("POST", docs.EndedClaims, "claims", "fail", body=body)

    def locks(
        self,
        *,
        namespace: str | None = None,
        job: str | None = None,
        dataset: str | None = None,
        lot: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> docs.Locks:
        """The claims that are alive, and what each of them locks."""
        return self._call(
            "GET",
            docs.Locks,
            "locks",
            namespace=namespace,
            job=job,
            dataset=dataset,
            lot=lot,
            limit=limit,
            offset=offset,
        )

    def job_lots(
        self,
        namespace: str,
        job: str,
        *,
        state: WorkState | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> docs.WorkList:
        """What a job has to do, lot by lot."""
        at = (*_job(namespace, job), "lots")
        return self._call("GET", docs.WorkList, *at, state=state, limit=limit, offset=offset)

    def job_lot(self, namespace: str, job: str, lot: str) -> docs.Work:
        """What a job has to do with one lot."""
        return self._call("GET", docs.Work, *_job(namespace, job), "lots", lot)

    def why(self, namespace: str, job: str, lot: str) -> docs.Why:
        """What stops a job from working on a lot, to the root cause."""
        return self._call("GET", docs.Why, *_job(namespace, job), "lots", lot, "why")

    def job_log(
        self,
        namespace: str,
        job: str,
        *,
        lot: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> docs.Log:
        """The transitions of a job's lots, or of one of them, newest first."""
        at = (*_job(namespace, job), "log")
        return self._call("GET", docs.Log, *at, lot=lot, limit=limit, offset=offset)

    def lot_log(
        self, namespace: str, dataset: str, lot: str, *, limit: int = 100, offset: int = 0
    ) -> docs.Log:
        """The transitions of a lot of a dataset, newest first."""
        at = (*_dataset(namespace, dataset), "lots", lot, "log")
        return self._call("GET", docs.Log, *at, limit=limit, offset=offset)

    def run_log(self, run_id: str, *, limit: int = 100, offset: int = 0) -> docs.Log:
        """The transitions of a run's claim, newest first."""
        return self._call(
            "GET", docs.Log, "jobs", "runs", run_id, "log", limit=limit, offset=offset
        )

    def register_lots(
        self,
        namespace: str,
        dataset: str,
        lots: Sequence[str],
        *,
        priority: int = 0,
        renew: bool = False,
    ) -> int:
        """Make lots READY that no job made; returned is how many were new."""
        body = _body(lots=lots, priority=priority, renew=renew)
        at = (*_dataset(namespace, dataset), "lots")
        return self._call("POST", docs.Registered, *at, body=body).registered

    def lots(self, namespace: str, dataset: str, *, limit: int = 100, offset: int = 0) -> docs.Lots:
        """The lots of a dataset."""
        at = (*_dataset(namespace, dataset), "lots")
        return self._call("GET", docs.Lots, *at, limit=limit, offset=offset)

    def lot(self, namespace: str, dataset: str, lot: str) -> docs.Lot:
        """One lot of a dataset: who made it, what is locked, who reads it."""
        return self._call("GET", docs.Lot, *_dataset(namespace, dataset), "lots", lot)

    def resubmit(self, namespace: str, job: str, lots: Sequence[str], why: str) -> docs.WorkList:
        """Have a job work on lots again; all of them, or none."""
        at = (*_job(namespace, job), "resubmit")
        return self._call("POST", docs.WorkList, *at, body=_body(lots=lots, why=why))

    def hold_work(self, namespace: str, job: str, lot: str, why: str) -> docs.Work:
        """Keep a job from a lot."""
        return self._act(docs.Work, *_job(namespace, job), "lots", lot, "hold", why=why)

    def unhold_work(self, namespace: str, job: str, lot: str, why: str) -> docs.Work:
        """Let a job try a lot again, with all its tries."""
        return self._act(docs.Work, *_job(namespace, job), "lots", lot, "unhold", why=why)

    def release_lock(self, namespace: str, job: str, lot: str, why: str) -> docs.Work:
        """End somebody else's claim on a lot."""
        return self._act(docs.Work, *_job(namespace, job), "lots", lot, "release", why=why)

    def prioritize(self, namespace: str, job: str, lot: str, priority: int, why: str) -> docs.Work:
        """Have a job work on a lot before those with a lower priority."""
        at = (*_job(namespace, job), "lots", lot, "priority")
        return self._call("POST", docs.Work, *at, body=_body(priority=priority, why=why))

    def hold_job(self, namespace: str, job: str, why: str) -> docs.Wiring:
        """Stop a job: none of its lots is claimed."""
        return self._act(docs.Wiring, *_job(namespace, job), "hold", why=why)

    def unhold_job(self, namespace: str, job: str, why: str) -> docs.Wiring:
        """Let a job go on."""
        return self._act(docs.Wiring, *_job(namespace, job), "unhold", why=why)

    def hold_dataset(self, namespace: str, dataset: str, why: str) -> docs.HeldDataset:
        """Stop every job that reads or writes lots of a dataset."""
        return self._act(docs.HeldDataset, *_dataset(namespace, dataset), "hold", why=why)

    def unhold_dataset(self, namespace: str, dataset: str, why: str) -> docs.HeldDataset:
        """Let the jobs of a dataset go on."""
        return self._act(docs.HeldDataset, *_dataset(namespace, dataset), "unhold", why=why)

    def hold_lot(self, namespace: str, dataset: str, lot: str, why: str) -> docs.Lot:
        """Lock a lot of a dataset for everybody."""
        return self._act(docs.Lot, *_dataset(namespace, dataset), "lots", lot, "hold", why=why)

    def unhold_lot(self, namespace: str, dataset: str, lot: str, why: str) -> docs.Lot:
        """Put a lot of a dataset back as it was."""
        return self._act(docs.Lot, *_dataset(namespace, dataset), "lots", lot, "unhold", why=why)

    def _act(self, shape: type[T], *segments: str, why: str) -> T:
        return self._call("POST", shape, *segments, body=_body(why=why))


def _body(**fields: object) -> bytes:
    given = {name: value for name, value in fields.items() if value is not None}
    return msgspec.json.encode(given)


def _datasets(names: Iterable[Name] | None, namespace: str) -> list[EntityId] | None:
    if isinstance(names, str):
        names = [names]
    return None if names is None else [read_name(name, namespace) for name in names]


def _refs(claims: Iterable[tuple[str, int]]) -> list[dict[str, object]]:
    return [{"id": claim, "token": token} for claim, token in claims]


def _job(namespace: str, job: str) -> tuple[str, ...]:
    return "namespaces", namespace, "jobs", job


def _dataset(namespace: str, dataset: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", dataset
