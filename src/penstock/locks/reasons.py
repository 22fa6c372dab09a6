"""What stops one job from working on one lot, said of rows that were read; no SQL here."""

from collections.abc import Iterable, Sequence

from penstock.catalog.shapes import EntityId
from penstock.clock import Micros, format_time, say_time
from penstock.locks import staleness
from penstock.locks.facts import Around, Facts, Maker, Stop
from penstock.locks.rows import LINEAGE, LotJobRow, WorkRow
from penstock.locks.shapes import Reason
from penstock.locks.table import Status
from penstock.lots.ids import Interval, clock_interval, parse_interval
from penstock.states import WorkState

_READ = (Status.DONE, Status.HOLD)  # held is what was read, too


def of(facts: Facts, now: Micros) -> list[Reason]:
    """What stops the job, the most telling first; nothing if it can be claimed."""
    work = facts.work
    if work is not None and work.state == WorkState.RUNNING:
        return [_running(facts, work, now)]
    if work is not None and work.state == WorkState.DONE:
        return [_done(facts, work)]
    found: list[Reason] = []
    if facts.state is None:
        rest = "no input of it has that lot"
        if not facts.row.input_ids:
            rest = "it reads nothing, so it works on a lot when somebody claims that by its name"
        sentence = f"Job {_job(facts)} has not met lot {facts.lot} yet: {rest}."
        found.append(Reason("unknown_lot", sentence, lot=facts.lot))
    elif work is not None and work.state == WorkState.HELD:
        found.append(_held(facts, work))
    found += _gates(facts)
    if work is not None and work.state != WorkState.HELD and work.not_before > now:
        found.append(_later(facts, work))
    for dataset in facts.row.input_ids:
        maker = facts.around.makers.get(dataset)
        if maker is None:
            found.append(_missing(facts, dataset, now))
        elif not maker.is_readable:
            found.append(_unreadable(facts, dataset, maker))
    found += _locked_outputs(facts)
    return found


def summary(facts: Facts, found: Sequence[Reason]) -> str:
    """All of it in one text."""
    if found:
        return " ".join(reason.sentence for reason in found)
    since = f" since {say_time(facts.work.since)}" if facts.work is not None else ""
    return f"Job {_job(facts)} can work on lot {facts.lot}: it is READY{since}, claim it."


def _job(facts: Facts) -> str:
    return f"{facts.job.namespace}/{facts.job.name}"


def _tries(work: WorkRow, row: LotJobRow) -> str:
    return f"try {work.tries} of {row.tries_max}"


def _because(error: str | None) -> str:
    return f": {error}" if error else ""


def _running(facts: Facts, work: WorkRow, now: Micros) -> Reason:
    until = say_time(work.lease_until)
    lease = f"its lease ends at {until}"
    if work.lease_until <= now:
        lease = f"its lease ran out at {until} and is about to be taken back"
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


def _done(facts: Facts, work: WorkRow) -> Reason:
    newer = _newer(facts)
    stale = f" Since then {newer} was made anew; resubmit it to take that in."
    return Reason(
        "done",
        f"Job {_job(facts)} has done lot {facts.lot}, at {say_time(work.since)}."
        f"{stale if newer else ''}",
        *_entity(facts.job),
        lot=facts.lot,
        who=work.owner or None,
        since=format_time(work.since),
        attempt=work.tries,
        attempts_max=facts.row.tries_max,
        claim=work.run_id,
    )


def _newer(facts: Facts) -> str:
    """The inputs that have another version of the lot than the one that was consumed."""
    inputs = facts.row.input_ids
    return " and ".join(facts.around.dataset(d) for d in inputs if _is_newer(facts, d))


def _is_newer(facts: Facts, dataset: str) -> bool:
    """Whether an input has another version of the lot than the one that was consumed."""
    reader, maker = facts.readers.get(dataset), facts.around.makers.get(dataset)
    if reader is None or maker is None or not maker.is_readable:
        return False
    return reader.status in _READ and reader.version_id != maker.version_id


