"""What a replay would do: its steps in order, and what they cost by the times of past runs."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeVar

from penstock.catalog.shapes import EntityId, Shape, time_or_none
from penstock.clock import SECOND, Micros
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.operations.replays import rules
from penstock.operations.replays.closure import Stained, closure
from penstock.operations.replays.target import Target
from penstock.states import WorkState

K = TypeVar("K", bound=Hashable)

Before = Sequence[Sequence[int]]  # for each step the places of those it waits for


def in_order(before: Mapping[K, Iterable[K]], rank: Callable[[K], Any]) -> list[K]:
    """Keys, each after all that it waits for; where that leaves a choice, by rank.

    If some wait for each other in a circle, which wiring that was changed can lead to, the first
    of them by rank is let go first.
    """
    waits = {key: set(others) for key, others in before.items()}
    after: dict[K, list[K]] = {key: [] for key in before}
    for key, others in waits.items():
        for other in others:
            after[other].append(key)
    ranked = sorted(before, key=rank)
    place = {key: number for number, key in enumerate(ranked)}
    free = [place[key] for key in ranked if not waits[key]]
    heapify(free)
    stuck = iter(ranked)
    done: dict[K, None] = {}
    while len(done) < len(ranked):
        if not free:
            free.append(place[next(key for key in stuck if key not in done)])
        key = ranked[heappop(free)]
        if key in done:
            continue
        done[key] = None
        for other in after[key]:
            waits[other].discard(key)
            if not waits[other] and other not in done:
                heappush(free, place[other])
    return list(done)


def depths(before: Before) -> list[int]:
    """How many steps are before each, on the longest way to it."""
    found: list[int] = []
    for earlier in before:
        found.append(max((found[place] + 1 for place in earlier), default=0))
    return found


def critical_path(before: Before, micros: Sequence[Micros]) -> Micros:
    """How long it takes when everything that can run side by side does."""
    ends: list[Micros] = []
    for earlier, own in zip(before, micros, strict=True):
        ends.append(max((ends[place] for place in earlier), default=0) + own)
    return max(ends, default=0)


def wall_time(before: Before, micros: Sequence[Micros], at_once: int) -> Micros:
    """How long it takes when so many run side by side, the first in order first."""
    after: list[list[int]] = [[] for _ in before]
    waits = [len(earlier) for earlier in before]
    for place, earlier in enumerate(before):
        for other in earlier:
            after[other].append(place)
    free = [place for place, count in enumerate(waits) if not count]
    running: list[tuple[Micros, int]] = []
    now: Micros = 0
    while free or running:
        while free and len(running) < at_once:
            place = heappop(free)
            heappush(running, (now + micros[place], place))
        now, place = heappop(running)
        for other in after[place]:
            waits[other] -= 1
            if not waits[other]:
                heappush(free, other)
    return now


STEPS_MAX = 100_000


class Action(StrEnum):
    """What a replay does about a step when its turn has come."""

    RERUN = "rerun"
    FOLLOW = "follow"  # it is to be done anyway: see how it ends
    LEAVE = "leave"  # it is held, and waits for a person
    BLOCKED = "blocked"  # something before it is left


class Step(Shape, frozen=True):
    """One job's work on one lot: `before` are the numbers of the steps that come first.

    `run`, with its job version and how long it took, is the last good one; `now` is where the
    work stands.
    """

    number: int
    namespace: str
    job: str
    lot: str
    depth: int
    before: Sequence[int]
    is_root: bool
    action: Action
    now: WorkState
    note: str
    run: str | None
    job_version: str | None
    ended_at: str | None
    seconds: float


class JobTotal(Shape, frozen=True):
    """How many steps a job has in a replay, and how long they took."""

    namespace: str
    job: str
    steps: int
    seconds: float


class Totals(Shape, frozen=True):
    """What a replay comes to; times are those of past runs, in seconds.

    `cost` is all of them, one after the other; `critical_path` the longest way through; `wall`
    what it would take with `at_once` steps at a time.
    """

    steps: int
    actions: Mapping[Action, int]
    jobs: Sequence[JobTotal]
    cost_seconds: float
    critical_path_seconds: float
    wall_seconds: float
    at_once: int


class Plan(Shape, frozen=True):
    """What a replay would do."""

    target: str
    totals: Totals
    steps: Sequence[Step]


_ACTIONS = dict.fromkeys((WorkState.DONE, WorkState.HELD), Action.RERUN)


class Ordered(NamedTuple):
    """Work that stands on a target, each after what it reads: `before` are the places of that."""

    target: Target  # means the same whenever it is asked again
    work: Sequence[Stained]
    before: Before

    @property
    def depths(self) -> list[int]:
        """How many are before each, on the longest way to it."""
        return depths(self.before)


def find_steps(tx: Transaction, target: Target) -> Ordered:
    """Find all work that stands on a target, and put it in order."""
    pinned, work = closure(tx, target)
    found = {each.key: each for each in work}
    if len(found) > STEPS_MAX:
        raise Invalid(
            f"{len(found):,} lots of jobs stand on {target.sentence}; {STEPS_MAX:,} at a time are "
            "the most: say a shorter range of time"
        )

    def rank(key: tuple[str, str]) -> tuple[str, str, str]:
        each = found[key]
        return each.row.lot_key, each.wired.name.namespace, each.wired.name.name

    order = in_order({key: each.before for key, each in found.items()}, rank)
    places = {key: place for place, key in enumerate(order)}
    before = [
        sorted(place for earlier in found[key].before if (place := places[earlier]) < own)
        for own, key in enumerate(order)
    ]
    return Ordered(pinned, [found[key] for key in order], before)


def make_plan(tx: Transaction, target: Target, at_once: int) -> tuple[Ordered, Plan]:
    """What a replay of a target would do now, as work and as it is shown."""
    target.check()
    if at_once < 1:
        raise Invalid("a replay has at least one step running at a time")
    found = find_steps(tx, target)
    actions = _actions(found)
    depths = found.depths
    notes = _notes(tx, found.work)
    steps = [
        _step(place, each, depths[place], found.before[place], actions[place], notes[place])
        for place, each in enumerate(found.work)
    ]
    return found, Plan(target.sentence, _totals(found, actions, at_once), steps)


def _actions(found: Ordered) -> list[Action]:
    """What would be done; what is after something that is left cannot be."""
    actions: list[Action] = []
    for each, earlier in zip(found.work, found.before, strict=True):
        if any(actions[place] in (Action.LEAVE, Action.BLOCKED) for place in earlier):
            actions.append(Action.BLOCKED)
        else:
            actions.append(_action(each))
    return actions


def _action(each: Stained) -> Action:
    if each.row.state != WorkState.RUNNING and (each.is_kept or each.held):
        return Action.LEAVE
    return _ACTIONS.get(WorkState(each.row.state), Action.FOLLOW)


def _notes(tx: Transaction, found: Sequence[Stained]) -> list[str]:
    """What is odd about each work that is to be done again, and what stops it."""
    gates, lots = _held_whole(tx, found), {held for each in found for held in each.held}
    rows = tx.fetch("read_dataset_names", ids=sorted(lots)) if lots else ()
    names = {dataset_id: (namespace, name) for dataset_id, namespace, name in rows}
    said = []
    for each in found:
        job = each.wired.job
        around = (job.job_id, *job.input_ids, *job.output_ids)
        told = [
            _said_of(each),
            *(rules.held_note(each.row.lot, *names[held]) for held in each.held),
            *(gates[gate] for gate in around if gate in gates),
        ]
        said.append("; ".join(filter(None, told)))
    return said


def _held_whole(tx: Transaction, found: Sequence[Stained]) -> dict[str, str]:
    """What is said of the holds on whole jobs and datasets, by their ids."""
    jobs = {each.wired.job.job_id: each.wired.job for each in found}
    gates = {gate for job in jobs.values() for gate in (*job.input_ids, *job.output_ids)}
    rows = tx.fetch("read_held_gates", ids=[*jobs, *gates]) if jobs else ()
    return {
        gate: f"{kind.lower()} {namespace}/{name} is held by {who}: {why}"
        for gate, kind, namespace, name, _, _, who, why, _ in rows
    }


def _step(
    place: int,
    each: Stained,
    depth: int,
    before: Sequence[int],
    action: Action,
    note: str,
) -> Step:
    run = each.run
    return Step(
        number=place + 1,
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


def _said_of(each: Stained) -> str:
    """What is odd about where work that is to be done again stands."""
    row = each.row
    match WorkState(row.state):
        case WorkState.DONE:
            return ""
        case WorkState.RUNNING:
            return f"{row.owner} is at it"
        case WorkState.HELD if each.is_kept:
            return rules.ON_HOLD
        case WorkState.HELD:
            return f"is out of tries: {row.error}" if row.error else "is held for a newer input"
        case WorkState.LATER:
            return f"failed, and is tried again: {row.error}"
        case WorkState.WAITING:
            return "waits for an input, or for an output to be free"
        case _:
            return "is to be done already"


def _totals(found: Ordered, actions: Sequence[Action], at_once: int) -> Totals:
    counts: Counter[EntityId] = Counter()
    costs: Counter[EntityId] = Counter()
    micros = []
    for each, action in zip(found.work, actions, strict=True):
        own = 0 if action in (Action.LEAVE, Action.BLOCKED) else each.micros
        micros.append(own)
        counts[each.wired.name] += 1
        costs[each.wired.name] += own
    return Totals(
        steps=len(found.work),
        actions=dict(Counter(actions)),
        jobs=[
            JobTotal(name.namespace, name.name, count, costs[name] / SECOND)
            for name, count in counts.items()
        ],
        cost_seconds=sum(micros) / SECOND,
        critical_path_seconds=critical_path(found.before, micros) / SECOND,
        wall_seconds=wall_time(found.before, micros, at_once) / SECOND,
        at_once=at_once,
    )
