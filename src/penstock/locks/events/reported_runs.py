"""OpenLineage events of runs that work lot by lot: received, with the locks of their lots."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.entities.jobs import is_placeholder
from penstock.catalog.entities.merging import merge_second_names
from penstock.catalog.entities.runs import LotFacet, lot_facet, put_lot_facet
from penstock.catalog.events.apply import STATES_OF_EVENTS, fold, keep, receive, with_known_job
from penstock.catalog.events.facets import NO_FACETS, read_facets
from penstock.catalog.events.known_facets import LOT_FACET
from penstock.catalog.events.namespaced import WriteScope
from penstock.catalog.events.parse import Event, Mention
from penstock.catalog.rows import DatasetRow, RunDatasetRow, RunRow, replace
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import SECOND, Micros, say_time
from penstock.errors import Conflict
from penstock.locks import claiming, holds, quality, work_state
from penstock.locks.commands.wiring import LEASE_SECONDS, default_wiring, update_wires
from penstock.locks.events import lock_plan
from penstock.locks.events.lock_plan import LockConflict, LotAccess
from penstock.locks.events.lot_facet import NO_LOTS, NamedLots, read_error, read_lots, read_producer
from penstock.locks.explain.text import ask_why
from penstock.locks.rows import LogRow, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.manifests import QualityCheck
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import sort_key
from penstock.states import RunState, WorkState

REPORTED_LEASE_SECONDS: Final = 24 * 3600  # long: reported runs send no heartbeats
_STOPS: Final = (RunState.FAILED, RunState.ABORTED)
_MANAGED: Final = LockConflict(
    None, "an engine makes the lots of this job, so no event can claim them"
)
_LOST: Final = LockConflict(None, "this run lost the lot before, and cannot claim it again")


class ReportedRun:
    """One event of a run that has lots.

    `run` is the state before the event, and `facet` the lots that the run reported so far. `within`
    is the one namespace of the key that sent the event.
    """

    def __init__(
        self,
        uow: UnitOfWork,
        event: Event,
        run_id: str,
        run: RunRow | None,
        facet: LotFacet | None,
        named: NamedLots,
        within: str | None,
        now: Micros,
    ) -> None:
        self._uow = uow
        self._tables = uow.tables(LockTables)
        self._event = event
        self._state = STATES_OF_EVENTS.get(event.event_type)
        self._run_id = run_id
        self._run = run
        self._facet = facet
        self._ours = facet if facet is not None and facet.attempt is not None else None
        self._named = named
        self._within = within
        self._now = now
        self._job = self._tables.jobs.get(event.job_id)
        self._is_managed = self._job is not None and self._job.managed_by is not None
        self._owner = read_producer(event) or "events"
        # RUNNING events repeat themselves: log only the first.
        self._is_news = run is None or event.event_type != "RUNNING"

    def receive(self) -> None:
        """Receive the event, then acquire, renew or end the claims of its run."""
        claims = self._tables.list_live_claims(self._run_id)
        if not claims and self._is_late:
            self._record_late()
            self._receive(claims, [])
            self._apply_checks(self._ours.all_lots if self._ours is not None else (), is_late=True)
            return
        if claims and self._is_managed:
            self._receive_managed(claims)
            return
        for refusal in self._named.refused if self._is_news else ():
            self._record("ignore", "", LockConflict(None, refusal))
        accesses, barred = self._plan(claims)
        self._pin_inputs(accesses)
        self._receive(claims, accesses)
        renewed = [self._renew(claim) for claim in claims]
        self._wire([*accesses, *barred])
        acquired = self._acquire(renewed, accesses)
        self._write_facet(
            [claim.lot for claim in acquired] + [access.lot for access in barred], acquired
        )
        live = [*{claim.lot: claim for claim in (*renewed, *acquired)}.values()]
        self._end_claims(live)
        self._apply_checks([*(claim.lot for claim in live), *(access.lot for access in barred)])

    def _receive_managed(self, claims: Sequence[WorkRow]) -> None:
        """Receive an event of a run whose engine ends the run and its claims itself."""
        keep(self._uow, self._event, self._now)
        event = replace(self._event, event_type="RUNNING") if self._is_end else self._event
        fold(self._uow, self._without_facet(event), by_lot=True, scope=self._scope)
        for claim in claims:
            self._renew(claim)
            if self._is_end:
                why = f"{self._event.event_type} was reported; the engine ends its own claims"
                self._record("ignore", claim.lot, LockConflict(None, why))
        self._apply_checks([claim.lot for claim in claims])

    @property
    def _scope(self) -> WriteScope | None:
        """The datasets that the key may write: its namespace, and the outputs of the wiring."""
        if self._within is None:
            return None
        wired = self._job.output_ids if self._job is not None else ()
        return WriteScope(self._within, frozenset(wired))

    @property
    def _is_end(self) -> bool:
        return self._state not in (None, RunState.RUNNING)

    @property
    def _may_grow(self) -> bool:
        """Whether the run can claim more lots: a run that claimed by itself cannot."""
        return self._ours is not None and self._ours.reported

    @property
    def _is_late(self) -> bool:
        """Whether the run has ended, with nothing left to publish."""
        if self._run is None or self._run.ended_at is None:
            return False
        return self._ours is not None or self._run.state != RunState.COMPLETED

    def _record_late(self) -> None:
        """Log a conflict if a run lost its lots without knowing it; ignore an echo."""
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

    def _plan(self, claims: Sequence[WorkRow]) -> tuple[list[LotAccess], list[LotAccess]]:
        """Divide the accesses of the run into those it can lock and those it cannot."""
        if self._state is None or (claims and (self._state in _STOPS or not self._may_grow)):
            return [], []
        uow, job_id, run_id = self._uow, self._event.job_id, self._run_id
        viewer_namespace = self._event.job_namespace
        reported = self._named, self._job, self._facet
        plan = lock_plan.plan_locks(uow, self._event, *reported, self._within)
        for dataset, lot in plan.reads:
            for conflict in lock_plan.find_read_conflicts(
                uow, dataset, lot, viewer_namespace=viewer_namespace
            ):
                self._refuse(lot, conflict)
        free, barred = [], []
        for access in plan.accesses:
            if self._ours is not None and access.lot in self._ours.lost:
                if self._named and self._is_news:
                    self._record("conflict", access.lot, _LOST)
                continue
            needed = lock_plan.find_missing(self._tables, job_id, run_id, access)
            if needed is None:
                continue
            at = (uow, job_id, run_id, needed)
            stop = (
                _MANAGED
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
        """Refuse the event if the job is enforced, else log a conflict.

        A failed run needs no lot.
        """
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
        row = self._tables.work.get((self._event.job_id, lot)) if lot else None
        state = row.state if row is not None else ""
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

    def _pin_inputs(self, accesses: Sequence[LotAccess]) -> None:
        """Pin the versions that the run reads; of several lots, the version of the last."""
        for access in reversed(accesses):
            for dataset in access.inputs:
                source = self._tables.outputs.get((dataset, access.lot))
                version = source.version_id if source is not None else None
                if version and (DatasetRole.INPUT, dataset) not in self._uow.io_of(self._run_id):
                    self._uow.put_io(
                        RunDatasetRow(self._run_id, DatasetRole.INPUT, dataset, version, "{}", "{}")
                    )

    def _receive(self, claims: Sequence[WorkRow], accesses: Sequence[LotAccess]) -> None:
        """Receive the event; a completed run has written all outputs that it locked."""
        event = self._event
        if accesses or self._ours is not None:
            event = self._without_facet(event)
        if RunState.COMPLETED in (self._state, self._run.state if self._run else None):
            written = [dataset for access in accesses for dataset in access.outputs]
            for claim in claims:
                written += self._locked_outputs(claim)
            event = replace(event, outputs=(*event.outputs, *self._unreported(written)))
        receive(self._uow, event, self._now, by_lot=True, scope=self._scope)

    def _without_facet(self, event: Event) -> Event:
        """Drop the lot facet of the event: with claims, only locks write it."""
        if LOT_FACET not in event.run_facets:
            return event
        others = {name: raw for name, raw in event.run_facets.items() if name != LOT_FACET}
        return replace(event, run_facets=others)

    def _locked_outputs(self, claim: WorkRow) -> list[str]:
        rows = [self._tables.outputs.get((d, claim.lot)) for d in self._wiring.output_ids]
        return [row.dataset_id for row in rows if row and row.run_id == claim.run_id]

    def _unreported(self, written: Iterable[str]) -> list[Mention]:
        reported = {self._uow.dataset_id(mention.id) for mention in self._event.outputs}
        rows = [self._uow.datasets.get(d) for d in dict.fromkeys(written) if d not in reported]
        return [Mention(d.id, d.namespace, d.name, NO_FACETS, NO_FACETS) for d in rows if d]

    @property
    def _wiring(self) -> LotJobRow:
        return self._job or default_wiring(self._event.job_id, self._now)

    def _renew(self, claim: WorkRow) -> WorkRow:
        """Renew a lease: every event of a run shows that it is alive."""
        until = max(claim.lease_until, self._now + claim.lease_seconds * SECOND)
        renewed = replace(claim, lease_until=until)
        if renewed != claim:
            self._tables.put_work(renewed)
        return renewed

    def _acquire(self, renewed: Sequence[WorkRow], accesses: Sequence[LotAccess]) -> list[WorkRow]:
        """Lock the accesses of the run."""
        job = self._wiring
        by_lot = {claim.lot: claim for claim in renewed}
        acquired = []
        for access in accesses:
            claim = by_lot.get(access.lot) or self._claimed(job, access.lot)
            pinned = {dataset: self._pinned(dataset, access.lot) for dataset in access.inputs}
            claiming.lock_rows(self._tables, claim, pinned, access.outputs, self._now)
            claiming.drop_failed_inputs(self._tables, job, claim)
            acquired.append(claim)
        if acquired:
            lots = [claim.lot for claim in acquired]
            work_state.refresh_other_jobs(self._tables, job, lots, self._now, readers=False)
        return acquired

    def _pinned(self, dataset: str, lot: str) -> str | None:
        source = self._tables.outputs.get((dataset, lot))
        if source is not None:
            return source.version_id
        read = self._uow.io_of(self._run_id).get((DatasetRole.INPUT, dataset))
        return read.version_id if read is not None else None

    def _wire(self, accesses: Sequence[LotAccess]) -> None:
        """Add the datasets that the run reads and writes to the wiring of its job.

        Older lots need no work: the system that starts the job knows them.
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
            open_lots = [row.lot for row in self._tables.list_open_work(wired.job_id)]
            work_state.refresh(self._tables, wired, open_lots, self._now)

    def _claimed(self, job: LotJobRow, lot: str) -> WorkRow:
        row = self._tables.work.get((job.job_id, lot)) or work_state.new_work(
            job.job_id, lot, 0, WorkState.WAITING, self._now
        )
        # The default lease is too short for runs without heartbeats.
        is_default = job.lease_seconds == LEASE_SECONDS
        seconds = REPORTED_LEASE_SECONDS if is_default else job.lease_seconds
        claim = claiming.with_claim(row, self._run_id, self._owner, seconds, self._now)
        work_state.record_transition(self._tables, claim, row, "claim", self._owner, self._now)
        return claim

    def _write_facet(self, lots: Iterable[str], acquired: Sequence[WorkRow]) -> None:
        """Write the lots that the run works on, or wanted to work on, into its facet."""
        first = self._ours.all_lots if self._ours is not None else ()
        all_lots = (*first, *sorted(set(lots) - set(first), key=sort_key))
        if not all_lots:
            return
        before = self._ours.attempt or 0 if self._ours is not None else 0
        facet = LotFacet(
            lot=all_lots[0],
            attempt=max(before, *(claim.tries for claim in acquired), 0),
            lots=all_lots if len(all_lots) > 1 else (),
            of_all=bool(self._named.of_run) or (self._facet is not None and self._facet.of_all),
            reported=self._ours is None or self._ours.reported,
            lost=self._ours.lost if self._ours is not None else (),
        )
        if facet != self._ours:
            run = self._uow.runs.get(self._run_id)
            assert run is not None, "a run whose event was received exists"
            put_lot_facet(self._uow, run, facet)

    def _end_claims(self, claims: Sequence[WorkRow]) -> None:
        """End the claims of a run that has ended: publish its outputs, or fail the claims."""
        run = self._uow.runs.get(self._run_id)
        assert run is not None, "a run whose event was received exists"
        if not claims or run.ended_at is None:
            return
        failed = read_error(self._event) or f"{self._event.event_type} was reported"
        io = self._uow.io_of(run.id)
        written = {
            dataset: row for (role, dataset), row in io.items() if role == DatasetRole.OUTPUT
        }
        completed, versions = [], []
        for claim in claims:
            outputs, error = self._locked_outputs(claim), failed
            if run.state == RunState.COMPLETED:
                error = lock_plan.explain_unwritten(self._uow, self._named, claim.lot, outputs)
            if not error:
                completed.append(claim)
                versions.append({d: written[d].version_id for d in outputs if d in written})
            else:
                claiming.fail(self._uow, claim, error, self._now)
        if completed:
            checks = {
                d: found for d, row in written.items() if (found := self._read_output_checks(row))
            }
            claiming.publish(self._uow, self._wiring, completed, versions, self._now, checks=checks)
            # Runs of one job can write different outputs: one of another run may be held.
            work_state.refresh(
                self._tables, self._wiring, [claim.lot for claim in completed], self._now
            )

    def _read_output_checks(self, written: RunDatasetRow) -> list[QualityCheck]:
        """Read the check results of an output from all events of the run so far."""
        version = self._uow.versions.get(written.version_id)
        of_version = read_facets(version.facets) if version is not None else NO_FACETS
        return quality.read_checks({**of_version, **read_facets(written.facets)})

    def _apply_checks(self, lots: Iterable[str], *, is_late: bool = False) -> None:
        """Apply check results for lots that the run read, and hold the lots made of them.

        A late event can also have results for lots that the run wrote.
        """
        event, named = self._event, self._named
        sides = [(DatasetRole.INPUT, mention, named.inputs) for mention in event.inputs]
        if is_late:
            sides += [(DatasetRole.OUTPUT, mention, named.outputs) for mention in event.outputs]
        for role, mention, of_dataset in sides:
            results = quality.read_checks({**mention.facets, **mention.io_facets})
            dataset = self._uow.datasets.get(self._uow.dataset_id(mention.id))
            if results and dataset is not None and self._within in (None, dataset.namespace):
                for lot in dict.fromkeys(of_dataset.get(mention.id) or lots):
                    self._apply_checks_to_lot(role, dataset, lot, results)

    def _apply_checks_to_lot(
        self, role: DatasetRole, dataset: DatasetRow, lot: str, results: Sequence[QualityCheck]
    ) -> None:
        tables, now = self._tables, self._now
        row = tables.outputs.get((dataset.id, lot))
        if row is None or row.version_id is None:
            return
        version = row.version_id
        if role == DatasetRole.OUTPUT and row.run_id != self._run_id:
            return  # another run made it later
        own = tables.inputs.get((dataset.id, self._event.job_id, lot))
        if own is not None and own.run_id == self._run_id and own.version_id:
            version = own.version_id
        if why := quality.apply_checks(tables, row, version, results, self._run_id, now):
            holds.propagate_hold(self._uow, dataset, lot, quality.WHO, why, now)
            work_state.refresh_jobs_of(tables, [dataset.id], [lot], now)


