"""Cleaning of a partial lot: all data of failed attempts goes, good parts too."""

from penstock.arcs.commands import RecordAttempts, arc_row, end_parts_left
from penstock.arcs.outputs.leftovers import tidy
from penstock.arcs.outputs.state_keys import StateKeys
from penstock.arcs.overview import find_work
from penstock.arcs.queries import arc_states, attempts_of, output_refs
from penstock.arcs.rows import ArcTables
from penstock.catalog.rows import RunRow
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, NotFound
from penstock.locks.commands.admin import AdminCommand
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.tables import LockTables
from penstock.objects import Objects
from penstock.states import ManifestState, RunState, WorkState
from penstock.store.write_queue import WriteQueue


class DiscardParts(AdminCommand, frozen=True):
    """Discard the finished parts of a lot, so that no later attempt reuses them."""

    namespace: str
    name: str
    lot: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Delete the rows of the parts; refuse while the lot is running."""
        row = arc_row(uow, self.namespace, self.name)
        where = f"arc {self.namespace}/{self.name}"
        work = uow.tables(LockTables).work.get((row.job_id, self.lot))
        if work is None:
            raise NotFound(f"{where} has no work on lot {self.lot}: there is nothing to clean")
        if work.state == WorkState.RUNNING:
            raise Conflict(
                f"lot {self.lot} of {where} is being run by {work.owner!r}; clean it when "
                "that has ended, or end its claim first"
            )
        tables = uow.tables(ArcTables)
        end_parts_left(uow, row.job_id, self.lot, now)
        if tables.parts_of(row.job_id, self.lot):
            tables.parts.put((row.job_id, self.lot), None)
        target = f"{self.namespace}/{self.name} lot {self.lot}"
        self.record(uow, now, "clean lot", target)


def clean_lot(
    catalog: WriteQueue, objects: Objects, who: str, why: str, namespace: str, name: str, lot: str
) -> int:
    """Remove the data of failed attempts on a lot; return how many attempts.

    It can be repeated after an interruption. A partial lot is missing afterwards.
    """
    with catalog.read() as tx:
        row, _ = find_work(tx, namespace, name, lot)
    arc, refs = row.arc, output_refs(row.arc)
    catalog.submit(DiscardParts(who, why, namespace, name, lot)).result()
    removed = tidy(catalog, objects, refs, row.job_id, lot)
    with catalog.read() as tx:
        _, work = find_work(tx, namespace, name, lot)
        attempts = attempts_of(tx, row.job_id, lot)
        runs = tx.rows(RunRow, "runs_by_ids", ids=[work.run_id] if work.run_id else [])
    failed = [run.id for run in runs if run.state in (RunState.FAILED, RunState.ABORTED)]
    if not attempts and not (failed and work.tries):
        return removed  # no attempt has failed, so the lot is unchanged
    if not attempts:
        # It failed and left no data. An attempt is recorded, so that the lot is missing.
        nothing = RecordAttempts(row.job_id, lot, ((failed[0], ()),), ManifestState.REMOVED)
        catalog.submit(nothing).result()
    with catalog.read() as tx:
        states = arc_states(tx, get_lot_job(tx, namespace, name), [work])
    StateKeys(objects, arc).show(lot, states[lot])
    return removed
