"""Claims: made, renewed, completed, failed, released and listed."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from penstock import ids
from penstock.access.keys import Key
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid, PenstockError
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    ClaimResult,
    CompleteAndClaim,
    CompleteClaims,
    FailClaims,
    ReleaseClaim,
    RenewClaim,
    WireJob,
)
from penstock.locks.commands.claims import CLAIMS_AT_ONCE_MAX
from penstock.locks.explain import no_work
from penstock.locks.queries import claims as reading
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import EntityId, VersionId
from penstock.schema.locks import (
    Claim,
    Claims,
    Completed,
    EndedClaim,
    EndedClaims,
    Lease,
    Locks,
    PinnedInput,
    ShownClaim,
    Stopped,
)
from penstock.schema.shape import Refusal, time_or_none
from penstock.schema.texts import LOT_SCHEMA, Text
from penstock.server import requests as activity_log
from penstock.server.content import Body, Paging
from penstock.server.errors import status_of
from penstock.server.requests import RequestContext
from penstock.server.routes.jobs import DatasetNameBody
from penstock.server.routes.work import LeaseSeconds, dataset_names
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route

Token = Annotated[int, Meta(ge=0, le=1 << 62)]
ErrorText = Annotated[str, Meta(max_length=10_000)]
ShortText = Annotated[str, Meta(min_length=1, max_length=1_000)]
LotId = Annotated[str, Meta(min_length=1, max_length=200, extra_json_schema=LOT_SCHEMA)]


class ClaimRefBody(Body, frozen=True):
    """A claim, by its id and token."""

    id: str
    token: Token


class ClaimBody(Body, frozen=True):
    """A request for claims. With inputs or outputs the job is wired first.

    A request that repeats a `key` gets the same claims, never more.
    Claims in `complete` are completed in the same transaction, each alone, before new ones are
    made. If the request is refused, none of them is completed.
    """

    owner: Text
    count: Annotated[int, Meta(ge=1, le=CLAIMS_AT_ONCE_MAX)] = 1
    order: Literal["oldest", "newest"] = "oldest"
    lease_seconds: LeaseSeconds | None = None
    lots: Annotated[tuple[LotId, ...], Meta(max_length=CLAIMS_AT_ONCE_MAX)] | None = None
    inputs: tuple[DatasetNameBody, ...] | None = None
    outputs: tuple[DatasetNameBody, ...] | None = None
    key: ShortText | None = None
    complete: Annotated[tuple[ClaimRefBody, ...], Meta(max_length=CLAIMS_AT_ONCE_MAX)] = ()


class HeartbeatBody(Body, frozen=True):
    """The token of a claim to renew, and the length of its lease."""

    token: Token
    lease_seconds: LeaseSeconds | None = None


class TokenBody(Body, frozen=True):
    """The fencing token of a claim."""

    token: Token


class FailBody(Body, frozen=True):
    """The fencing token of a claim, and the error."""

    token: Token
    error: ErrorText = ""


class CompleteManyBody(Body, frozen=True):
    """The claims to complete."""

    claims: Annotated[tuple[ClaimRefBody, ...], Meta(max_length=CLAIMS_AT_ONCE_MAX)]


class FailManyBody(CompleteManyBody, frozen=True):
    """The claims to fail, and the error."""

    error: ErrorText = ""


class LocksQuery(Paging, frozen=True):
    """The selection of locks. Job and dataset are names in the namespace."""

    namespace: str | None = None
    job: str | None = None
    dataset: str | None = None
    lot: str | None = None


async def claim_lots(context: RequestContext, namespace: str, job: str, body: ClaimBody) -> Claims:
    """Claim lots that a job can work on, each with a run of its own.

    With `lots`, exactly these are claimed, or none. Without a claim, `why` has the reason.
    With `complete`, other claims are completed in the same transaction, so that a worker in a
    loop needs one request for each lot.
    """
    context.check_texts(owner=body.owner)
    refs = await _refs(context, body.complete)
    wiring = None
    if body.inputs is not None or body.outputs is not None:
        inputs, outputs = dataset_names(context, body.inputs), dataset_names(context, body.outputs)
        wiring = WireJob(namespace, job, inputs, outputs, within=context.key.namespace)
    began = context.plane.clock()
    claim = ClaimLots(
        namespace,
        job,
        body.owner,
        body.count,
        body.order == "newest",
        body.lease_seconds,
        body.lots,
        body.key,
        wiring,
    )
    taken = await context.submit(CompleteAndClaim(claim, refs))
    activity_log.ended(context, taken.ended, began)
    activity_log.claimed(context, taken.claimed, began)
    why = None if taken.claimed else await context.read(no_work.explain_no_work, namespace, job)
    claims = [_claim(claim) for claim in taken.claimed]
    return Claims(claims, why, _ended(body.complete, taken.ended))


def _claim(claim: ClaimedLot) -> Claim:
    return Claim(
        id=claim.id,
        token=claim.token,
        namespace=claim.namespace,
        job=claim.job,
        lot=claim.lot,
        owner=claim.owner,
        attempt=claim.attempt,
        attempts_max=claim.attempts_max,
        lease_seconds=claim.lease_seconds,
        lease_until=format_time(claim.lease_until),
        inputs=[PinnedInput(d.namespace, d.name, d.version) for d in claim.inputs],
        outputs=[EntityId(d.namespace, d.name) for d in claim.outputs],
    )


async def heartbeat_claim(context: RequestContext, claim: str, body: HeartbeatBody) -> Lease:
    """Renew the lease of a claim."""
    ref = await _ref(context, claim, body.token)
    until = await context.submit(RenewClaim(ref, body.lease_seconds))
    return Lease(ref.id, format_time(until))


async def complete_claim(context: RequestContext, claim: str, body: TokenBody) -> Completed:
    """Complete a claim: publish its outputs. An old token changes nothing."""
    ref = await _ref(context, claim, body.token)
    (ended,) = await _end(context, CompleteClaims((ref,)))
    if ended.refused is not None:
        raise ended.refused
    return Completed(ref.id, _versions(ended))


async def fail_claim(context: RequestContext, claim: str, body: FailBody) -> Stopped:
    """Fail a claim. Its work is retried later, or held if no tries are left."""
    ref = await _ref(context, claim, body.token)
    (ended,) = await _end(context, FailClaims((ref,), body.error))
    return _stopped(ended)


async def release_claim(context: RequestContext, claim: str, body: TokenBody) -> Stopped:
    """Release a claim without a result; this does not count as a try."""
    ref = await _ref(context, claim, body.token)
    began = context.plane.clock()
    ended = await context.submit(ReleaseClaim(ref))
    activity_log.ended(context, [ended], began)
    return _stopped(ended)


async def _end(context: RequestContext, command: CompleteClaims | FailClaims) -> list[ClaimResult]:
    began = context.plane.clock()
    ended = await context.submit(command)
    error = command.error or "no reason given" if isinstance(command, FailClaims) else ""
    activity_log.ended(context, ended, began, error)
    return ended


def _stopped(ended: ClaimResult) -> Stopped:
    if ended.refused is not None:
        raise ended.refused
    return Stopped(ended.id, ended.state, time_or_none(ended.not_before or None))


async def complete_claims(context: RequestContext, body: CompleteManyBody) -> EndedClaims:
    """Complete several claims; each succeeds or is refused alone."""
    refs = await _refs(context, body.claims)
    return EndedClaims(_ended(body.claims, await _end(context, CompleteClaims(refs))))


async def fail_claims(context: RequestContext, body: FailManyBody) -> EndedClaims:
    """Fail several claims; each succeeds or is refused alone."""
    refs = await _refs(context, body.claims)
    return EndedClaims(_ended(body.claims, await _end(context, FailClaims(refs, body.error))))


def get_claim(tx: Transaction, key: Key, claim: str) -> ShownClaim:
    """Show a claim, live or ended."""
    found = reading.get_claim(tx, ids.run_id(claim))
    key.require_own(found.namespace)
    return found


def list_locks(tx: Transaction, key: Key, now: Micros, query: LocksQuery) -> Locks:
    """List the live claims and their locks; the one whose lease ends first comes first."""
    namespace = query.namespace if query.namespace is not None else key.namespace
    if namespace is not None:
        key.require_namespace(namespace)
    elif query.job is not None or query.dataset is not None:
        raise Invalid("a job or a dataset is named without its namespace; send namespace too")
    page = reading.list_locks(
        tx,
        now,
        namespace=namespace,
        job=query.job,
        dataset=query.dataset,
        lot=query.lot,
        limit=query.limit,
        offset=query.offset,
    )
    return Locks(page.items, page.total_count)


async def _ref(context: RequestContext, claim: str, token: int) -> ClaimRef:
    run_id = ids.run_id(claim)
    await context.require_run(run_id)
    return ClaimRef(run_id, token)


async def _refs(context: RequestContext, given: Sequence[ClaimRefBody]) -> tuple[ClaimRef, ...]:
    refs = tuple(ClaimRef(ids.run_id(claim.id), claim.token) for claim in given)
    if refs and context.key.namespace is not None:
        for namespace in await context.read(reading.namespaces_of_claims, [ref.id for ref in refs]):
            context.key.require_own(namespace)
    return refs


def _ended(given: Sequence[ClaimRefBody], ended: Sequence[ClaimResult]) -> list[EndedClaim]:
    return [
        EndedClaim(claim.id, _versions(end), _refusal(end.refused))
        for claim, end in zip(given, ended, strict=True)
    ]


def _versions(ended: ClaimResult) -> list[VersionId]:
    return [VersionId(name.namespace, name.name, version) for name, version in ended.versions]


def _refusal(refused: PenstockError | None) -> Refusal | None:
    return Refusal(status_of(refused), str(refused)) if refused is not None else None


_JOB = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}"
_CLAIM = f"{BASE}/claims/{{claim}}"

ROUTES = (
    Route(ASYNC, "POST", f"{_JOB}/claims", claim_lots, role=KeyRole.WRITER),
    Route(READ, "GET", f"{BASE}/locks", list_locks, Reach.OWN),
    Route(READ, "GET", _CLAIM, get_claim, Reach.OWN),
    Route(ASYNC, "POST", f"{_CLAIM}/heartbeat", heartbeat_claim, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_CLAIM}/complete", complete_claim, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_CLAIM}/fail", fail_claim, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{_CLAIM}/release", release_claim, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{BASE}/claims/complete", complete_claims, Reach.OWN, KeyRole.WRITER),
    Route(ASYNC, "POST", f"{BASE}/claims/fail", fail_claims, Reach.OWN, KeyRole.WRITER),
)
