"""The reasons that stop one job from working on one lot, derived from loaded facts."""

from collections.abc import Iterable, Sequence

from penstock.clock import Micros, format_time, say_time
from penstock.errors import Invalid
from penstock.locks import staleness
from penstock.locks.explain import advice, text
from penstock.locks.explain.facts import HoldEntry, LotMaker, WorkFacts
from penstock.locks.explain.text import because
from penstock.locks.rows import LINEAGE, RELEASE_PREFIX, LotJobRow, WorkRow
from penstock.schema.catalog import EntityId
from penstock.schema.locks import Reason
from penstock.schema.lot_ids import CLOCK, clock_interval, parse_interval
from penstock.schema.lots import Status
from penstock.states import WorkState

_READ = (Status.DONE, Status.HOLD)  # a held input was read, too


def find_reasons(facts: WorkFacts, now: Micros) -> list[Reason]:
    """Return what stops the job, the most important reason first; empty if it can be claimed."""
    work = facts.work
    if work is not None and work.state == WorkState.RUNNING:
        return [_running(facts, work, now)]
    if work is not None and work.state == WorkState.DONE:
        return [_done(facts, work)]
    reasons: list[Reason] = []
    if facts.state is None:
        rest = "no input of it has that lot"
        if not facts.row.input_ids:
            rest = "it has no inputs, so a worker must claim the lot by name"
        sentence = f"Job {_job(facts)} does not know lot {facts.lot} yet: {rest}."
        reasons.append(Reason("unknown_lot", sentence, lot=facts.lot))
    elif work is not None and work.state == WorkState.HELD:
        reasons.append(_held(facts, work))
    reasons += _gates(facts)
    if work is not None and _is_later(work, now):
        reasons.append(_later(facts, work, now))
    for dataset in facts.unreadable:
        maker = facts.around.makers.get(dataset)
        if maker is None:
            reasons.append(_missing(facts, dataset, now))
        else:
            reasons.append(_unreadable(facts, dataset, maker))
    reasons += _locked_outputs(facts)
    return reasons


def summarize(facts: WorkFacts, reasons: Sequence[Reason]) -> str:
    """Summarize the reasons in one text."""
    if reasons:
        return " ".join(reason.sentence for reason in reasons)
    since = f" since {say_time(facts.work.since)}" if facts.work is not None else ""
    return f"Job {_job(facts)} can work on lot {facts.lot}: it is READY{since}, claim it."


def _job(facts: WorkFacts) -> str:
    return f"{facts.job.namespace}/{facts.job.name}"


def _tries(work: WorkRow, row: LotJobRow) -> str:
    return f"try {work.tries} of {row.tries_max}"


def _running(facts: WorkFacts, work: WorkRow, now: Micros) -> Reason:
    until = say_time(work.lease_until)
    lease = f"its lease ends at {until}"
    if work.lease_until <= now:
        lease = f"its lease expired at {until}, and the claim is about to end"
    return Reason(
        "running",
        f"Job {_job(facts)} is working on lot {facts.lot}: {work.owner!r} holds it since "
        f"{say_time(work.since)} ({_tries(work, facts.row)}); {lease}.",
        *_entity(facts.job),
        lot=facts.lot,
        who=work.owner,
        since=format_time(work.since),
        until=format_time(work.lease_until),
        attempt=work.tries,
        attempts_max=facts.row.tries_max,
        claim=work.run_id,
    )


def _done(facts: WorkFacts, work: WorkRow) -> Reason:
    sentence = f"Job {_job(facts)} has done lot {facts.lot}: DONE since {say_time(work.since)}."
    replays = _name_replays(facts)
    if newer := _newer(facts):
        then = "." if replays else "; resubmit the lot to use it."
        sentence += f" Since then {newer} got a newer version{then}"
    if replays:
        sentence += f" It is made again when it has its turn in {replays}."
    sentence += _describe_unread(facts)
    if missing := _name_missing_outputs(facts):
        sentence += f" {missing} has no such lot: resubmit it to make that."
    return Reason(
        "done",
        sentence,
        *_entity(facts.job),
        lot=facts.lot,
        who=work.owner or None,
        since=format_time(work.since),
        attempt=work.tries,
        attempts_max=facts.row.tries_max,
        claim=work.run_id,
    )


def _name_replays(facts: WorkFacts) -> str:
    """Name the replays that the lot waits for, and those that are paused."""
    names = (f"{row.name}{', which is paused' * row.is_paused}" for row in facts.owners)
    return " and in ".join(names)


def _describe_unread(facts: WorkFacts) -> str:
    """Describe the inputs that were wired later, of which the job has not read the lot."""
    unread = [dataset for dataset in facts.row.input_ids if dataset not in facts.readers]
    missing = [dataset for dataset in unread if dataset in facts.unreadable]
    present = [dataset for dataset in unread if dataset not in missing]
    text = ""
    if present:
        names = " and ".join(map(facts.around.dataset, present))
        text += f" It did not read {names}, as it would today: resubmit the lot to use it."
    if missing:
        names = " and ".join(map(facts.around.dataset, missing))
        text += (
            f" It did not read {names}, as it would today, where the lot cannot be read yet: "
            "resubmit it when it can."
        )
    return text


