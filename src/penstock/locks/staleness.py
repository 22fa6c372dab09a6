"""Stale work: an input got a newer version after the work was done."""

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks.hold_reasons import drop_reasons, is_for_quality_alone
from penstock.locks.lock_rules import readable
from penstock.locks.rows import LogRow, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.schema.locks import Stale
from penstock.schema.lots import Status
from penstock.states import WorkState

STALE = "stale"  # the action in the log
WHO = "penstock"  # the holder of stale work


def apply_policy(tables: LockTables, job: LotJobRow, row: WorkRow, now: Micros) -> WorkRow | None:
    """Apply the job's stale policy to a lot that is done, if an input has a newer version.

    Return the changed work, or None if nothing is new. A person who releases a stale lot has
    decided: only a still newer version holds it again. Work behind the replay gate is only marked.
    """
    newest = _newest(tables, job, row)
    if newest <= row.stale_since:
        return None
    policy, why = Stale(job.stale), f"an input has a newer version of lot {row.lot}"
    gated = None if policy is Stale.IGNORE else tables.gate.find(job.job_id, row.lot)
    if gated is not None:
        tables.gate.mark_stale(gated, row.stale_since)
        policy, why = Stale.IGNORE, f"{why}; the lot waits for its turn in a replay"
    after = replace(row, stale_since=max(now, newest))
    if policy is Stale.RERUN:
        _release(tables, job, row.lot, now)
        after = replace(after, tries=0, not_before=0, error="")
    elif policy is Stale.HOLD:
        _hold(tables, job, row.lot, now)
    tables.put_work(after)
    action = "hold" if policy is Stale.HOLD else STALE
    became = {Stale.RERUN: WorkState.WAITING, Stale.HOLD: WorkState.HELD}.get(policy, row.state)
    tables.append(
        LogRow(now, action, row.lot, job.job_id, None, row.run_id, row.state, became, WHO, why)
    )
    return after


def _newest(tables: LockTables, job: LotJobRow, row: WorkRow) -> Micros:
    """Return when the newest version was published that the job has not read, or 0."""
    newest = 0
    for dataset in job.input_ids:
        read = tables.inputs.get((dataset, job.job_id, row.lot))
        source = tables.outputs.get((dataset, row.lot))
        if read is None or source is None or read.status != Status.DONE:
            continue
        version = source.version_id
        if version not in (None, read.version_id) and readable(Status(source.status)):
            newest = max(newest, tables.find_arrival(source))
    return newest


def _release(tables: LockTables, job: LotJobRow, lot: str, now: Micros) -> None:
    """Release the inputs, and mark the outputs for resubmission."""
    for dataset in job.input_ids:
        read = tables.inputs.get((dataset, job.job_id, lot))
        if read is not None and read.status == Status.DONE:
            tables.put_status(replace(read, status=Status.ERROR, since=now))
    for dataset in job.output_ids:
        output = tables.outputs.get((dataset, lot))
        if output is None or output.job_id != job.job_id:
            continue
        if output.status == Status.READY or is_for_quality_alone(tables, output):
            drop_reasons(tables, dataset, lot)
            tables.put_status(replace(output, status=Status.RESUBMIT, held_from="", since=now))
        elif output.held_from == Status.READY:
            tables.put_status(replace(output, held_from=Status.RESUBMIT))


def _hold(tables: LockTables, job: LotJobRow, lot: str, now: Micros) -> None:
    for dataset in job.input_ids:
        read = tables.inputs.get((dataset, job.job_id, lot))
        if read is not None and read.status == Status.DONE:
            tables.put_status(replace(read, status=Status.HOLD, held_from=Status.DONE, since=now))
