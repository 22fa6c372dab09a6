"""Work that waits for its turn: only who keeps that sets it going, and no rule of its own.

A replay makes lots again in order. When it has made the first of them, those after it are stale,
and their jobs' own rules would have them made at once, all of them, whether it goes on or not.
"""

from collections.abc import Sequence

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks import work
from penstock.locks.gate_table import WorkKey
from penstock.locks.rows import GatedWorkRow
from penstock.locks.tables import LockTables
from penstock.states import WorkState

_RULED = (WorkState.DONE, WorkState.HELD)  # where what is stale can follow a rule, now or later


def release(tables: LockTables, keeper_id: str, keys: Sequence[WorkKey], now: Micros) -> int:
    """Turns have come, or never will: what is stale and not going follows its job's own rule.

    Returned is how much of it does.
    """
    tables.gate.prefetch(keys)
    left = [turn for turn in tables.gate.remove(keeper_id, keys) if turn.kept_since is not None]
    tables.work.prefetch((turn.job_id, turn.lot) for turn in left)
    return sum(_follow_rule(tables, turn, now) for turn in left)


def close(tables: LockTables, keeper_id: str, keys: Sequence[WorkKey], now: Micros) -> int:
    """End all turns that somebody still keeps, and with them the keeping."""
    stale = release(tables, keeper_id, keys, now)
    tables.gate.drop_owner(keeper_id)
    return stale


def _follow_rule(tables: LockTables, turn: GatedWorkRow, now: Micros) -> bool:
    """Whether work is stale that was only marked while it waited."""
    row, job = tables.work.get((turn.job_id, turn.lot)), tables.jobs.get(turn.job_id)
    known = turn.kept_since or 0
    if row is None or job is None or row.state not in _RULED or row.stale_since <= known:
        return False
    tables.put_work(replace(row, stale_since=known))
    work.refresh(tables, job, [turn.lot], now)
    return True
