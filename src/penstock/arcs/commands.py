"""The writes of arcs: declarations, claims within limits, parts, publication and failure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar

import msgspec

from penstock import ids
from penstock.access import audit
from penstock.arcs.rows import (
    ArcRow,
    ArcTables,
    AttemptRow,
    NamedChecks,
    NamedNotes,
    PartRow,
    UnsettledRow,
)
from penstock.arcs.spec import Arc, check_arc, to_text, without_values
from penstock.catalog.commands.lookup import Write
from penstock.catalog.events.apply import receive
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros, format_time
from penstock.errors import Conflict, NotFound
from penstock.locks import claiming
from penstock.locks.claiming import ClaimRef
from penstock.locks.commands.claims import ClaimedLot, ClaimLots
from penstock.locks.commands.wiring import WireJob
from penstock.locks.rows import WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.rows import LotDatasetRow
from penstock.lots.tables import LotTables
from penstock.schema.arcs import PartState
from penstock.schema.lot_ids import Interval, clock_interval
from penstock.states import ManifestState, WorkState

_LIMITS = Limits(name_length_max=4096, json_depth_max=64)
_PRODUCER = "penstock"
_MANAGER = "arcs"  # the engine, as locks name it
_LEFT = "its worker was lost"

T = TypeVar("T")


class ApplyArc(Write, frozen=True):
    """Declare or change an arc. Its job is wired and takes up existing lots."""

    exclusive: ClassVar[bool] = True  # for the audit log

    who: str
    arc: Arc

    def execute(self, uow: UnitOfWork, now: Micros) -> ArcRow:
        """Return the arc. Repeating a declaration changes nothing."""
        row, is_changed = self.upsert(uow, now)
        if is_changed:
            self.append_audit(uow, now)
        return row

    def append_audit(self, uow: UnitOfWork, now: Micros) -> None:
        """Append the declaration to the audit log; a trial does not."""
        target = f"{self.arc.namespace}/{self.arc.name}"
        declared = to_text(without_values(self.arc))
        audit.append(uow.tx, now, self.who, "apply arc", target, declared)

    def upsert(self, uow: UnitOfWork, now: Micros) -> tuple[ArcRow, bool]:
        """Return the arc, and whether it has changed."""
        arc = check_arc(self.arc)
        tables = uow.tables(ArcTables)
        job_id = ids.job_id(arc.namespace, arc.name)
        stored = tables.arcs.get(job_id)
        if stored is None:
            self._check_free(uow, job_id)
        WireJob(
            arc.namespace,
            arc.name,
            arc.input_names,
            arc.output_names,
            lease_seconds=arc.retry.lease_seconds,
            tries_max=arc.retry.tries,
            back_off_seconds=arc.retry.back_off_seconds,
            stale=arc.stale,
            managed_by=_MANAGER,
        ).execute(uow, now)
        self._cut_lots(uow, arc, now)
        text = to_text(arc)
        if stored is not None and stored.declaration == text:
            return stored, False
        created = stored.created_at if stored is not None else now
        row = ArcRow(job_id, arc.namespace, arc.name, arc.project, text, created, now)
        tables.arcs.put(job_id, row)
        return row, True

    def _check_free(self, uow: UnitOfWork, job_id: str) -> None:
        """Refuse a job with running lots: their workers would publish lots without manifests."""
        open_lots = uow.tables(LockTables).list_open_work(job_id)
        if running := [row for row in open_lots if row.state == WorkState.RUNNING]:
            arc, first = self.arc, running[0]
            raise Conflict(
                f"{len(running)} lots of job {arc.namespace}/{arc.name} are running, lot "
                f"{first.lot} by {first.owner!r}; it can become an arc when they are done or "
                "released"
            )

    def _cut_lots(self, uow: UnitOfWork, arc: Arc, now: Micros) -> None:
        """Store the interval of each dataset's lots; the interval of a label never changes."""
        tables = uow.tables(LotTables)
        for name, output in zip(arc.output_names, arc.outputs, strict=True):
            interval = Interval(output.interval) if output.interval else ""
            dataset_id = uow.dataset_id(ids.dataset_id(name.namespace, name.name))
            stored = tables.datasets.get(dataset_id)
            if stored and stored.label == output.version and stored.interval not in ("", interval):
                raise Conflict(
                    f"the lots of {name.namespace}/{name.name}, version {output.version}, are cut "
                    f"by {stored.interval}, not by {interval or 'free ids'}; give it a new version"
                )
            row = LotDatasetRow(dataset_id, interval, output.version, output.running_max or 0, now)
            if stored is None or replace(stored, updated_at=now) != row:
                tables.datasets.put(dataset_id, row)
        for name, source in zip(arc.input_names, arc.inputs, strict=True):
            dataset_id = uow.dataset_id(ids.dataset_id(name.namespace, name.name))
            stored = tables.datasets.get(dataset_id) or LotDatasetRow(dataset_id, "", "1", 0, now)
            if source.running_max is not None and stored.running_max != source.running_max:
                tables.datasets.put(dataset_id, replace(stored, running_max=source.running_max))
        _check_same_cut(uow, arc)