def _name_missing_outputs(facts: WorkFacts) -> str:
    """Name the outputs that lack a lot that is done: wired later, or removed."""
    makers = [(dataset, facts.around.makers.get(dataset)) for dataset in facts.row.output_ids]
    unmade = [dataset for dataset, maker in makers if maker is None or maker.is_writable]
    return " and ".join(map(facts.around.dataset, unmade))


def _newer(facts: WorkFacts) -> str:
    """Name the inputs that have another version of the lot than the one that was consumed."""
    inputs = facts.row.input_ids
    return " and ".join(facts.around.dataset(d) for d in inputs if _is_newer(facts, d))


def _is_newer(facts: WorkFacts, dataset: str) -> bool:
    """Whether an input has another version of the lot than the one that was consumed."""
    reader, maker = facts.readers.get(dataset), facts.around.makers.get(dataset)
    if reader is None or maker is None or not maker.is_readable:
        return False
    return reader.status in _READ and reader.version_id != maker.version_id


def _stop(facts: WorkFacts) -> HoldEntry | None:
    return facts.around.stops.get(facts.row.job_id)


def _held(facts: WorkFacts, work: WorkRow) -> Reason:
    stop = _stop(facts)
    at = stop.at if stop is not None else work.since
    since = format_time(at)
    spent = work.tries >= facts.row.tries_max if stop is None else stop.action != "hold"
    if _is_held_output(facts, stop):
        return _held_by_output(facts)
    if spent:
        then = "Retry it when the cause is fixed."
        if newer := _newer(facts):
            then = f"Since then {newer} got a newer version: resubmit the lot to use it."
        return Reason(
            "out_of_tries",
            f"Job {_job(facts)} is out of tries with lot {facts.lot} since {say_time(at)} "
            f"({_tries(work, facts.row)}){because(work.error)}. {then}",
            *_entity(facts.job),
            lot=facts.lot,
            who=stop.who if stop is not None else None,
            why=work.error or None,
            since=since,
            attempt=work.tries,
            attempts_max=facts.row.tries_max,
            command=advice.retry(_job(facts), facts.lot),
        )
    who = stop.who if stop is not None else "an administrator"
    why = stop.why if stop is not None else ""
    then = "Release the hold to continue"
    if who == staleness.WHO and (newer := _newer(facts)):
        why += f" ({newer})"
        then = "Release the hold to keep the older output, or resubmit the lot to use that"
    return Reason(
        "held_lot",
        f"Lot {facts.lot} of job {_job(facts)} is held by {who!r} since {say_time(at)}"
        f"{because(why)}. {then}.",
        *_entity(facts.job),
        lot=facts.lot,
        who=who,
        why=why,
        since=since,
        command=advice.release_work(_job(facts), facts.lot),
    )


def _is_held_output(facts: WorkFacts, stop: HoldEntry | None) -> bool:
    """Whether a job without inputs is held only because an output lot is held."""
    has_own_hold = stop is not None and stop.action == "hold"
    return not facts.row.input_ids and not has_own_hold and bool(_held_outputs(facts))


def _held_outputs(facts: WorkFacts) -> list[str]:
    """Return the outputs whose lot is held for itself."""
    makers = facts.around.makers
    return [d for d in facts.row.output_ids if d in makers and makers[d].is_held_for_itself]


def _held_by_output(facts: WorkFacts) -> Reason:
    [dataset, *_] = _held_outputs(facts)
    maker = facts.around.makers[dataset]
    _, what = text.describe_status(facts.around, dataset, maker)
    sentence = f"Output {facts.around.dataset(dataset)}: lot {facts.lot} {what}."
    return _of_maker(
        "output_locked", sentence, facts, dataset, maker, facts.around.stops.get(dataset)
    )


def _gates(facts: WorkFacts) -> Iterable[Reason]:
    row = facts.row
    for key in dict.fromkeys((row.job_id, *row.input_ids, *row.output_ids)):
        gate = facts.around.gates.get(key)
        if gate is None:
            continue
        kind = gate.kind.lower()
        what = "Dataset" if gate.kind == "DATASET" else "Job"
        then = "Release that dataset" if gate.kind == LINEAGE else "Release the hold"
        yield Reason(
            f"held_{kind}",
            f"{what} {gate.namespace}/{gate.name} is held by {gate.who!r} since "
            f"{say_time(gate.since)}{because(gate.why)}. {then} to continue.",
            gate.namespace,
            gate.name,
            who=gate.who,
            why=gate.why,
            since=format_time(gate.since),
            command=gate.command,
        )


def _is_later(work: WorkRow, now: Micros) -> bool:
    """Whether the work backs off; after its time, the next sweep makes it READY."""
    return work.state == WorkState.RETRYABLE or (
        work.state != WorkState.HELD and work.not_before > now
    )