def _text(dataset_ids: Iterable[str]) -> str:
    return msgspec.json.encode(list(dataset_ids)).decode()


class LockingEvent(Struct, frozen=True, gc=False):
    """Receive one event of a run, and lock or release its lots.

    If the run may not work on a lot, an enforced job has the whole event refused. Otherwise the
    event is received, the locks stay, and the log records a conflict. Events neither claim lots of
    a job that an engine manages, nor end its claims.
    """

    exclusive: ClassVar[bool] = False

    event: Event
    within: str | None = None  # the one namespace of the key

    def prefetch(self, keys: RowKeys) -> None:
        """Prefetch the rows that the event names."""
        ReceiveEvent(self.event).prefetch(keys)

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Receive the event."""
        event = with_known_job(uow, self.event)
        assert event.run_id is not None, "a run event was checked to have one"
        merge_second_names(uow, event)
        run = uow.runs.get(event.run_id)
        is_other = run is not None and run.job_id != event.job_id and not is_placeholder(uow, run)
        facet = lot_facet(run.facets) if run is not None and run.job_id == event.job_id else None
        # Events that name another job than the run's lock no lots.
        named = read_lots(event) if not is_other else NO_LOTS
        if facet is None and not named and not named.refused:
            scope = WriteScope(self.within) if self.within is not None else None
            receive(uow, event, now, scope=scope)
        else:
            args = (event.run_id, run, facet, named, self.within, now)
            ReportedRun(uow, event, *args).receive()