def _held(facts: Facts, work: WorkRow) -> Reason:
    stop = facts.around.stops.get(work.job_id)
    at = stop.at if stop is not None else work.since
    since = format_time(at)
    spent = work.tries >= facts.row.tries_max if stop is None else stop.action != "hold"
    if spent:
        return Reason(
            "out_of_tries",
            f"Job {_job(facts)} is out of tries with lot {facts.lot} since {say_time(at)} "
            f"({_tries(work, facts.row)}){_because(work.error)}. "
            "Resubmit it when its cause is gone.",
            *_entity(facts.job),
            lot=facts.lot,
            who=stop.who if stop is not None else None,
            why=work.error or None,
            since=since,
            attempt=work.tries,
            attempts_max=facts.row.tries_max,
        )
    who = stop.who if stop is not None else "an administrator"
    why = stop.why if stop is not None else ""
    then = "Unhold it to go on"
    if who == staleness.WHO and (newer := _newer(facts)):
        why += f" ({newer})"
        then = "Unhold it to keep what was made before, or resubmit it to take that in"
    return Reason(
        "held_lot",
        f"Lot {facts.lot} of job {_job(facts)} is held by {who!r} since {say_time(at)}"
        f"{_because(why)}. {then}.",
        *_entity(facts.job),
        lot=facts.lot,
        who=who,
        why=why,
        since=since,
    )


def _gates(facts: Facts) -> Iterable[Reason]:
    row = facts.row
    for key in dict.fromkeys((row.job_id, *row.input_ids, *row.output_ids)):
        gate = facts.around.gates.get(key)
        if gate is None:
            continue
        kind = gate.kind.lower()
        what = "Dataset" if gate.kind == "DATASET" else "Job"
        then = "Unhold that dataset" if gate.kind == LINEAGE else "Unhold it"
        yield Reason(
            f"held_{kind}",
            f"{what} {gate.namespace}/{gate.name} is held by {gate.who!r} since "
            f"{say_time(gate.since)}{_because(gate.why)}. {then} to go on.",
            gate.namespace,
            gate.name,
            who=gate.who,
            why=gate.why,
            since=format_time(gate.since),
        )


def _later(facts: Facts, work: WorkRow) -> Reason:
    return Reason(
        "later",
        f"Job {_job(facts)} failed with lot {facts.lot} ({_tries(work, facts.row)})"
        f"{_because(work.error)}. It is tried again at {say_time(work.not_before)}.",
        *_entity(facts.job),
        lot=facts.lot,
        who=work.owner or None,
        why=work.error or None,
        since=format_time(work.since),
        until=format_time(work.not_before),
        attempt=work.tries,
        attempts_max=facts.row.tries_max,
    )


def _missing(facts: Facts, dataset: str, now: Micros) -> Reason:
    name = facts.around.names[dataset]
    interval = clock_interval(name.name)
    until = None
    if interval is not None:
        rest, until = _tick(facts.lot, interval, now)
    else:
        rest = f"{_who_makes(facts.around, dataset)}."
    return Reason(
        "input_missing",
        f"Input {facts.around.dataset(dataset)} has no lot {facts.lot}: {rest}",
        *_entity(name),
        lot=facts.lot,
        until=until,
    )


def _tick(lot: str, interval: Interval, now: Micros) -> tuple[str, str | None]:
    """When a clock makes a lot READY, in words and as a time."""
    named = parse_interval(lot)
    if named is None or named.interval != interval:
        return f"that is no interval of {interval}, so it never comes.", None
    ends, said = format_time(named.end), say_time(named.end)
    if named.end > now:
        return f"its interval ends at {said}, and then it is READY.", ends
    return f"its interval ended at {said}, before the clock was in use.", ends


def _unreadable(facts: Facts, dataset: str, maker: Maker) -> Reason:
    kind, what = _stands(facts.around, dataset, maker)
    stop = facts.around.stops.get(dataset) if maker.is_held and maker.held_from else None
    sentence = f"Input {facts.around.dataset(dataset)}: lot {facts.lot} {what}."
    return _of_maker(f"input_{kind}", sentence, facts, dataset, maker, stop)