def _check_same_cut(uow: UnitOfWork, arc: Arc) -> None:
    """Refuse datasets with different intervals: outputs have the lot ids of inputs."""
    tables = uow.tables(LotTables)
    first: tuple[str, str] | None = None
    for name in (*arc.input_names, *arc.output_names):
        dataset_name = f"{name.namespace}/{name.name}"
        stored = tables.datasets.get(uow.dataset_id(ids.dataset_id(name.namespace, name.name)))
        interval = clock_interval(name.name) or (stored.interval if stored is not None else "")
        if not interval:
            continue
        if first is not None and first[1] != interval:
            raise Conflict(
                f"the lots of {first[0]} are cut by {first[1]}, and those of {dataset_name} by "
                f"{interval}: arc {arc.namespace}/{arc.name} makes lots with the ids of those "
                "that it reads, so they have to be of one interval"
            )
        first = first or (dataset_name, interval)


class DeleteArc(Write, frozen=True):
    """Delete an arc; its job, runs and lots stay."""

    exclusive: ClassVar[bool] = True  # for the audit log

    who: str
    namespace: str
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Delete the row, so that no engine runs the arc."""
        tables = uow.tables(ArcTables)
        row = arc_row(uow, self.namespace, self.name)
        audit.append(uow.tx, now, self.who, "delete arc", f"{self.namespace}/{self.name}")
        tables.arcs.put(row.job_id, None)
        jobs = uow.tables(LockTables).jobs
        if (job := jobs.get(row.job_id)) is not None:
            jobs.put(row.job_id, replace(job, managed_by=None))


def arc_row(uow: UnitOfWork, namespace: str, name: str) -> ArcRow:
    """Return an arc, or raise NotFound."""
    row = uow.tables(ArcTables).arcs.get(ids.job_id(namespace, name))
    if row is None:
        raise NotFound(f"there is no arc {namespace}/{name}; `penstock arcs list` lists them")
    return row


class ArcClaims(msgspec.Struct, frozen=True):
    """Claimed lots, and the arc as it was declared at that time."""

    arc: Arc
    job_id: str
    claims: Sequence[ClaimedLot]


class ClaimArcLots(Write, frozen=True):
    """Claim lots of an arc, within the limits of the arc and of its datasets.

    Live claims of all engines count, so the engines together stay within the limits. Limits do not
    apply to lots that the caller names.
    """

    namespace: str
    name: str
    owner: str
    count: int
    lots: tuple[str, ...] | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> ArcClaims:
        """Claim up to `count` lots."""
        row = arc_row(uow, self.namespace, self.name)
        arc = row.arc
        count = self.count if self.lots else min(self.count, self._free_slots(uow, row, arc))
        if count < 1:
            return ArcClaims(arc, row.job_id, ())
        claiming = ClaimLots(
            self.namespace,
            self.name,
            self.owner,
            count,
            lots=self.lots,
            newest=arc.newest_first,
            manager=_MANAGER,
        )
        claims = claiming.execute(uow, now)
        for claim in claims:
            uow.tables(ArcTables).put_unsettled(row.job_id, claim.lot, claim.id)
        return ArcClaims(arc, row.job_id, claims)

    def _free_slots(self, uow: UnitOfWork, row: ArcRow, arc: Arc) -> int:
        running = _running(uow)
        left = arc.running_max - running[row.job_id]
        locks, lots = uow.tables(LockTables), uow.tables(LotTables)
        job = locks.jobs.get(row.job_id)
        for dataset_id in (*job.input_ids, *job.output_ids) if job is not None else ():
            cut = lots.datasets.get(dataset_id)
            if cut is not None and cut.running_max:
                users = {user for _, user in locks.wires.get(dataset_id) or ()}
                left = min(left, cut.running_max - sum(running[user] for user in users))
        return left


def _running(uow: UnitOfWork) -> Counter[str]:
    locks = uow.tables(LockTables)
    stored = {(job, lot) for job, lot in uow.tx.fetch("running_lots")}
    changed = {(row.job_id, row.lot): row for row in locks.work.unstored()}
    live = {key for key, row in changed.items() if row.state == WorkState.RUNNING}
    return Counter(job for job, _ in (stored - changed.keys()) | live)


class BeginParts(Write, frozen=True):
    """Begin parts of a claimed lot, each with a run below the run of the claim.

    `parts` maps each name to the digest of its inputs and outputs (`part_digest`).
    """

    claim: ClaimRef
    parts: Mapping[str, str]

    def execute(self, uow: UnitOfWork, now: Micros) -> dict[str, str]:
        """Return the runs, by part."""
        claim = claiming.find_live(uow, self.claim)
        tables = uow.tables(ArcTables)
        end_parts_left(uow, claim.job_id, claim.lot, now)
        runs = {}
        for part, inputs in self.parts.items():
            run_id = ids.derived_id("part", self.claim.id, part)
            tables.put_part(
                PartRow(
                    job_id=claim.job_id,
                    lot=claim.lot,
                    part=part,
                    state=PartState.RUNNING,
                    inputs=inputs,
                    attempt=self.claim.id,
                    run_id=run_id,
                    outputs="[]",
                    error="",
                    at=now,
                )
            )
            _report_part(uow, tables.parts_of(claim.job_id, claim.lot)[part], "START", now)
            runs[part] = run_id
        return runs


class EndPart(Write, frozen=True):
    """Record the end of a part. A part of a claim that is over changes nothing."""

    claim: ClaimRef
    part: str
    state: PartState
    notes: NamedNotes = ()
    error: str = ""

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write the row, and end the run."""
        claim = claiming.find_live(uow, self.claim)
        tables = uow.tables(ArcTables)
        row = tables.parts_of(claim.job_id, claim.lot).get(self.part)
        if row is None or row.attempt != self.claim.id:
            raise Conflict(f"part {self.part!r} of lot {claim.lot} was not begun by this claim")
        outputs = msgspec.json.encode(self.notes).decode()
        _end_part(
            uow, replace(row, state=self.state, outputs=outputs, error=self.error, at=now), now
        )


