"""Receiving OpenLineage events of runs that work lot by lot."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.entities.jobs import is_placeholder
from penstock.catalog.entities.merging import merge_second_names
from penstock.catalog.entities.runs import LotFacet, lot_facet, put_lot_facet
from penstock.catalog.events.apply import fold, keep, receive, with_known_job
from penstock.catalog.events.facets import NO_FACETS, read_facets
from penstock.catalog.events.known_facets import LOT_FACET
from penstock.catalog.events.namespaced import WriteScope
from penstock.catalog.events.parse import Event, Mention
from penstock.catalog.rows import DatasetRow, RunDatasetRow, RunRow, replace
from penstock.catalog.unit_of_work import Keys, UnitOfWork
from penstock.clock import SECOND, Micros, say_time
from penstock.errors import Conflict
from penstock.locks import claiming, holds, quality
from penstock.locks import work as rules
from penstock.locks.commands.wiring import LEASE_SECONDS, default_wiring, update_wires
from penstock.locks.events import lock_plan
from penstock.locks.events.lock_plan import LockConflict, LotAccess
from penstock.locks.events.lot_facet import NO_LOTS, NamedLots, read_error, read_lots, read_producer
from penstock.locks.explain.text import ask_why
from penstock.locks.rows import LogRow, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.manifests import Check
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import sort_key
from penstock.states import RunState, WorkState

REPORTED_LEASE_SECONDS: Final = 24 * 3600  # who only reports events sends no heartbeats
_STATES: Final = {
    "START": RunState.RUNNING,
    "RUNNING": RunState.RUNNING,
    "COMPLETE": RunState.COMPLETED,
    "FAIL": RunState.FAILED,
    "ABORT": RunState.ABORTED,
}
_STOPS: Final = (RunState.FAILED, RunState.ABORTED)
_ENGINE: Final = LockConflict(None, "an engine makes the lots of this job, and nobody else does")
_TAKEN: Final = LockConflict(None, "the lot was taken from this run before, and is not given again")


class ReportedRun:
    """One event of a run that has lots.

    `run` is the run as it was before, and `said` what it has told of its lots so far. `within` is
    the namespace that the key is for which it came with.
    """

    def __init__(
        self,
        uow: UnitOfWork,
        event: Event,
        run_id: str,
        run: RunRow | None,
        said: LotFacet | None,
        named: NamedLots,
        within: str | None,
        now: Micros,
    ) -> None:
        self._uow = uow
        self._tables = uow.tables(LockTables)
        self._event = event
        self._state = _STATES.get(event.event_type)
        self._run_id = run_id
        self._run = run
        self._said = said
        self._ours = said if said is not None and said.attempt is not None else None
        self._named = named
        self._within = within
        self._now = now
        self._job = self._tables.jobs.get(event.job_id)
        self._is_managed = self._job is not None and self._job.managed_by is not None
        self._owner = read_producer(event) or "events"
        # A run that goes on tells the same again and again; the log hears it once.
        self._is_news = run is None or event.event_type != "RUNNING"

    def receive(self) -> None:
        """Receive it, and take, keep or end the claims of its run."""
        claims = self._tables.list_live_claims(self._run_id)
        if not claims and self._is_late:
            self._record_late()
            self._receive(claims, [])
            self._judge(self._ours.all_lots if self._ours is not None else (), is_late=True)
            return
        if claims and self._is_managed:
            self._hear(claims)
            return
        for refusal in self._named.refused if self._is_news else ():
            self._record("ignore", "", LockConflict(None, refusal))
        accesses, barred = self._sift(claims)
        self._pin(accesses)
        self._receive(claims, accesses)
        kept = [self._renewed(claim) for claim in claims]
        self._wire([*accesses, *barred])
        taken = self._take(kept, accesses)
        self._tell([claim.lot for claim in taken] + [access.lot for access in barred], taken)
        ours = [*{claim.lot: claim for claim in (*kept, *taken)}.values()]
        self._end(ours)
        self._judge([*(claim.lot for claim in ours), *(access.lot for access in barred)])

    def _hear(self, claims: Sequence[WorkRow]) -> None:
        """The engine that made the claims ends them, and its run: an event only tells of it."""
        keep(self._uow, self._event, self._now)
        told = replace(self._event, event_type="RUNNING") if self._is_end else self._event
        fold(self._uow, self._without_facet(told), by_lot=True, scope=self._scope)
        for claim in claims:
            self._renewed(claim)
            if self._is_end:
                why = f"{self._event.event_type} was reported; the engine tells when a lot is made"
                self._record("ignore", claim.lot, LockConflict(None, why))
        self._judge([claim.lot for claim in claims])

    @property
    def _scope(self) -> WriteScope | None:
        """What the key may write: a job that is wired elsewhere makes versions with its lots."""
        if self._within is None:
            return None
        wired = self._job.output_ids if self._job is not None else ()
        return WriteScope(self._within, frozenset(wired))

    @property
    def _is_end(self) -> bool:
        return self._state not in (None, RunState.RUNNING)

    @property
    def _may_grow(self) -> bool:
        """Whether the run can take more lots: who was given a claim has the lot that was given."""
        return self._ours is not None and self._ours.reported

    @property
    def _is_late(self) -> bool:
        """Whether the run has ended, and there is nothing left to publish."""
        if self._run is None or self._run.ended_at is None:
            return False
        return self._ours is not None or self._run.state != RunState.COMPLETED

    def _record_late(self) -> None:
        """A run that lost its lots, and does not know it, is a conflict; an echo is not."""
        run, ours = self._run, self._ours
        if run is None or run.ended_at is None or ours is None or not ours.attempt:
            return
        same = self._state in (RunState.RUNNING, run.state)
        if same and (run.state == RunState.COMPLETED or self._event.at <= run.ended_at):
            return
        why = (
            f"{self._event.event_type} came after run {run.id} had ended as {run.state} at "
            f"{say_time(run.ended_at)}: it holds no lots any more, and nothing was changed"
        )
        for lot in ours.all_lots if self._state is not None else ():
            self._record("conflict", lot, LockConflict(None, why))

    def _sift(self, claims: Sequence[WorkRow]) -> tuple[list[LotAccess], list[LotAccess]]:
        """What the run can take of what it aims at, and what it cannot have."""
        if self._state is None or (claims and (self._state in _STOPS or not self._may_grow)):
            return [], []
        uow, job_id, run_id = self._uow, self._event.job_id, self._run_id
        viewer_namespace = self._event.job_namespace
        said = self._named, self._job, self._said
        found = lock_plan.plan_locks(uow, self._event, *said, self._within)
        for dataset, lot in found.reads:
            for conflict in lock_plan.find_read_conflicts(
                uow, dataset, lot, viewer_namespace=viewer_namespace
            ):
                self._refuse(lot, conflict)
        free, barred = [], []
        for access in found.accesses:
            if self._ours is not None and access.lot in self._ours.lost:
                if self._named and self._is_news:
                    self._record("conflict", access.lot, _TAKEN)
                continue
            needed = lock_plan.find_missing(self._tables, job_id, run_id, access)
            if needed is None:
                continue
            at = (uow, job_id, run_id, needed)
            stop = (
                _ENGINE
                if self._is_managed
                else lock_plan.find_conflict(*at, viewer_namespace=viewer_namespace)
            )
            if stop is None:
                free.append(needed)
            else:
                self._refuse(access.lot, stop)
                barred.append(needed)
        return free, barred

    def _refuse(self, lot: str, conflict: LockConflict) -> None:
        """Refuse the event, if the job asks for that; else only tell. Who failed wants nothing."""
        if self._state in _STOPS:
            return
        if self._job is not None and self._job.enforced:
            job = self._event.job_name
            raise Conflict(
                f"run {self._run_id} of job {self._event.job_namespace}/{job} may not work on lot "
                f"{lot}: {conflict.why}. The event was not recorded; "
                f"{ask_why(self._event.job_namespace, job, lot)}; send it again when the lot is "
                "free"
            )
        if self._is_news:
            self._record("conflict", lot, conflict)

    def _record(self, action: str, lot: str, conflict: LockConflict) -> None:
        work = self._tables.work.get((self._event.job_id, lot)) if lot else None
        state = work.state if work is not None else ""
        self._tables.append(
            LogRow(
                at=self._now,
                action=action,
                lot=lot,
                job_id=self._event.job_id,
                dataset_id=conflict.dataset_id,
                run_id=self._run_id,
                was=state,
                became=state,
                who=self._owner,
                why=conflict.why,
            )
        )

    def _pin(self, accesses: Sequence[LotAccess]) -> None:
        """A run reads the version that its lot has; of several lots, that of the last."""
        for access in reversed(accesses):
            for dataset in access.inputs:
                source = self._tables.outputs.get((dataset, access.lot))
                version = source.version_id if source is not None else None
                if version and (DatasetRole.INPUT, dataset) not in self._uow.io_of(self._run_id):
                    self._uow.put_io(
                        RunDatasetRow(self._run_id, DatasetRole.INPUT, dataset, version, "{}", "{}")
                    )

    def _receive(self, claims: Sequence[WorkRow], accesses: Sequence[LotAccess]) -> None:
        """Receive the event; what the run is known to write it has written when it completes."""
        event = self._event
        if accesses or self._ours is not None:
            event = self._without_facet(event)
        if RunState.COMPLETED in (self._state, self._run.state if self._run else None):
            written = [dataset for access in accesses for dataset in access.outputs]
            for claim in claims:
                written += self._locked_outputs(claim)
            event = replace(event, outputs=(*event.outputs, *self._unsaid(written)))
        receive(self._uow, event, self._now, by_lot=True, scope=self._scope)

    def _without_facet(self, event: Event) -> Event:
        """The facet leads from a run to its claims: it is ours once there are any."""
        if LOT_FACET not in event.run_facets:
            return event
        others = {name: raw for name, raw in event.run_facets.items() if name != LOT_FACET}
        return replace(event, run_facets=others)

    def _locked_outputs(self, claim: WorkRow) -> list[str]:
        rows = [self._tables.outputs.get((d, claim.lot)) for d in self._wiring.output_ids]
        return [row.dataset_id for row in rows if row and row.run_id == claim.run_id]

    def _unsaid(self, written: Iterable[str]) -> list[Mention]:
        said = {self._uow.dataset_id(mention.id) for mention in self._event.outputs}
        rows = [self._uow.datasets.get(d) for d in dict.fromkeys(written) if d not in said]
        return [Mention(d.id, d.namespace, d.name, NO_FACETS, NO_FACETS) for d in rows if d]

    @property
    def _wiring(self) -> LotJobRow:
        return self._job or default_wiring(self._event.job_id, self._now)

    def _renewed(self, claim: WorkRow) -> WorkRow:
        """Every event of a run says that it goes on."""
        until = max(claim.lease_until, self._now + claim.lease_seconds * SECOND)
        renewed = replace(claim, lease_until=until)
        if renewed != claim:
            self._tables.put_work(renewed)
        return renewed

    def _take(self, kept: Sequence[WorkRow], accesses: Sequence[LotAccess]) -> list[WorkRow]:
        """Lock what the run aims at."""
        job = self._wiring
        held = {claim.lot: claim for claim in kept}
        taken = []
        for access in accesses:
            claim = held.get(access.lot) or self._claimed(job, access.lot)
            pinned = {dataset: self._pinned(dataset, access.lot) for dataset in access.inputs}
            claiming.lock_rows(self._tables, claim, pinned, access.outputs, self._now)
            claiming.drop_failed_inputs(self._tables, job, claim)
            taken.append(claim)
        if taken:
            lots = [claim.lot for claim in taken]
            rules.refresh_other_jobs(self._tables, job, lots, self._now, readers=False)
        return taken

    def _pinned(self, dataset: str, lot: str) -> str | None:
        source = self._tables.outputs.get((dataset, lot))
        if source is not None:
            return source.version_id
        read = self._uow.io_of(self._run_id).get((DatasetRole.INPUT, dataset))
        return read.version_id if read is not None else None

    def _wire(self, accesses: Sequence[LotAccess]) -> None:
        """Remember all that the job is seen to read and write lot by lot.

        Lots that were there before are not looked for: whoever starts the job knows of them.
        """
        before = self._wiring
        inputs = dict.fromkeys(
            [*before.input_ids, *(d for access in accesses for d in access.inputs)]
        )
        outputs = dict.fromkeys(
            [*before.output_ids, *(d for access in accesses for d in access.outputs)]
        )
        wired = replace(before, inputs=_text(inputs), outputs=_text(outputs))
        if wired != before:
            self._job = replace(wired, updated_at=self._now)
            self._tables.jobs.put(wired.job_id, self._job)
            update_wires(self._tables, before, wired)
            holds.update_lineage_holds(self._uow, self._now)
            known = [row.lot for row in self._tables.list_open_work(wired.job_id)]
            rules.refresh(self._tables, wired, known, self._now)

    def _claimed(self, job: LotJobRow, lot: str) -> WorkRow:
        row = self._tables.work.get((job.job_id, lot)) or rules.new_work(
            job.job_id, lot, 0, WorkState.WAITING, self._now
        )
        usual = job.lease_seconds == LEASE_SECONDS  # nobody meant it for runs without heartbeats
        seconds = REPORTED_LEASE_SECONDS if usual else job.lease_seconds
        claim = claiming.with_claim(row, self._run_id, self._owner, seconds, self._now)
        rules.record_transition(self._tables, claim, row, "claim", self._owner, self._now)
        return claim

    def _tell(self, named: Iterable[str], taken: Sequence[WorkRow]) -> None:
        """Write into the run which lots it works on, or would have worked on."""
        first = self._ours.all_lots if self._ours is not None else ()
        lots = (*first, *sorted(set(named) - set(first), key=sort_key))
        if not lots:
            return
        before = self._ours.attempt or 0 if self._ours is not None else 0
        facet = LotFacet(
            lot=lots[0],
            attempt=max(before, *(claim.tries for claim in taken), 0),
            lots=lots if len(lots) > 1 else (),
            of_all=bool(self._named.of_run) or (self._said is not None and self._said.of_all),
            reported=self._ours is None or self._ours.reported,
            lost=self._ours.lost if self._ours is not None else (),
        )
        if facet != self._ours:
            run = self._uow.runs.get(self._run_id)
            assert run is not None, "a run whose event was received exists"
            put_lot_facet(self._uow, run, facet)

    def _end(self, claims: Sequence[WorkRow]) -> None:
        """End the claims of a run that has ended: publish what it made, or give it up."""
        run = self._uow.runs.get(self._run_id)
        assert run is not None, "a run whose event was received exists"
        if not claims or run.ended_at is None:
            return
        failed = read_error(self._event) or f"{self._event.event_type} was reported"
        io = self._uow.io_of(run.id)
        written = {
            dataset: row for (role, dataset), row in io.items() if role == DatasetRole.OUTPUT
        }
        made, versions = [], []
        for claim in claims:
            outputs, error = self._locked_outputs(claim), failed
            if run.state == RunState.COMPLETED:
                error = lock_plan.explain_unwritten(self._uow, self._named, claim.lot, outputs)
            if not error:
                made.append(claim)
                versions.append({d: written[d].version_id for d in outputs if d in written})
            else:
                claiming.fail(self._uow, claim, error, self._now)
        if made:
            checks = {d: told for d, row in written.items() if (told := self._told_of_output(row))}
            claiming.publish(self._uow, self._wiring, made, versions, self._now, checks=checks)
            # Runs of one job need not all write the same: what another left may still be held.
            rules.refresh(self._tables, self._wiring, [claim.lot for claim in made], self._now)

    def _told_of_output(self, written: RunDatasetRow) -> list[Check]:
        """What any event of the run has told so far that checks said of what it wrote."""
        version = self._uow.versions.get(written.version_id)
        of_version = read_facets(version.facets) if version is not None else NO_FACETS
        return quality.read_checks({**of_version, **read_facets(written.facets)})

    def _judge(self, lots: Iterable[str], *, is_late: bool = False) -> None:
        """Let checks of what the run has read hold those lots, with all that was made of them.

        An event that comes late may tell so of what the run wrote.
        """
        event, named = self._event, self._named
        sides = [(DatasetRole.INPUT, mention, named.inputs) for mention in event.inputs]
        if is_late:
            sides += [(DatasetRole.OUTPUT, mention, named.outputs) for mention in event.outputs]
        for role, mention, of_dataset in sides:
            told = quality.read_checks({**mention.facets, **mention.io_facets})
            dataset = self._uow.datasets.get(self._uow.dataset_id(mention.id))
            if told and dataset is not None and self._within in (None, dataset.namespace):
                for lot in dict.fromkeys(of_dataset.get(mention.id) or lots):
                    self._judge_lot(role, dataset, lot, told)

    def _judge_lot(
        self, role: DatasetRole, dataset: DatasetRow, lot: str, told: Sequence[Check]
    ) -> None:
        tables, now = self._tables, self._now
        row = tables.outputs.get((dataset.id, lot))
        if row is None or row.version_id is None:
            return
        version = row.version_id
        if role == DatasetRole.OUTPUT and row.run_id != self._run_id:
            return  # another run has made it since
        own = tables.inputs.get((dataset.id, self._event.job_id, lot))
        if own is not None and own.run_id == self._run_id and own.version_id:
            version = own.version_id
        if why := quality.apply_checks(tables, row, version, told, self._run_id, now):
            holds.propagate_hold(self._uow, dataset, lot, quality.WHO, why, now)
            rules.refresh_jobs_of(tables, [dataset.id], [lot], now)


def _text(dataset_ids: Iterable[str]) -> str:
    return msgspec.json.encode(list(dataset_ids)).decode()


class LockingEvent(Struct, frozen=True, gc=False):
    """Receive one event of a run, and let the locks of its lots follow from it.

    Where a lot may not be worked on, a job that asks for enforcement has the event refused as a
    whole; else it is received, the locks stay as they are, and the log tells of the conflict.
    Lots that an engine makes are its own: no event takes them, and none ends what it has claimed.
    """

    exclusive: ClassVar[bool] = False

    event: Event
    within: str | None = None  # the namespace of a key that is for one

    def prefetch(self, keys: Keys) -> None:
        """Everything the event names."""
        ReceiveEvent(self.event).prefetch(keys)

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Fold it in."""
        event = with_known_job(uow, self.event)
        assert event.run_id is not None, "a run event was checked to have one"
        merge_second_names(uow, event)
        run = uow.runs.get(event.run_id)
        is_other = run is not None and run.job_id != event.job_id and not is_placeholder(uow, run)
        said = lot_facet(run.facets) if run is not None and run.job_id == event.job_id else None
        # Lots are locked for the job that a run belongs to, once its events agree on it.
        named = read_lots(event) if not is_other else NO_LOTS
        if said is None and not named and not named.refused:
            scope = WriteScope(self.within) if self.within is not None else None
            receive(uow, event, now, scope=scope)
        else:
            known = (event.run_id, run, said, named, self.within, now)
            ReportedRun(uow, event, *known).receive()