def _later(facts: WorkFacts, work: WorkRow, now: Micros) -> Reason:
    again = f"at {say_time(work.not_before)}"
    if work.not_before <= now:
        again = f"any moment: its backoff ended at {say_time(work.not_before)}"
    elif work.state == WorkState.WAITING:
        first = "its inputs are READY" if facts.unreadable else "its outputs are free"
        again = f"when {first}, not before {say_time(work.not_before)}"
    what = f"failed with lot {facts.lot} ({_tries(work, facts.row)})"
    if work.error.startswith(RELEASE_PREFIX):
        what = f"could not continue with lot {facts.lot}, which cost no try"
    return Reason(
        "later",
        f"Job {_job(facts)} {what}{because(work.error.removeprefix(RELEASE_PREFIX))}. It is "
        f"retried {again}.",
        *_entity(facts.job),
        lot=facts.lot,
        who=work.owner or None,
        why=work.error or None,
        since=format_time(work.since),
        until=format_time(work.not_before),
        attempt=work.tries,
        attempts_max=facts.row.tries_max,
    )


def _missing(facts: WorkFacts, dataset: str, now: Micros) -> Reason:
    name = facts.around.names[dataset]
    until = None
    if name.name.startswith(CLOCK):
        rest, until = _tick(facts, dataset, now)
    else:
        rest = f"{text.describe_makers(facts.around, dataset)}."
    return Reason(
        "input_missing",
        f"Input {facts.around.dataset(dataset)} has no lot {facts.lot}: {rest}",
        *_entity(name),
        lot=facts.lot,
        until=until,
    )


def _tick(facts: WorkFacts, dataset: str, now: Micros) -> tuple[str, str | None]:
    """Return when a clock makes a lot READY, in words and as a time."""
    try:
        interval = clock_interval(facts.around.names[dataset].name)
    except Invalid:  # an event has named it
        return "that is a clock of no known interval, so the lot never comes.", None
    due_at, lot = facts.around.clocks.get(dataset), parse_interval(facts.lot)
    if lot is None or lot.interval != interval:
        return f"that is no interval of {interval}, so the lot never comes.", None
    ends_at, shown = format_time(lot.end), say_time(lot.end)
    if due_at is None and lot.end > now:
        return (
            f"the clock is not in use; wire a job to it before {shown}, when the interval ends, "
            "for it to be READY then."
        ), None
    if due_at is None:
        return (
            f"its interval ended at {shown}, and the clock was not in use, so the lot never comes.",
            None,
        )
    if lot.end > now:
        return f"its interval ends at {shown}, and then it is READY.", ends_at
    if lot.end >= due_at:
        return f"its interval ended at {shown}, and it is about to be READY.", ends_at
    return f"its interval ended at {shown}, before the clock was in use.", ends_at


def _unreadable(facts: WorkFacts, dataset: str, maker: LotMaker) -> Reason:
    kind, what = text.describe_status(facts.around, dataset, maker)
    stop = facts.around.stops.get(dataset) if maker.is_held and maker.held_from else None
    sentence = f"Input {facts.around.dataset(dataset)}: lot {facts.lot} {what}."
    return _of_maker(f"input_{kind}", sentence, facts, dataset, maker, stop)


def _locked_outputs(facts: WorkFacts) -> Iterable[Reason]:
    held = facts.state == WorkState.HELD
    for dataset in facts.row.output_ids:
        maker = facts.around.makers.get(dataset)
        if maker is None or maker.is_writable:
            continue
        is_own = maker.job_id == facts.row.job_id
        if is_own and held and (not maker.held_from or _is_held_output(facts, _stop(facts))):
            continue
        _, what = text.describe_status(facts.around, dataset, maker)
        if maker.status == Status.READY:
            again = "resubmit it" if is_own else "resubmit it there"
            since = say_time(maker.since)
            what = f"is READY, made by {maker.job} since {since}; {again} to make it again"
        sentence = f"Output {facts.around.dataset(dataset)}: lot {facts.lot} {what}."
        stop = facts.around.stops.get(dataset) if maker.is_held and maker.held_from else None
        yield _of_maker("output_locked", sentence, facts, dataset, maker, stop)


def _of_maker(
    kind: str,
    sentence: str,
    facts: WorkFacts,
    dataset: str,
    maker: LotMaker,
    stop: HoldEntry | None,
) -> Reason:
    running = maker.status == Status.RUNNING
    return Reason(
        kind,
        sentence,
        *_entity(facts.around.names[dataset]),
        lot=facts.lot,
        status=str(maker.status),
        who=stop.who if stop is not None else (maker.owner or None),
        why=stop.why if stop is not None else (maker.error or None),
        since=format_time(maker.since),
        until=format_time(maker.lease_until) if running and maker.lease_until else None,
        attempt=maker.tries,
        attempts_max=maker.tries_max,
        claim=maker.run_id if running else None,
        command=_release(facts, dataset, maker),
    )


def _release(facts: WorkFacts, dataset: str, maker: LotMaker) -> str | None:
    """Return the command that ends the hold of a lot; a spent job has its own reason."""
    if not maker.is_held or (maker.is_spent and facts.around.list_awaited_jobs(dataset)):
        return None
    return facts.around.find_release_command(dataset)


def _entity(name: EntityId) -> tuple[str, str]:
    return name.namespace, name.name