class PublishLot(Write, frozen=True):
    """Publish the outputs of a claim with their manifests, in one transaction."""

    claim: ClaimRef
    notes: NamedNotes
    checks: NamedChecks = ()

    def execute(self, uow: UnitOfWork, now: Micros) -> dict[str, str]:
        """Return the new versions, by dataset id."""
        claim = claiming.find_live(uow, self.claim)
        notes, checks = _by_id(uow, self.notes), _by_id(uow, self.checks)
        for name, _ in self.notes:
            dataset_id = uow.dataset_id(ids.dataset_id(name.namespace, name.name))
            dataset_name = f"{name.namespace}/{name.name}"
            uow.tables(LotTables).check_interval(dataset_id, dataset_name, [claim.lot])
        [versions] = claiming.complete(uow, [claim], now, notes, checks)
        tables = uow.tables(ArcTables)
        end_parts_left(uow, claim.job_id, claim.lot, now)
        if tables.parts_of(claim.job_id, claim.lot):
            # If the lot is resubmitted later, no part may be reused.
            tables.parts.put((claim.job_id, claim.lot), None)
        return versions


class FailLot(Write, frozen=True):
    """Fail a claim, and record the manifests of the data that it left."""

    claim: ClaimRef
    error: str
    keys: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> WorkRow:
        """Return the work on the lot after it."""
        claim = claiming.find_live(uow, self.claim)
        end_parts_left(uow, claim.job_id, claim.lot, now)
        put_attempt(uow, claim.job_id, claim.lot, self.claim.id, self.keys, now)
        return claiming.fail(uow, claim, self.error, now)


