"""What stops one job from working on one lot, said of rows that were read; no SQL here."""

from collections.abc import Iterable, Sequence

from penstock.catalog.shapes import EntityId
from penstock.clock import Micros, format_time, say_time
from penstock.errors import Invalid
from penstock.locks import staleness
from penstock.locks.explain import advice, text
from penstock.locks.explain.facts import Facts, Maker, Stop
from penstock.locks.explain.text import because
from penstock.locks.lock_rules import Status
from penstock.locks.rows import GIVEN_BACK, LINEAGE, LotJobRow, WorkRow
from penstock.locks.shapes import Reason
from penstock.lots.ids import CLOCK, clock_interval, parse_interval
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
    if work is not None and _is_later(work, now):
        found.append(_later(facts, work, now))
    for dataset in facts.unreadable:
        maker = facts.around.makers.get(dataset)
        if maker is None:
            found.append(_missing(facts, dataset, now))
        else:
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
    sentence = f"Job {_job(facts)} has done lot {facts.lot}: DONE since {say_time(work.since)}."
    turn = _turn(facts)
    if newer := _newer(facts):
        then = "." if turn else "; resubmit it to take that in."
        sentence += f" Since then {newer} was made anew{then}"
    if turn:
        sentence += f" It is made again when it has its turn in {turn}."
    sentence += _unread(facts)
    if unmade := _unmade(facts):
        sentence += f" {unmade} has no such lot: resubmit it to have that made."
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


def _turn(facts: Facts) -> str:
    """In whose order it is to be made again, and whether that goes on."""
    names = (f"{row.name}{', which is paused' * row.is_paused}" for row in facts.keepers)
    return " and in ".join(names)


def _unread(facts: Facts) -> str:
    """The inputs that the job was wired to since, of which it has not read the lot, in words."""
    unread = [dataset for dataset in facts.row.input_ids if dataset not in facts.readers]
    missing = [dataset for dataset in unread if dataset in facts.unreadable]
    there = [dataset for dataset in unread if dataset not in missing]
    said = ""
    if there:
        names = " and ".join(map(facts.around.dataset, there))
        said += f" It did not read {names}, as it would today: resubmit it to take that in."
    if missing:
        names = " and ".join(map(facts.around.dataset, missing))
        said += (
            f" It did not read {names}, as it would today, where the lot cannot be read yet: "
            "resubmit it when it can."
        )
    return said


def _unmade(facts: Facts) -> str:
    """The outputs of which a lot that is done is not there: wired since, or taken away."""
    makers = [(dataset, facts.around.makers.get(dataset)) for dataset in facts.row.output_ids]
    unmade = [dataset for dataset, maker in makers if maker is None or maker.is_writable]
    return " and ".join(map(facts.around.dataset, unmade))


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


def _stop(facts: Facts) -> Stop | None:
    return facts.around.stops.get(facts.row.job_id)


def _held(facts: Facts, work: WorkRow) -> Reason:
    stop = _stop(facts)
    at = stop.at if stop is not None else work.since
    since = format_time(at)
    spent = work.tries >= facts.row.tries_max if stop is None else stop.action != "hold"
    if _is_held_output(facts, stop):
        return _held_by_output(facts)
    if spent:
        then = "Resubmit it when its cause is gone."
        if newer := _newer(facts):
            then = f"Since then {newer} was made anew: resubmit it to try with that."
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
    then = "Unhold it to go on"
    if who == staleness.WHO and (newer := _newer(facts)):
        why += f" ({newer})"
        then = "Unhold it to keep what was made before, or resubmit it to take that in"
    return Reason(
        "held_lot",
        f"Lot {facts.lot} of job {_job(facts)} is held by {who!r} since {say_time(at)}"
        f"{because(why)}. {then}.",
        *_entity(facts.job),
        lot=facts.lot,
        who=who,
        why=why,
        since=since,
        command=advice.unhold_work(_job(facts), facts.lot),
    )


def _is_held_output(facts: Facts, stop: Stop | None) -> bool:
    """Whether a job that reads nothing is held only because the lot that it writes is."""
    is_kept = stop is not None and stop.action == "hold"
    return not facts.row.input_ids and not is_kept and bool(_held_outputs(facts))


