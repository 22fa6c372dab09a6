"""The plan of a replay: its steps in order, and their costs by the times of past runs."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeVar

from penstock.clock import SECOND, Micros
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.operations.replays import rules
from penstock.operations.replays.closure import AffectedWork, find_closure
from penstock.operations.replays.commands import REPLAYS
from penstock.operations.replays.rows import STEPS_MAX
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.catalog import EntityId
from penstock.schema.operations import JobTotal, PlannedStep, ReplayAction, ReplayPlan, ReplayTotals
from penstock.schema.shape import time_or_none
from penstock.states import WorkState

K = TypeVar("K", bound=Hashable)

Before = Sequence[Sequence[int]]  # for each step the positions of those it waits for


def in_order(before: Mapping[K, Iterable[K]], rank: Callable[[K], Any]) -> list[K]:
    """Return keys so that each follows all that it waits for; by rank where that leaves a choice.

    Changed wiring can lead to cycles. Then the first key of a cycle by rank comes first.
    """
    waits = {key: set(others) for key, others in before.items()}
    after: dict[K, list[K]] = {key: [] for key in before}
    for key, others in waits.items():
        for other in others:
            after[other].append(key)
    ranked = sorted(before, key=rank)
    position = {key: number for number, key in enumerate(ranked)}
    free = [position[key] for key in ranked if not waits[key]]
    heapify(free)
    stuck = iter(ranked)
    done: dict[K, None] = {}
    while len(done) < len(ranked):
        if not free:
            free.append(position[next(key for key in stuck if key not in done)])
        key = ranked[heappop(free)]
        if key in done:
            continue
        done[key] = None
        for other in after[key]:
            waits[other].discard(key)
            if not waits[other] and other not in done:
                heappush(free, position[other])
    return list(done)


def depths(before: Before) -> list[int]:
    """Return the number of steps before each, on the longest path to it."""
    result: list[int] = []
    for earlier in before:
        result.append(max((result[position] + 1 for position in earlier), default=0))
    return result


def critical_path(before: Before, micros: Sequence[Micros]) -> Micros:
    """Return the total time if everything possible runs in parallel."""
    ends: list[Micros] = []
    for earlier, duration in zip(before, micros, strict=True):
        ends.append(max((ends[position] for position in earlier), default=0) + duration)
    return max(ends, default=0)


def wall_time(before: Before, micros: Sequence[Micros], at_once: int) -> Micros:
    """Return the total time with a limit of parallel steps, the first in order first."""
    after: list[list[int]] = [[] for _ in before]
    waits = [len(earlier) for earlier in before]
    for position, earlier in enumerate(before):
        for other in earlier:
            after[other].append(position)
    free = [position for position, count in enumerate(waits) if not count]
    running: list[tuple[Micros, int]] = []
    now: Micros = 0
    while free or running:
        while free and len(running) < at_once:
            position = heappop(free)
            heappush(running, (now + micros[position], position))
        now, position = heappop(running)
        for other in after[position]:
            waits[other] -= 1
            if not waits[other]:
                heappush(free, other)
    return now


_NOT_RUN = (ReplayAction.LEAVE, ReplayAction.BLOCKED)
_ACTIONS = dict.fromkeys((WorkState.DONE, WorkState.HELD), ReplayAction.RERUN)


class Ordered(NamedTuple):
    """Affected work, each after what it reads; `before` are the positions of that."""

    target: ReplayTarget  # pinned
    work: Sequence[AffectedWork]
    before: Before

    @property
    def depths(self) -> list[int]:
        """The number of steps before each, on the longest path to it."""
        return depths(self.before)


def find_steps(tx: Transaction, target: ReplayTarget) -> Ordered:
    """Find all work that is affected by a target, and put it in order."""
    pinned, work = find_closure(tx, target)
    work_by_key = {each.key: each for each in work}
    if len(work_by_key) > STEPS_MAX:
        raise Invalid(
            f"{len(work_by_key):,} lots of jobs are affected by {target.sentence}; the limit is "
            f"{STEPS_MAX:,}: name a shorter range of time"
        )

    def rank(key: tuple[str, str]) -> tuple[str, str, str]:
        each = work_by_key[key]
        return each.row.lot_key, each.wired.name.namespace, each.wired.name.name

    order = in_order({key: each.before for key, each in work_by_key.items()}, rank)
    positions = {key: position for position, key in enumerate(order)}
    before = [
        sorted(at for key in work_by_key[own].before if (at := positions[key]) < position)
        for position, own in enumerate(order)
    ]
    return Ordered(pinned, [work_by_key[key] for key in order], before)


def make_plan(tx: Transaction, target: ReplayTarget, at_once: int) -> tuple[Ordered, ReplayPlan]:
    """Return what a replay of a target would do now, as work and for display."""
    target.check()
    REPLAYS.check_max_running(at_once)
    ordered = find_steps(tx, target)
    actions = _actions(ordered)
    depths = ordered.depths
    notes = _notes(tx, ordered.work)
    steps = [
        _step(at, each, depths[at], ordered.before[at], actions[at], notes[at])
        for at, each in enumerate(ordered.work)
    ]
    return ordered, ReplayPlan(target.sentence, _totals(ordered, actions, at_once), steps)


def _actions(ordered: Ordered) -> list[ReplayAction]:
    actions: list[ReplayAction] = []
    for each, earlier in zip(ordered.work, ordered.before, strict=True):
        if any(actions[at] in _NOT_RUN for at in earlier):
            actions.append(ReplayAction.BLOCKED)
        else:
            actions.append(_action(each))
    return actions


def _action(each: AffectedWork) -> ReplayAction:
    if each.row.state != WorkState.RUNNING and (each.is_on_hold or each.held_datasets):
        return ReplayAction.LEAVE
    return _ACTIONS.get(WorkState(each.row.state), ReplayAction.FOLLOW)


def _notes(tx: Transaction, work: Sequence[AffectedWork]) -> list[str]:
    gates = _hold_notes(tx, work)
    lots = {dataset_id for each in work for dataset_id in each.held_datasets}
    rows = tx.fetch("read_dataset_names", ids=sorted(lots)) if lots else ()
    names = {dataset_id: (namespace, name) for dataset_id, namespace, name in rows}
    notes = []
    for each in work:
        job = each.wired.job
        around = (job.job_id, *job.input_ids, *job.output_ids)
        texts = [
            _state_note(each),
            *(
                rules.held_note(each.row.lot, *names[dataset_id])
                for dataset_id in each.held_datasets
            ),
            *(gates[gate] for gate in around if gate in gates),
        ]
        notes.append("; ".join(filter(None, texts)))
    return notes


def _hold_notes(tx: Transaction, work: Sequence[AffectedWork]) -> dict[str, str]:
    jobs = {each.wired.job.job_id: each.wired.job for each in work}
    gates = {gate for job in jobs.values() for gate in (*job.input_ids, *job.output_ids)}
    rows = tx.fetch("read_held_gates", ids=[*jobs, *gates]) if jobs else ()
    return {
        gate: f"{kind.lower()} {namespace}/{name} is held by {who}: {why}"
        for gate, kind, namespace, name, _, _, who, why, _ in rows
    }


def _step(
    position: int,
    each: AffectedWork,
    depth: int,
    before: Sequence[int],
    action: ReplayAction,
    note: str,
) -> PlannedStep:
    run = each.run
    return PlannedStep(
        number=position + 1,
        namespace=each.wired.name.namespace,
        job=each.wired.name.name,
        lot=each.row.lot,
        depth=depth,
        before=[number + 1 for number in before],
        is_root=each.is_root,
        action=action,
        now=WorkState(each.row.state),
        note=note,
        run=run.id if run is not None else None,
        job_version=run.job_version_id if run is not None else None,
        ended_at=time_or_none(run.ended_at) if run is not None else None,
        seconds=each.micros / SECOND,
    )


def _state_note(each: AffectedWork) -> str:
    row = each.row
    match WorkState(row.state):
        case WorkState.DONE:
            return ""
        case WorkState.RUNNING:
            return f"{row.owner} is running it"
        case WorkState.HELD if each.is_on_hold:
            return rules.ON_HOLD
        case WorkState.HELD:
            return f"is out of tries: {row.error}" if row.error else "is held for a newer input"
        case WorkState.RETRYABLE:
            return f"failed, and is retried: {row.error}"
        case WorkState.WAITING:
            return "waits for an input, or for an output to be free"
        case _:
            return "is ready already"


def _totals(ordered: Ordered, actions: Sequence[ReplayAction], at_once: int) -> ReplayTotals:
    counts: Counter[EntityId] = Counter()
    costs: Counter[EntityId] = Counter()
    micros = []
    for each, action in zip(ordered.work, actions, strict=True):
        duration = 0 if action in _NOT_RUN else each.micros
        micros.append(duration)
        counts[each.wired.name] += 1
        costs[each.wired.name] += duration
    return ReplayTotals(
        steps=len(ordered.work),
        actions=dict(Counter(actions)),
        jobs=[
            JobTotal(name.namespace, name.name, count, costs[name] / SECOND)
            for name, count in counts.items()
        ],
        cost_seconds=sum(micros) / SECOND,
        critical_path_seconds=critical_path(ordered.before, micros) / SECOND,
        wall_seconds=wall_time(ordered.before, micros, at_once) / SECOND,
        at_once=at_once,
    )
