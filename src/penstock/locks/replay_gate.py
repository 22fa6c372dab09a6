"""The replay gate: work behind it starts only when its replay allows it.

A replay makes lots again in order. After its first step, the lots downstream are stale, and the
stale policies of their jobs would make all of them at once. The gate suspends these policies.
"""

from collections.abc import Sequence

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks import work_state
from penstock.locks.gate_table import WorkKey
from penstock.locks.rows import GatedWorkRow
from penstock.locks.tables import LockTables
from penstock.states import WorkState

_FINISHED = (WorkState.DONE, WorkState.HELD)  # states to which the stale policy applies


def release(tables: LockTables, owner_id: str, keys: Sequence[WorkKey], now: Micros) -> int:
    """Let work pass the gate; apply the stale policies of work that became stale behind it.

    Return how many policies were applied.
    """
    tables.gate.prefetch(keys)
    gated = [row for row in tables.gate.remove(owner_id, keys) if row.kept_since is not None]
    tables.work.prefetch((row.job_id, row.lot) for row in gated)
    return sum(_apply_policy(tables, row, now) for row in gated)


def close(tables: LockTables, owner_id: str, keys: Sequence[WorkKey], now: Micros) -> int:
    """Let all work of an owner pass, and delete the owner."""
    stale = release(tables, owner_id, keys, now)
    tables.gate.drop_owner(owner_id)
    return stale


def _apply_policy(tables: LockTables, gated: GatedWorkRow, now: Micros) -> bool:
    row, job = tables.work.get((gated.job_id, gated.lot)), tables.jobs.get(gated.job_id)
    before = gated.kept_since or 0
    if row is None or job is None or row.state not in _FINISHED or row.stale_since <= before:
        return False
    tables.put_work(replace(row, stale_since=before))
    work_state.refresh(tables, job, [gated.lot], now)
    return True
