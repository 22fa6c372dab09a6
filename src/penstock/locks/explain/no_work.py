"""Why a job has no work to claim."""

from penstock.clock import Micros, say_time
from penstock.db import Transaction
from penstock.locks.explain.facts import WholeHold
from penstock.locks.queries.claims import get_lot_job, show_hold
from penstock.schema.locks import NoWorkReason
from penstock.schema.shape import time_or_none
from penstock.states import WorkState

COUNTED_MAX = 1000  # lots in each state


def explain_no_work(tx: Transaction, namespace: str, job: str) -> NoWorkReason:
    """Explain why a job finds no lot to claim."""
    row = get_lot_job(tx, namespace, job)
    gates = [row.job_id, *row.input_ids, *row.output_ids]
    held, counts = tx.fetch_many(
        [
            ("read_held_gates", {"ids": gates}),
            ("read_open_counts", {"job_id": row.job_id, "most": COUNTED_MAX}),
        ]
    )
    gate = next((WholeHold(*row[1:]) for row in held), None)
    count = {state: number for state, number, _ in counts}
    next_at: Micros | None = max(at for _, _, at in counts) or None
    return NoWorkReason(
        summary=_summary(f"{namespace}/{job}", gate, count, next_at),
        held=show_hold(gate) if gate is not None else None,
        waiting=count[WorkState.WAITING],
        running=count[WorkState.RUNNING],
        retryable=count[WorkState.RETRYABLE],
        held_lots=count[WorkState.HELD],
        next_at=time_or_none(next_at),
    )


def _summary(
    job: str, gate: WholeHold | None, count: dict[str, int], next_at: Micros | None
) -> str:
    if gate is not None:
        what = f"{gate.kind.lower()} {gate.namespace}/{gate.name}"
        return f"{what} is held by {gate.who!r} since {say_time(gate.since)}: {gate.why}"
    if count[WorkState.READY]:
        return f"a lot of job {job} became ready just now; claim again"
    phrases = [
        f"{_counted(count[state])} {what}"
        for state, what in (
            (WorkState.WAITING, "waiting for an input or an output"),
            (WorkState.RUNNING, "being worked on"),
            (WorkState.RETRYABLE, "waiting for a retry"),
            (WorkState.HELD, "held until a person releases them"),
        )
        if count[state]
    ]
    if not phrases:
        return f"job {job} has nothing to do: every known lot is done, or none has arrived yet"
    soon = f"; the next is due at {say_time(next_at)}" if next_at else ""
    return f"job {job} has no lot that is ready: {', '.join(phrases)}{soon}"


def _counted(number: int) -> str:
    more = "or more " if number >= COUNTED_MAX else ""
    return f"{number} {more}{'lot is' if number == 1 else 'lots are'}"
