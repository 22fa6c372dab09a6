"""The required effect of each lock command, by the model.

The model follows commands in the order of their commits. It computes the result of each and fails
on any other.
"""

from functools import singledispatch
from typing import Any

from penstock import ids
from penstock.arcs.commands import PublishLot
from penstock.clock import SECOND
from penstock.errors import Conflict, NotFound
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    ClaimResult,
    CompleteAndClaim,
    CompleteClaims,
    EndClaim,
    FailClaims,
    HoldDataset,
    HoldJob,
    HoldLot,
    HoldWork,
    PrioritizeWork,
    RegisterLots,
    ReleaseClaim,
    RenewClaim,
    ResubmitLots,
    Sweep,
    WireJob,
)
from penstock.locks.commands.admin import AcceptLot
from penstock.locks.explain.facts import HoldEntry
from tests.simulation.lock_model import (
    LOTS,
    NOWHERE,
    OUTSIDE,
    QUALITY,
    UNKNOWN,
    Claim,
    Model,
    Row,
    Wiring,
)


@singledispatch
def follow(command: Any, model: Model, outcome: Any) -> None:
    """Fail unless this outcome, a result or a refusal, is correct; then apply its effect."""
    raise NotImplementedError(type(command))


@follow.register
def _(command: WireJob, model: Model, outcome: Any) -> None:
    job, old = command.job, model.jobs.get(command.job)
    inputs = tuple(d.name for d in command.inputs or ())
    outputs = tuple(d.name for d in command.outputs or ())
    grows = old is None or ({*old.inputs} <= {*inputs} and {*old.outputs} <= {*outputs})
    if not grows and any(claim.job == job for claim in model.claims.values()):
        assert isinstance(outcome, Conflict), outcome
        return
    assert (outcome.lease_seconds, outcome.tries_max) == (
        command.lease_seconds,
        command.tries_max,
    )
    done = [lot for met, lot in model.work if met == job and model.states(job, lot) == {"DONE"}]
    model.jobs[job] = Wiring(
        inputs,
        outputs,
        outcome.lease_seconds,
        outcome.tries_max,
        outcome.back_off_seconds,
        str(command.stale or (old.stale if old is not None else "ignore")),
    )
    for lot in LOTS:
        if lot in done and model.states(job, lot) != {"DONE"}:  # by its earlier wiring
            model.work[job, lot].tries = 0
        rows = [model.made.get((dataset, lot)) for dataset in inputs]
        if any(row is not None and row.status == "READY" for row in rows):
            model.meet([job], lot)


@follow.register
def _(command: RegisterLots, model: Model, outcome: Any) -> None:
    fresh = []
    for lot in dict.fromkeys(command.lots):
        row = model.made.get((command.dataset, lot))
        if row is None or row.status in ("ERROR", "RESUBMIT"):
            fresh.append(lot)
        elif row.by != OUTSIDE or (
            row.status != "READY" and not (command.renew and row.status == "HOLD")
        ):
            assert isinstance(outcome, Conflict), outcome
            return
        elif command.renew:
            fresh.append(lot)
    assert outcome == len(fresh)
    for lot in fresh:
        row = Row("READY", OUTSIDE, UNKNOWN)
        if (command.dataset, lot) in model.reasons:  # a person holds it
            row.status, row.held_from = "HOLD", "READY"
        model.publish(command.dataset, lot, row)
        model.meet(model.around([command.dataset]), lot, -command.priority)


@follow.register
def _(command: ClaimLots, model: Model, outcome: Any) -> None:
    wiring = model.jobs[command.job]
    gates = {command.job, *wiring.inputs, *wiring.outputs}
    if model.held & gates or command.job in model.beyond_held():
        assert outcome == []
        return
    states = {lot: model.states(command.job, lot) for lot in LOTS}
    if command.lots is not None:
        chosen = list(dict.fromkeys(command.lots))
        if isinstance(outcome, Conflict):
            assert any(states[lot] != {"READY"} for lot in chosen), outcome
            return
        assert all("READY" in states[lot] for lot in chosen), outcome
        for lot in chosen if not wiring.inputs else ():
            model.meet([command.job], lot)
    else:
        seen = {claimed.lot for claimed in outcome}
        # A job without inputs only sees a lot that a command named before.
        known = [lot for lot in LOTS if wiring.inputs or (command.job, lot) in model.work]
        chosen = [
            lot
            for lot in known
            if states[lot] == {"READY"} or ("READY" in states[lot] and lot in seen)
        ]
        if command.newest:
            chosen.reverse()
        chosen.sort(key=lambda lot: model.work[command.job, lot].rank)
        chosen = chosen[: command.count]
    assert [claimed.lot for claimed in outcome] == chosen
    for claimed in outcome:
        model.take(claimed, command.owner, command.lease_seconds or wiring.lease_seconds)