def _held_outputs(facts: Facts) -> list[str]:
    """The outputs whose lot a person holds."""
    makers = facts.around.makers
    return [d for d in facts.row.output_ids if d in makers and makers[d].is_held_for_itself]


def _held_by_output(facts: Facts) -> Reason:
    [dataset, *_] = _held_outputs(facts)
    maker = facts.around.makers[dataset]
    _, what = text.stands(facts.around, dataset, maker)
    sentence = f"Output {facts.around.dataset(dataset)}: lot {facts.lot} {what}."
    return _of_maker(
        "output_locked", sentence, facts, dataset, maker, facts.around.stops.get(dataset)
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
            f"{say_time(gate.since)}{because(gate.why)}. {then} to go on.",
            gate.namespace,
            gate.name,
            who=gate.who,
            why=gate.why,
            since=format_time(gate.since),
            command=gate.command,
        )


def _is_later(work: WorkRow, now: Micros) -> bool:
    """Whether it is not to be tried yet: once its time has come, the next sweep lets it go on."""
    return work.state == WorkState.LATER or (work.state != WorkState.HELD and work.not_before > now)


def _later(facts: Facts, work: WorkRow, now: Micros) -> Reason:
    again = f"at {say_time(work.not_before)}"
    if work.not_before <= now:
        again = f"any moment: it had to wait until {say_time(work.not_before)}"
    elif work.state == WorkState.WAITING:
        first = "its inputs are there" if facts.unreadable else "its outputs are free"
        again = f"when {first}, not before {say_time(work.not_before)}"
    what = f"failed with lot {facts.lot} ({_tries(work, facts.row)})"
    if work.error.startswith(GIVEN_BACK):
        what = f"could not go on with lot {facts.lot}, which cost no try"
    return Reason(
        "later",
        f"Job {_job(facts)} {what}{because(work.error.removeprefix(GIVEN_BACK))}. It is tried "
        f"again {again}.",
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
    until = None
    if name.name.startswith(CLOCK):
        rest, until = _tick(facts, dataset, now)
    else:
        rest = f"{text.who_makes(facts.around, dataset)}."
    return Reason(
        "input_missing",
        f"Input {facts.around.dataset(dataset)} has no lot {facts.lot}: {rest}",
        *_entity(name),
        lot=facts.lot,
        until=until,
    )


def _tick(facts: Facts, dataset: str, now: Micros) -> tuple[str, str | None]:
    """When a clock makes a lot READY, in words and as a time."""
    try:
        interval = clock_interval(facts.around.names[dataset].name)
    except Invalid:  # an event has named it
        return "that is a clock of no known interval, so it never comes.", None
    due_at, named = facts.around.clocks.get(dataset), parse_interval(facts.lot)
    if named is None or named.interval != interval:
        return f"that is no interval of {interval}, so it never comes.", None
    ends, said = format_time(named.end), say_time(named.end)
    if due_at is None and named.end > now:
        return (
            f"the clock is not in use; wire a job to it before {said}, when the interval ends, "
            "for it to be READY then."
        ), None
    if due_at is None:
        return (
            f"its interval ended at {said}, and the clock was not in use, so it never comes.",
            None,
        )
    if named.end > now:
        return f"its interval ends at {said}, and then it is READY.", ends
    if named.end >= due_at:
        return f"its interval ended at {said}, and it is about to be READY.", ends
    return f"its interval ended at {said}, before the clock was in use.", ends


def _unreadable(facts: Facts, dataset: str, maker: Maker) -> Reason:
    kind, what = text.stands(facts.around, dataset, maker)
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
        if own and held and (not maker.held_from or _is_held_output(facts, _stop(facts))):
            continue
        _, what = text.stands(facts.around, dataset, maker)
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
        command=_release(facts, dataset, maker),
    )


def _release(facts: Facts, dataset: str, maker: Maker) -> str | None:
    """The command that ends the hold of a lot; whose job is out of tries is told with that job."""
    if not maker.is_held or (maker.is_spent and facts.around.awaited(dataset)):
        return None
    return facts.around.release(dataset)


def _entity(name: EntityId) -> tuple[str, str]:
    return name.namespace, name.name
