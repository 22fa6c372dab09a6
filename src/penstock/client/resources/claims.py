"""Calls of claims; workers use them through `Client.claims`."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from penstock import ids
from penstock.client.errors import ApiError
from penstock.client.names import Name, names
from penstock.client.request import Flow, Request, ask, call, get, json_body, post
from penstock.schema import locks as docs
from penstock.schema.catalog import Run

Settle = Callable[[docs.Stopped | ApiError], Flow[docs.Stopped]]


class ClaimCalls:
    """Calls of claims. A request with an old fencing token changes nothing."""

    @call
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
        key: str | None = None,
        complete: Iterable[tuple[str, int]] = (),
    ) -> Request[docs.Claims]:
        """Claim up to `count` lots, once; `Client.claims` repeats this and renews their leases.

        Two requests with one key get the same claims, so that a request can be repeated; each has a
        key of its own by default. Claims in `complete`, each an id and a token,
        are completed in the same transaction.
        """
        body = json_body(
            owner=owner,
            count=count,
            order="newest" if newest else "oldest",
            leaseSeconds=lease_seconds,
            lots=lots,
            inputs=names(inputs, namespace),
            outputs=names(outputs, namespace),
            key=key or ids.new_id(),
            complete=_refs(complete) or None,
        )
        return post(docs.Claims, *_job(namespace, job), "claims", body=body).settled(_claimed)

    @call
    def claim(self, claim_id: str) -> Request[docs.ShownClaim]:
        """One claim, live or ended."""
        return get(docs.ShownClaim, "claims", claim_id)

    @call
    def heartbeat_claim(
        self, claim_id: str, token: int, lease_seconds: int | None = None
    ) -> Request[docs.Lease]:
        """Renew the lease of a claim."""
        body = json_body(token=token, leaseSeconds=lease_seconds)
        at = ("claims", claim_id, "heartbeat")
        return post(docs.Lease, *at, body=body, repeatable=True)

    @call
    def complete_claim(self, claim_id: str, token: int) -> Request[docs.Completed]:
        """Complete a claim: publish its outputs."""
        at = ("claims", claim_id, "complete")

        def settle(outcome: docs.Completed | ApiError) -> Flow[docs.Completed]:
            return _completed(claim_id, outcome)

        return post(docs.Completed, *at, body=json_body(token=token)).settled(settle)

    @call
    def fail_claim(self, claim_id: str, token: int, error: str = "") -> Request[docs.Stopped]:
        """Fail a claim."""
        at, body = ("claims", claim_id, "fail"), json_body(token=token, error=error)
        return post(docs.Stopped, *at, body=body).settled(_stopped_as("FAILED", claim_id))

    @call
    def release_claim(self, claim_id: str, token: int) -> Request[docs.Stopped]:
        """Release a claim without a result; this does not count as a try."""
        at, body = ("claims", claim_id, "release"), json_body(token=token)
        return post(docs.Stopped, *at, body=body).settled(_stopped_as("ABORTED", claim_id))

    @call
    def published(self, claim_id: str) -> Request[docs.Completed | None]:
        """The versions that a claim has published, or None."""
        return get(Run, "jobs", "runs", claim_id).then(_published)

    @call
    def complete_claims(self, claims: Iterable[tuple[str, int]]) -> Request[docs.EndedClaims]:
        """Complete several claims, each an id and a token; each succeeds alone."""
        body = json_body(claims=_refs(claims))
        return post(docs.EndedClaims, "claims", "complete", body=body).settled(_all_completed)

    @call
    def fail_claims(
        self, claims: Iterable[tuple[str, int]], error: str = ""
    ) -> Request[docs.EndedClaims]:
        """Fail several claims; each succeeds alone."""
        body = json_body(claims=_refs(claims), error=error)
        return post(docs.EndedClaims, "claims", "fail", body=body).settled(_all_failed)


def _refs(claims: Iterable[tuple[str, int]]) -> list[dict[str, object]]:
    return [{"id": claim, "token": token} for claim, token in claims]


def _job(namespace: str, job: str) -> tuple[str, ...]:
    return "namespaces", namespace, "jobs", job


def _published(run: Run) -> docs.Completed | None:
    if run.state != "COMPLETED":
        return None
    versions = tuple(version.dataset_version_id for version in run.output_dataset_versions)
    return docs.Completed(run.id, versions)


def _completed(claim_id: str, outcome: docs.Completed | ApiError) -> Flow[docs.Completed]:
    """Return the published versions, also after a lost answer of an earlier request."""
    if isinstance(outcome, docs.Completed):
        return outcome
    done = yield from ask(ClaimCalls.published.request(claim_id))
    if done is None:
        raise outcome
    return done


def _stopped_as(state: str, claim_id: str) -> Settle:
    """Return the state of a claim that an earlier request ended, whose answer was lost."""

    def settle(outcome: docs.Stopped | ApiError) -> Flow[docs.Stopped]:
        if isinstance(outcome, docs.Stopped):
            return outcome
        claim = yield from ask(ClaimCalls.claim.request(claim_id))
        if claim.state != state:
            raise outcome
        at = (*_job(claim.namespace, claim.job), "lots", claim.lot)
        work = yield from ask(get(docs.Work, *at))
        return docs.Stopped(claim_id, work.state, work.not_before)

    return settle


def _claimed(outcome: docs.Claims | ApiError) -> Flow[docs.Claims]:
    if isinstance(outcome, ApiError):
        raise outcome
    return replace(outcome, ended=(yield from _completed_each(outcome.ended)))


def _all_completed(outcome: docs.EndedClaims | ApiError) -> Flow[docs.EndedClaims]:
    if isinstance(outcome, ApiError):
        raise outcome
    return docs.EndedClaims((yield from _completed_each(outcome.ended)))


def _completed_each(claims: Iterable[docs.EndedClaim]) -> Flow[tuple[docs.EndedClaim, ...]]:
    ended = []
    for each in claims:
        done = None
        if each.error is not None and each.error.code == 409:
            done = yield from ask(ClaimCalls.published.request(each.id))
        ended.append(docs.EndedClaim(each.id, done.versions, None) if done else each)
    return tuple(ended)


def _all_failed(outcome: docs.EndedClaims | ApiError) -> Flow[docs.EndedClaims]:
    if isinstance(outcome, ApiError):
        raise outcome
    ended = []
    for each in outcome.ended:
        failed = False
        if each.error is not None and each.error.code == 409:
            claim = yield from ask(ClaimCalls.claim.request(each.id))
            failed = claim.state == "FAILED"
        ended.append(replace(each, error=None) if failed else each)
    return docs.EndedClaims(tuple(ended))