@follow.register
def _(command: CompleteAndClaim, model: Model, outcome: Any) -> None:
    follow(CompleteClaims(command.complete), model, outcome.ended)
    model.end_backoffs()
    model.make_stale_again()
    follow(command.claim, model, outcome.claimed)


@follow.register
def _(command: RenewClaim, model: Model, outcome: Any) -> None:
    if not model.is_live(command.claim):
        _refuses(model, command.claim, outcome)
        return
    claim = model.claims[command.claim.id]
    claim.lease_seconds = command.lease_seconds or claim.lease_seconds
    claim.lease_until = model.now + claim.lease_seconds * SECOND
    assert outcome == claim.lease_until


@follow.register
def _(command: PublishLot, model: Model, outcome: Any) -> None:
    if not model.is_live(command.claim):
        _refuses(model, command.claim, outcome)
        return
    claim = model.claims[command.claim.id]
    versions = {d: outcome[ids.dataset_id("ns", d)] for d in claim.outputs}
    model.complete(command.claim.id, versions)
    for name, checks in command.checks:
        if name.name in claim.outputs and not all(check.success for check in checks):
            row = model.made[name.name, claim.lot]
            row.status, row.held_from = "HOLD", "READY"
            model.reasons.setdefault((name.name, claim.lot), set()).add(QUALITY)


@follow.register
def _(command: AcceptLot, model: Model, outcome: Any) -> None:
    key = command.dataset, command.lot
    row, reasons = model.made.get(key), model.reasons.get(key, set())
    if row is None or QUALITY not in reasons or row.version != command.version:
        assert isinstance(outcome, Conflict), outcome
        return
    assert outcome is None
    reasons.discard(QUALITY)
    if not reasons:
        del model.reasons[key]
        row.status, row.held_from = "READY", ""
        model.let_go(*key)


def _refuses(model: Model, ref: ClaimRef, outcome: Any) -> None:
    assert isinstance(outcome, Conflict if ref.id in model.runs else NotFound), outcome


@follow.register
def _(command: CompleteClaims, model: Model, outcome: Any) -> None:
    assert [ended.id for ended in outcome] == [ref.id for ref in command.claims]
    live = {ref for ref in command.claims if model.is_live(ref)}
    for ref, ended in zip(command.claims, outcome, strict=True):
        if ref not in live:
            _refuses(model, ref, ended.refused)
            continue
        assert ended.refused is None
        if ref.id in model.claims:
            model.complete(ref.id, {name.name: version for name, version in ended.versions})


@follow.register
def _(command: FailClaims, model: Model, outcome: Any) -> None:
    for ref, ended in zip(command.claims, outcome, strict=True):
        assert ended.id == ref.id
        if model.is_live(ref):
            claim = model.claims[ref.id]
            model.fail(ref.id, expired=False)
            _stopped(model, claim, ended)
        else:
            _refuses(model, ref, ended.refused)


@follow.register
def _(command: ReleaseClaim, model: Model, outcome: Any) -> None:
    if not model.is_live(command.claim):
        _refuses(model, command.claim, outcome)
        return
    claim = model.claims[command.claim.id]
    model.give_back(command.claim.id)
    assert outcome.id == command.claim.id
    _stopped(model, claim, outcome)


def _stopped(model: Model, claim: Claim, ended: ClaimResult) -> None:
    assert ended.refused is None
    assert ended.state in model.states(claim.job, claim.lot)
    assert ended.not_before == model.work[claim.job, claim.lot].not_before


@follow.register
def _(command: Sweep, model: Model, outcome: Any) -> None:
    late = [key for key, claim in model.claims.items() if claim.lease_until <= model.now]
    assert (outcome.expired, outcome.ticked) == (len(late), 0)
    for claim_id in late:
        model.fail(claim_id, expired=True)
    model.swept_at = model.now


# Effects of administrators' commands.


@follow.register
def _(command: ResubmitLots, model: Model, outcome: Any) -> None:
    job, lots = command.job, list(dict.fromkeys(command.lots))
    for lot in lots:
        if _stops(model, job, lot, outcome, running=True):
            return
        made = [model.made.get((dataset, lot)) for dataset in model.jobs[job].outputs]
        held = [
            dataset
            for dataset, r in zip(model.jobs[job].outputs, made, strict=True)
            if r and r.by == job and r.status == "HOLD" and r.held_from
        ]
        if any(model.reasons[dataset, lot] != {QUALITY} for dataset in held):
            assert isinstance(outcome, Conflict), outcome
            return
    assert outcome is None
    for lot in lots:
        for dataset in model.jobs[job].inputs:
            if row := model.used.get((dataset, job, lot)):
                row.status, row.held_from = "ERROR", ""
        model.used.pop((NOWHERE, job, lot), None)
        for dataset in model.jobs[job].outputs:
            if (row := model.made.get((dataset, lot))) and row.by == job:
                row.status, row.held_from = "RESUBMIT", ""
                model.reasons.pop((dataset, lot), None)
        model.work[job, lot].tries = model.work[job, lot].not_before = 0
        model.meet(model.around(model.jobs[job].outputs), lot)