class SettleKeys(Write, frozen=True):
    """Record that the state keys of lots follow the database."""

    rows: tuple[UnsettledRow, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Remove the marks of these attempts; marks of newer attempts stay."""
        tables = uow.tables(ArcTables)
        for row in self.rows:
            tables.settled.put((row.owner_id, row.lot, row.attempt), row)


class RecordAttempts(Write, frozen=True):
    """Record the data that attempts of dead engines left, or that it was removed."""

    job_id: str
    lot: str
    attempts: tuple[tuple[str, tuple[str, ...]], ...]
    state: ManifestState = ManifestState.PARTIAL

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write one row for each attempt."""
        for run_id, keys in self.attempts:
            put_attempt(uow, self.job_id, self.lot, run_id, keys, now, self.state)


def put_attempt(
    uow: UnitOfWork,
    job_id: str,
    lot: str,
    run_id: str,
    keys: Iterable[str],
    now: Micros,
    state: ManifestState = ManifestState.PARTIAL,
) -> None:
    """Write the row of a failed attempt."""
    text = msgspec.json.encode(tuple(keys)).decode()
    uow.tables(ArcTables).attempts.put(run_id, AttemptRow(run_id, job_id, lot, state, text, now))


def _by_id(uow: UnitOfWork, pairs: Iterable[tuple[DatasetName, T]]) -> dict[str, T]:
    return {uow.dataset_id(ids.dataset_id(name.namespace, name.name)): each for name, each in pairs}


def end_parts_left(uow: UnitOfWork, job_id: str, lot: str, now: Micros) -> None:
    """Fail the running parts of a lot, and their runs: their worker is gone."""
    for row in uow.tables(ArcTables).parts_of(job_id, lot).values():
        if row.state == PartState.RUNNING:
            _end_part(uow, replace(row, state=PartState.FAILED, error=_LEFT, at=now), now)


def _end_part(uow: UnitOfWork, row: PartRow, now: Micros) -> None:
    uow.tables(ArcTables).put_part(row)
    _report_part(uow, row, "FAIL" if row.state == PartState.FAILED else "COMPLETE", now)
    uow.tables(LotTables).add_run_end(row.run_id, now)


def _report_part(uow: UnitOfWork, row: PartRow, event_type: str, now: Micros) -> None:
    """Write the run of a part to the catalog, as an OpenLineage event would."""
    job = uow.jobs.get(row.job_id)
    assert job is not None, "a part is of a lot that a job claimed"
    parent = {
        "_producer": _PRODUCER,
        "run": {"runId": row.attempt},
        "job": {"namespace": job.namespace, "name": job.name},
    }
    facets = {"parent": parent, "penstock_part": {"lot": row.lot, "part": row.part}}
    body = {
        "eventType": event_type,
        "eventTime": format_time(now),
        "producer": _PRODUCER,
        "run": {"runId": row.run_id, "facets": facets},
        "job": {"namespace": job.namespace, "name": f"{job.name}.part"},
        "inputs": [],
        "outputs": [],
    }
    receive(uow, read_event(msgspec.json.encode(body), _LIMITS), now)
