"""Looking for what no crash should have left behind, where state is kept in SQL."""

from typing import ClassVar

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.ingest.sql.commands.queue import report_if_done
from penstock.ingest.sql.room import ALL_BATCHES, IngestRoom
from penstock.ingest.sql.rows import TallyRow
from penstock.ingest.values import Finding
from penstock.states import IngestState


class Repair(Write, frozen=True):
    """Find jobs without a batch, locks without a session, wrong counts, batches that are stuck."""

    alone: ClassVar[bool] = True

    repair: bool

    def apply(self, world: World, now: Micros) -> list[Finding]:
        """Each thing found, and put right if asked."""
        room = world.room(IngestRoom)
        tx = world.tx
        found = [
            # First, because a job that is removed is taken off what was counted.
            *(self._tally(room, TallyRow(*row)) for row in tx.fetch("ingest_wrong_tallies")),
            *(self._tally(room, TallyRow(*row)) for row in tx.fetch("ingest_wrong_totals")),
            *(self._orphan(room, job) for (job,) in tx.fetch("ingest_jobs_without_batch")),
            *(self._lock(room, name) for (name,) in tx.fetch("ingest_locks_without_session")),
        ]
        for (batch,) in tx.fetch("ingest_stuck_batches"):
            if self.repair:
                report_if_done(room, batch, now)
            found.append(self._finding("is processing, but no job of it is", f"batch {batch}"))
        return found

    def _orphan(self, room: IngestRoom, job_id: str) -> Finding:
        job = room.jobs.get(job_id)
        if self.repair and job is not None:
            room.put_job(job, None)
        return self._finding("belongs to a batch that is not there", f"ingest job {job_id}")

    def _lock(self, room: IngestRoom, name: str) -> Finding:
        job, batch = room.jobs.get(name), room.batches.get(name)
        if self.repair and job is not None:
            room.jobs.put(name, replace(job, locked_by=""))
        if self.repair and batch is not None:
            room.batches.put(name, replace(batch, locked_by=""))
        return self._finding("is locked by a session that is over", name)

    def _tally(self, room: IngestRoom, right: TallyRow) -> Finding:
        if self.repair:
            room.tallies.put((right.batch_id, IngestState(right.status)), right)
        whose = "all batches" if right.batch_id == ALL_BATCHES else f"batch {right.batch_id}"
        return self._finding("was counted wrongly", f"{whose}, {right.status}")

    def _finding(self, what: str, target: str) -> Finding:
        return Finding(what, target, repairable=True, repaired=self.repair)
