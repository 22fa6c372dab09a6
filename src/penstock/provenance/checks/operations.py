"""Invariants of backfills and replays, which hold also during steps and pruning."""

from collections import Counter
from collections.abc import Iterator, Set
from typing import Final

import msgspec
from msgspec import Struct

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.locks.rows import GatedWorkRow
from penstock.operations.backfills.rows import BackfillRow
from penstock.provenance.checks.invariant import (
    FOUND_MAX,
    NO_ID,
    PAGE,
    Grounds,
    Invariant,
    by_statement,
)
from penstock.states import BackfillState, ReplayState

_ENDED: Final = frozenset({BackfillState.DONE, BackfillState.CANCELLED})
_OVER: Final = frozenset({ReplayState.DONE, ReplayState.FAILED})
_ACTIVE: Final = frozenset({ReplayState.RUNNING, ReplayState.PAUSED})


class _StepCounts(Struct, frozen=True):
    """The counts that a replay keeps of its steps."""

    pending: int = 0
    going: int = 0
    done: int = 0
    failed: int = 0
    blocked: int = 0


class _Replay(Struct, frozen=True):
    id: str
    state: str
    is_open: int
    counts: str
    since: Micros


_decode_counts = msgspec.json.Decoder(_StepCounts).decode


def backfills_agree(grounds: Grounds) -> Iterator[str]:
    """Yield backfills with wrong counts, or that have ended too early."""
    after = NO_ID
    with grounds.database.read() as tx:
        while page := tx.rows(BackfillRow, "checked_backfills", after=after, most=PAGE):
            after = page[-1].id
            lots = _counted(tx, "checked_backfill_lots", [row.id for row in page])
            for row in page:
                yield from _backfill(row, lots.get(row.id, Counter()))


def _backfill(row: BackfillRow, lots: Counter[str]) -> Iterator[str]:
    subject, request, counts = f"backfill {row.id}", row.request, row.lot_counts
    if not request.start <= row.looked_to <= request.end:
        yield f"{subject} has surveyed to {row.looked_to}, which is out of its range"
    for state, count in (("done", counts.done), ("failed", counts.failed)):
        if _differ(lots[state], count, is_over=row.state in _ENDED):
            yield f"{subject} counts {count} lots as {state}, but there are {lots[state]}"
    unsurveyed = request.remaining(row.looked_to).count
    if row.state == BackfillState.DONE and (lots["going"] or unsurveyed):
        going = lots["going"]
        yield f"{subject} is done, and {going} of its lots are going, or some were not surveyed"


def replays_agree(grounds: Grounds) -> Iterator[str]:
    """Yield replays with wrong counts, or that have ended too early."""
    after = NO_ID
    with grounds.database.read() as tx:
        while page := tx.rows(_Replay, "checked_replays", after=after, most=PAGE):
            after = page[-1].id
            steps = _counted(tx, "checked_replay_steps", [row.id for row in page])
            for row in page:
                yield from _replay(row, steps.get(row.id, Counter()))


def _replay(row: _Replay, steps: Counter[str]) -> Iterator[str]:
    subject, counts = f"replay {row.id}", _decode_counts(row.counts)
    for state in _StepCounts.__struct_fields__:
        count: int = getattr(counts, state)
        if _differ(steps[state], count, is_over=not row.is_open):
            yield f"{subject} counts {count} steps as {state}, but there are {steps[state]}"
    if row.state in _OVER and (counts.pending or counts.going):
        yield f"{subject} is {row.state}, but not all of its steps have ended"
    if bool(row.is_open) != (row.state in _ACTIVE or counts.going > 0):
        yield f"{subject} is {row.state}, and is {'' if row.is_open else 'not '}stepped"


def turns_agree(grounds: Grounds) -> Iterator[str]:
    """Yield steps whose work is not reserved, and work that is reserved without a step."""
    with grounds.database.read() as tx:
        for replay_id, number, state in tx.fetch("steps_without_turn", most=FOUND_MAX):
            yield f"step {number} of replay {replay_id} is {state}, but its work is not reserved"
        last = (NO_ID, "")
        while page := tx.rows(
            GatedWorkRow, "checked_turns", job_id=last[0], lot=last[1], most=PAGE
        ):
            last = (page[-1].job_id, page[-1].lot)
            keys = [row.job_id + row.lot for row in page]
            steps = {*tx.fetch("unbegun_steps_of_work", keys=keys)}
            for row in page:
                yield from _turn(row, steps)


def _turn(row: GatedWorkRow, steps: Set[Row]) -> Iterator[str]:
    subject = f"lot {row.lot} of job {row.job_id} waits"
    if not row.owner_ids:
        yield f"{subject} for no replay"
    for keeper in row.owner_ids:
        if (keeper, row.job_id, row.lot) not in steps:
            yield f"{subject} for replay {keeper}, which has no such step to begin"


def _differ(actual: int, count: int, *, is_over: bool) -> bool:
    """Whether a count is wrong; an ended operation may be half pruned."""
    return actual > count if is_over else actual != count


def _counted(tx: Transaction, statement: str, ids: list[str]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for owner, state, total in tx.fetch(statement, ids=ids):
        counts.setdefault(owner, Counter())[state] = total
    return counts


INVARIANTS: Final[tuple[Invariant, ...]] = (
    Invariant(
        "backfills",
        "the counts of backfills are right, and a done one has no lots left or going",
        backfills_agree,
    ),
    Invariant(
        "replays",
        "the counts of replays are right, and an ended one has no open steps",
        replays_agree,
    ),
    by_statement(
        "replay-order",
        "a step of a replay waits for earlier steps that are not done, and is blocked if they fail",
        "broken_replay_order",
        "step {1} of replay {0} is {2} and waits for {3} steps; {4} before it are not done, "
        "{5} have failed",
    ),
    by_statement(
        "turn-keepers",
        "only open replays reserve the work of their steps",
        "broken_turn_keepers",
        "replay {} is {}, and {}",
    ),
    Invariant(
        "turns",
        "exactly the unbegun work of open replays is reserved",
        turns_agree,
    ),
    by_statement(
        "operations",
        "the job of a backfill or a replay is partitioned into lots",
        "broken_operations",
        "{} {} is of job {}, which does not exist or is not partitioned into lots",
    ),
)