def _stops(model: Model, job: str, lot: str, outcome: Any, *, running: bool) -> bool:
    """Return whether an action fails because the lot is unknown or has a live claim."""
    if (job, lot) not in model.work:
        assert isinstance(outcome, NotFound), outcome
        return True
    if (model.claim_on(job, lot) is not None) == running:
        assert isinstance(outcome, Conflict), outcome
        return True
    return False


@follow.register
def _(command: EndClaim, model: Model, outcome: Any) -> None:
    if _stops(model, command.job, command.lot, outcome, running=False):
        return
    assert outcome is None
    for key, claim in list(model.claims.items()):
        if (claim.job, claim.lot) == (command.job, command.lot):
            model.give_back(key)


@follow.register
def _(command: HoldJob | HoldDataset, model: Model, outcome: Any) -> None:
    held = command.job if isinstance(command, HoldJob) else command.dataset
    if not command.hold and held not in model.held:
        assert isinstance(outcome, Conflict), outcome
        return
    assert outcome is None
    if command.hold:
        model.held.add(held)
    else:
        model.held.discard(held)


@follow.register
def _(command: HoldLot, model: Model, outcome: Any) -> None:
    key = command.dataset, command.lot
    row = model.made.get(key)
    if command.hold and row is not None and row.status == "RUNNING":
        assert isinstance(outcome, Conflict), outcome
        return
    if command.hold:
        was_held = row is not None and row.status == "HOLD"
        assert outcome is None or (was_held and isinstance(outcome, HoldEntry)), outcome
        _hold_lot(model, key)
    elif row is not None and row.status == "HOLD":
        others = model.reasons.get(key, set()) - {command.dataset}
        if others:  # an input of it, or its checks
            assert isinstance(outcome, Conflict), outcome
            return
        assert outcome is None
        model.reasons.pop(key, None)
        if not row.held_from and row.by == OUTSIDE:
            del model.made[key]
        else:
            row.status, row.held_from = row.held_from or "ERROR", ""
        model.let_go(*key)
    else:  # there is nothing to release, and no job has the lot
        assert isinstance(outcome, Conflict), outcome
        return
    model.meet(model.around([command.dataset]), command.lot)


def _hold_lot(model: Model, key: tuple[str, str]) -> None:
    row = model.made.setdefault(key, Row("HOLD", OUTSIDE))
    if row.status != "HOLD":
        row.status, row.held_from = "HOLD", row.status
    elif not row.held_from and row.by != OUTSIDE:  # out of tries, and held by a person now
        row.held_from = "ERROR"
    if key[0] not in model.reasons.setdefault(key, set()):
        model.reasons[key].add(key[0])
        model.hold_made_of(*key)


@follow.register
def _(command: HoldWork, model: Model, outcome: Any) -> None:
    job, lot = command.job, command.lot
    states = model.states(job, lot)
    if states == {"RUNNING"}:
        assert isinstance(outcome, Conflict), outcome
        return
    kept = NOWHERE, job, lot
    if not command.hold and (states != {"HELD"} or _is_held_by_output(model, job, lot)):
        assert isinstance(outcome, Conflict), outcome
        return
    assert outcome is None
    if command.hold and kept in model.used:
        return
    if command.hold:
        model.used[kept] = Row("HOLD", job)
    else:
        model.used.pop(kept, None)
        _let_try(model, job, lot)
    model.meet([job, *model.around(model.jobs[job].outputs)], lot)
    model.work[job, lot].not_before = 0
    if not command.hold and model.states(job, lot) != {"DONE"}:
        model.work[job, lot].tries = 0


def _is_held_by_output(model: Model, job: str, lot: str) -> bool:
    """Return whether a job is held only because a person holds the lot that it writes."""
    read = (*model.jobs[job].inputs, NOWHERE)
    if any(row.status == "HOLD" for d in read if (row := model.used.get((d, job, lot)))):
        return False
    rows = [model.made.get((d, lot)) for d in model.jobs[job].outputs]
    return not any(row and (row.by, row.status, row.held_from) == (job, "HOLD", "") for row in rows)


def _let_try(model: Model, job: str, lot: str) -> None:
    for dataset in model.jobs[job].inputs:
        row = model.used.get((dataset, job, lot))
        if row is not None and row.status == "HOLD":
            row.status, row.held_from = row.held_from or "ERROR", ""
    for dataset in model.jobs[job].outputs:
        made = model.made.get((dataset, lot))
        if made is not None and (made.by, made.status, made.held_from) == (job, "HOLD", ""):
            made.status = "ERROR"


@follow.register
def _(command: PrioritizeWork, model: Model, outcome: Any) -> None:
    lots = dict.fromkeys(command.lots)
    if any((command.job, lot) not in model.work for lot in lots):
        assert isinstance(outcome, NotFound), outcome
        return
    assert outcome is None
    for lot in lots:
        model.work[command.job, lot].rank = -command.priority