def _locked_outputs(facts: Facts) -> Iterable[Reason]:
    held = facts.state == WorkState.HELD
    for dataset in facts.row.output_ids:
        maker = facts.around.makers.get(dataset)
        if maker is None or maker.is_writable:
            continue
        own = maker.job_id == facts.row.job_id
        if own and held and not maker.held_from:
            continue
        _, what = _stands(facts.around, dataset, maker)
        if maker.status == Status.READY:
            again = "resubmit it" if own else "have it resubmitted there"
            since = say_time(maker.since)
            what = f"is READY, made by {maker.job} since {since}; {again} to make it anew"
        sentence = f"Output {facts.around.dataset(dataset)}: lot {facts.lot} {what}."
        stop = facts.around.stops.get(dataset) if maker.is_held and maker.held_from else None
        yield _of_maker("output_locked", sentence, facts, dataset, maker, stop)


def _of_maker(
    kind: str, sentence: str, facts: Facts, dataset: str, maker: Maker, stop: Stop | None
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
    )


def _stands(around: Around, dataset: str, maker: Maker) -> tuple[str, str]:
    """How a lot stands that cannot be read: a kind, and in words."""
    since = say_time(maker.since)
    match Status(maker.status):
        case Status.RUNNING:
            return "running", f"is being made by {maker.job}, held by {maker.owner!r} since {since}"
        case Status.ERROR if maker.is_removed:
            return "removed", f"was removed at {since}; {_made_anew(around, dataset, maker)}"
        case Status.ERROR:
            tries = f" (try {maker.tries} of {maker.tries_max})" if maker.tries else ""
            failed = f"could not be made by {maker.job} since {since}{tries}"
            return "error", failed + _because(maker.error) + _who_else(around, dataset, maker)
        case Status.RESUBMIT:
            again = f"is to be made again by {maker.job} since {since}"
            return "missing", again + _who_else(around, dataset, maker)
        case Status.HOLD if maker.is_spent and around.is_left(dataset):
            return "held", f"is held since {since}: {_left_behind(around, dataset, maker)}"
        case Status.HOLD if maker.is_spent:
            return "held", f"is held since {since}: {maker.job} is out of tries with it"
        case Status.HOLD:
            stop = around.stops.get(dataset)
            who = f" by {stop.who!r}" if stop is not None else ""
            return "held", f"is held{who} since {since}{_because(stop.why if stop else None)}"
        case _:
            return "missing", f"is {maker.status} since {since}: announced, and not there yet"


def _who_makes(around: Around, dataset: str) -> str:
    """Who can make a lot of a dataset, or what else to do, in words."""
    if able := around.able(dataset):
        return f"{' or '.join(writer.job for writer in able)} has to make it"
    if deleted := around.writers.get(dataset):
        jobs = " and ".join(writer.job for writer in deleted)
        return (
            f"{jobs}, which made such lots, was deleted; restore it, wire another job to make "
            "them, or register the lot when it is there"
        )
    return "no job here makes it, so register it when it is there"


def _who_else(around: Around, dataset: str, maker: Maker) -> str:
    """Who can make a lot besides the job that has begun with it, or instead of it."""
    if around.is_left(dataset):
        return f"; {_who_makes(around, dataset)}"
    others = [writer.job for writer in around.able(dataset) if writer.job_id != maker.job_id]
    return f"; {' or '.join(others)} can make it as well" if others else ""


def _left_behind(around: Around, dataset: str, maker: Maker) -> str:
    deleted = maker.job_id in [writer.job_id for writer in around.writers.get(dataset, ())]
    what = "was deleted" if deleted else "does not make such lots any more"
    return (
        f"{maker.job}, which {what}, ran out of tries with it; unhold this lot of the dataset "
        "to go on"
    )


def _made_anew(around: Around, dataset: str, maker: Maker) -> str:
    if maker.name is None:
        return "register it when it is there again"
    if around.is_left(dataset):
        return _who_makes(around, dataset)
    return f"resubmit it for {maker.job} to have it again"


def _entity(name: EntityId) -> tuple[str, str]:
    return name.namespace, name.name
