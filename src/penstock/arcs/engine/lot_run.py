"""One claimed lot: read its inputs, run its workload, then publish or fail it."""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from penstock.arcs.commands import BeginParts, EndPart, FailLot, PublishLot
from penstock.arcs.engine.leases import TaskLease
from penstock.arcs.engine.outage import Outage
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.outputs.leftovers import clean, list_dead_attempts, write_partial
from penstock.arcs.outputs.state_keys import StateKeys
from penstock.arcs.queries import input_lots, output_refs, parts_of, read_manifest
from penstock.arcs.rows import NamedChecks, NamedNotes, PartRow, UnsettledRow
from penstock.arcs.spec import Arc
from penstock.arcs.workload.functions import run_apart, run_task
from penstock.arcs.workload.parts import part_digest, split
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.arcs.workload.task import (
    InputLot,
    Task,
    TaskResult,
    safe_text,
    task_for_another_worker,
)
from penstock.catalog.events.known_facets import DatasetName
from penstock.clock import Clock, format_time
from penstock.errors import Away, Busy, Conflict, NotFound, PenstockError, Unavailable
from penstock.locks.claiming import ClaimRef
from penstock.locks.commands.claims import ClaimedLot, ReleaseClaim, RenewClaim
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import DatasetRef, Manifest, ManifestNote, PartLine, QualityCheck
from penstock.objects import Objects
from penstock.schema.arcs import EmptyOutput, OnEmpty, PartState
from penstock.states import ArcState, ManifestState, RunState
from penstock.store.write_queue import Command, WriteQueue
from penstock.telemetry import logs, tracing

log = logging.getLogger(__name__)

T = TypeVar("T")

WORKERS_LOST_MAX = 3  # workers for one task
_LOST = f"{WORKERS_LOST_MAX} workers were lost with it, one after another"
_LOOK_SECONDS = 0.2
_RETRY_SECONDS = 1.0  # between tries while the database is away


class LeaseLost(Exception):
    """The claim is lost, or may be."""


class Outputs(NamedTuple):
    """The manifests and checks of all outputs."""

    notes: NamedNotes
    checks: NamedChecks = ()


class WorkloadFailed(Exception):
    """The workload failed."""


class ClaimReleased(Exception):
    """The claim is released and the lot unharmed."""


class WorkerLost(str):
    """The error with which a worker was lost while it ran a task."""


def task_result(future: "Future[TaskResult]") -> TaskResult | WorkerLost:
    """Return the result of a task, or the loss of its worker."""
    try:
        return future.result()
    except CancelledError:
        # No caller cancels a future that it waits for: the cluster has lost its scheduler.
        raise Away("the scheduler of the cluster was lost with its tasks") from None
    except Exception as error:
        log.warning("a worker was lost: %s: %s", type(error).__name__, error)
        return WorkerLost(f"{type(error).__name__}: {error}")
    except BaseException as error:  # raised by the workload, such as a KeyboardInterrupt
        return TaskResult(error=safe_text(f"{type(error).__name__}: {error}"))


def part_state(result: TaskResult) -> PartState:
    """Return the state of a part from its result."""
    empty = all(note.state is ManifestState.EMPTY for _, note in result.notes)
    return PartState.EMPTY if empty else PartState.COMPLETE


def roll_up_states(states: set[ManifestState]) -> ManifestState:
    """Return the state of a lot from the states of its parts."""
    for state in (ManifestState.PARTIAL, ManifestState.COMPLETE):
        if state in states:
            return state
    return ManifestState.EMPTY


def part_line(part: str, note: ManifestNote) -> PartLine:
    """Return the line of a part in the manifest of its lot."""
    return PartLine(part, note.key, note.state, note.uris, note.bytes)


@dataclass
class LotRun:
    """A claim on a lot, and its tasks."""

    arc: Arc
    job_id: str
    claim: ClaimedLot
    catalog: WriteQueue
    objects: Objects
    executor: TaskExecutor
    clock: Clock
    stop: Callable[[], bool]
    outage: Outage
    database: str | None = None  # the URL with which tasks on other machines renew the lease
    rules: CommandRules = DEFAULT_RULES
    lost: threading.Event = field(default_factory=threading.Event)
    is_settled: bool = False  # whether the state keys of the lot follow the database

    @property
    def ref(self) -> ClaimRef:
        """The claim as writes name it."""
        return ClaimRef(self.claim.id, self.claim.token)

    def run(self) -> bool:
        """Publish the lot, or fail or release it; return whether it was published."""
        with logs.about(**self._ids), tracing.span("arc.claim", **self._ids):
            log.info("lot %s is claimed, try %d", self.claim.lot, self.claim.attempt)
            return self._run()

    def _run(self) -> bool:
        keys = StateKeys(self.objects, self.arc)
        try:
            keys.begin(self.claim.lot, is_first=self._is_first)
            self._list_dead_attempts()
            inputs = self._inputs()
            if self._may_skip(inputs):
                outputs = Outputs(self._write_empty_manifests())
            elif self.arc.parts is not None:
                outputs = self._run_parts(inputs)
            else:
                outputs = self._run_whole(inputs)
            with tracing.span("arc.publish", lot=self.claim.lot):
                self._publish(outputs)
        except LeaseLost as lost:
            log.info("lot %s of %s: %s", self.claim.lot, self.arc.name, lost)
            tracing.fail(str(lost))
            return False
        except ClaimReleased as reason:
            return self._release(str(reason))
        except Away as outage:
            return self._release(safe_text(str(outage)), self.outage.meet())
        except (WorkloadFailed, PenstockError) as failure:
            return self._fail(safe_text(str(failure)), keys)
        except Exception as error:
            log.exception("lot %s of %s", self.claim.lot, self.arc.name)
            return self._fail(safe_text(f"{type(error).__name__}: {error}"), keys)
        states = ", ".join(sorted({note.state for _, note in outputs.notes}))
        log.info("lot %s of %s is published: %s", self.claim.lot, self.arc.name, states)
        self._after_publishing(keys, outputs.notes)
        return True

    @property
    def _ids(self) -> dict[str, str]:
        return {
            "lot": self.claim.lot,
            "run": self.claim.id,
            "job": f"{self.arc.namespace}/{self.arc.name}",
            "arc": self.arc.name,
            "dataset": ",".join(f"{ref.namespace}/{ref.name}" for ref in self._refs),
        }

    @property
    def unsettled(self) -> UnsettledRow:
        """The mark of a lot whose state keys may not follow the database."""
        return UnsettledRow(self.job_id, self.claim.lot, self.claim.id)

    def renew_lease(self) -> None:
        """Renew the lease."""
        try:
            self.catalog.submit(RenewClaim(self.ref)).result()
        except (Conflict, NotFound):
            self.lost.set()

    def _write(self, command: Command[T]) -> T:
        """Write with the claim; raise LeaseLost if it is lost, Away if the database is."""
        try:
            return self.catalog.submit(command).result()
        except (Conflict, NotFound) as refusal:
            raise LeaseLost(str(refusal)) from None
        except (Busy, Unavailable) as trouble:
            raise Away(str(trouble)) from None

    def _settle(self, command: Command[T]) -> T:
        """Write an end of the lot or a part; wait while the database is away."""
        trouble = logs.Trouble(log, f"lot {self.claim.lot} of {self.arc.name} waits")
        while True:
            try:
                return self._write(command)
            except Away as error:
                if self.stop():
                    raise
                trouble.met(error)
                if self.lost.wait(_RETRY_SECONDS):
                    raise LeaseLost("its lease was lost while the database was away") from None

    def _publish(self, outputs: Outputs) -> None:
        try:
            self._settle(PublishLot(self.ref, outputs.notes, outputs.checks))
        except LeaseLost:
            # The commit may have succeeded although its answer was lost.
            if not self._is_published():
                raise

    def _is_published(self) -> bool:
        with self.catalog.read() as tx:
            states = tx.fetch("run_states", ids=[self.claim.id])
        return [state for _, state in states] == [RunState.COMPLETED]

    def _inputs(self) -> tuple[InputLot, ...]:
        return input_lots(self.catalog, self.claim, self.objects)

    def _may_skip(self, inputs: Sequence[InputLot]) -> bool:
        """Whether every subscribed input is empty and the arc skips such lots."""
        if self.arc.on_empty is not OnEmpty.SKIP:
            return False
        pairs = zip(self.arc.inputs, inputs, strict=True)
        return all(lot.state is ManifestState.EMPTY for source, lot in pairs if source.subscribe)

    @property
    def _is_first(self) -> bool:
        return self.claim.attempt == 1 and self.claim.token == 1

    @property
    def _refs(self) -> tuple[DatasetRef, ...]:
        return output_refs(self.arc)

    @property
    def _may_be_empty(self) -> tuple[DatasetRef, ...]:
        pairs = zip(self._refs, self.arc.outputs, strict=True)
        return tuple(ref for ref, output in pairs if output.empty is EmptyOutput.ALLOW)

    def _write_empty_manifests(self) -> NamedNotes:
        return tuple(put_manifest(self.objects, self._manifest(ref)) for ref in self._refs)

    def _manifest(self, ref: DatasetRef, parts: tuple[PartLine, ...] = ()) -> Manifest:
        return Manifest(
            state=roll_up_states({part.state for part in parts}),
            lot=self.claim.lot,
            dataset=ref,
            parts=parts,
            attempt=self.claim.id,
            created=format_time(self.clock()),
        )

    def _run_whole(self, inputs: tuple[InputLot, ...]) -> Outputs:
        [result] = self._results({"": self._task("", self.claim.id, inputs)}).values()
        if result.error:
            raise Away(result.error) if result.is_away else WorkloadFailed(result.error)
        return Outputs(result.notes, result.checks)

    def _run_parts(self, inputs: tuple[InputLot, ...]) -> Outputs:
        """Run the parts that no earlier attempt has finished, then list all parts."""
        assert self.arc.parts is not None, "the lot is split"
        planned = split(self.arc.parts, inputs)
        if not planned:
            # No URIs are listed: the lot is empty or has no manifest. The workload must decide.
            return self._run_whole(inputs)
        wanted = {name: part_digest(members, self._refs) for name, members in planned.items()}
        with self.catalog.read() as tx:
            rows = parts_of(tx, self.job_id, self.claim.lot)
        done = {name: row for name, row in rows.items() if row.is_good_for(wanted.get(name, ""))}
        missing = {name: text for name, text in wanted.items() if name not in done}
        runs = self._write(BeginParts(self.ref, missing)) if missing else {}
        tasks = {name: self._task(name, runs[name], planned[name]) for name in missing}
        results = self._results(tasks, self.arc.parts.running_max)
        failed = {name: result for name, result in results.items() if result.error}
        if failed:
            if all(result.is_away for result in failed.values()):
                raise Away(next(iter(failed.values())).error)
            name, first = next((n, r) for n, r in failed.items() if not r.is_away)
            total = f"{len(failed)} of {len(planned)} parts failed"
            raise WorkloadFailed(f"{total}; part {name}: {first.error}")
        return Outputs(self._root_manifests(done, results), self._all_checks(done, results))

    def _root_manifests(
        self, done: Mapping[str, PartRow], results: Mapping[str, TaskResult]
    ) -> NamedNotes:
        """Write one manifest for each output, which lists the manifests of its parts."""
        lines: dict[DatasetName, dict[str, PartLine]] = {name: {} for name in self.arc.output_names}
        for part, row in done.items():
            for name, note in row.named_notes:
                lines[name][part] = part_line(part, note)
        for part, result in results.items():
            for name, note in result.notes:
                lines[name][part] = part_line(part, note)
        roots = (
            self._manifest(ref, tuple(parts[part] for part in sorted(parts)))
            for ref, parts in zip(self._refs, lines.values(), strict=True)
        )
        return tuple(put_manifest(self.objects, root) for root in roots)

    def _all_checks(
        self, done: Mapping[str, PartRow], results: Mapping[str, TaskResult]
    ) -> NamedChecks:
        """Return the checks of all parts, also of those from earlier attempts."""
        checks: defaultdict[DatasetName, list[QualityCheck]] = defaultdict(list)
        for row in done.values():
            for name, note in row.named_notes:
                checks[name] += read_manifest(self.objects, note.key).checks
        for result in results.values():
            for name, part_checks in result.checks:
                checks[name] += part_checks
        return tuple((name, tuple(each)) for name, each in checks.items() if each)

    def _task(self, part: str, run_id: str, inputs: tuple[InputLot, ...]) -> Task:
        return Task(
            arc=self.arc.name,
            namespace=self.arc.namespace,
            lot=self.claim.lot,
            part=part,
            attempt=self.claim.id,
            run_id=run_id,
            workload=self.arc.workload,
            inputs=inputs,
            outputs=self._refs,
            may_be_empty=self._may_be_empty,
            checks=self.arc.checks,
            objects=self.objects.url,
            is_marked=self.objects.is_marked,
            lease=self._lease,
            rules=self.rules,
            trace=tracing.header(),
        )

    @property
    def _lease(self) -> TaskLease | None:
        if self.database is None:
            return None
        return TaskLease(self.database, self.ref, self.claim.lease_seconds)

    def _results(self, tasks: Mapping[str, Task], at_once: int = 1) -> dict[str, TaskResult]:
        """Run tasks, at most `at_once` in parallel, and record the end of each part."""
        running: dict[Future[TaskResult], Task] = {}
        try:
            return self._run_all(deque(tasks.values()), running, at_once)
        except LeaseLost:
            self._abandon(running)
            raise

    def _run_all(
        self, left: deque[Task], running: dict[Future[TaskResult], Task], at_once: int
    ) -> dict[str, TaskResult]:
        results: dict[str, TaskResult] = {}
        run = run_apart if self.executor.repeats_tasks else run_task
        while left or running:
            while left and len(running) < at_once and not self.stop():
                task = left.popleft()
                running[self.executor.submit(run, task)] = task
            ended, _ = wait(running, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
            for future in ended:
                task = running.pop(future)
                result = task_result(future)
                if isinstance(result, WorkerLost) and task.tries < WORKERS_LOST_MAX:
                    left.append(task_for_another_worker(task))
                    continue
                if isinstance(result, WorkerLost):
                    result = TaskResult(error=safe_text(f"{_LOST}; the last ended with: {result}"))
                results[task.part] = result
                if task.part:
                    self._end_part(task.part, results[task.part])
            if self.lost.is_set():
                raise LeaseLost("its lease was lost")
            self.executor.check()
            if self.stop():
                left += self._take_back(running)
                if left and not running:
                    raise ClaimReleased("the engine is stopping")
        return results

    def _abandon(self, running: Iterable[Future[TaskResult]]) -> None:
        """End the running tasks: another worker may have claimed the lot."""
        for future in running:
            self.executor.abandon(future)

    def _take_back(self, running: dict[Future[TaskResult], Task]) -> list[Task]:
        return [running.pop(future) for future in list(running) if self.executor.take_back(future)]

    def _end_part(self, name: str, result: TaskResult) -> None:
        state = PartState.FAILED if result.error else part_state(result)
        self._settle(EndPart(self.ref, name, state, result.notes, result.error))

    def _fail(self, error: str, keys: StateKeys) -> bool:
        log.warning("lot %s of %s failed: %s", self.claim.lot, self.arc.name, error)
        tracing.fail(error)
        try:
            after = self._settle(FailLot(self.ref, error, self._list_leftovers(error)))
            keys.show(self.claim.lot, ArcState.PARTIAL)
            self.is_settled = True
            log.info("lot %s of %s is %s", self.claim.lot, self.arc.name, after.state)
        except (LeaseLost, PenstockError) as refusal:
            log.info("lot %s of %s: %s", self.claim.lot, self.arc.name, refusal)
        return False

    def _list_leftovers(self, error: str) -> tuple[str, ...]:
        """List the data that was left; the failure is recorded even if the store is away."""
        try:
            return write_partial(self.objects, self._refs, self.claim.lot, self.claim.id, error)
        except Exception as refusal:
            name = self.arc.name
            log.warning(
                "lot %s of %s left data that is not listed: %s", self.claim.lot, name, refusal
            )
            return ()

    def _release(self, why: str, rest_seconds: int = 0) -> bool:
        """Release the claim; after an outage, the lot rests."""
        level = logging.WARNING if rest_seconds else logging.INFO
        log.log(level, "lot %s of %s is released: %s", self.claim.lot, self.arc.name, why)
        away = why if rest_seconds else ""
        try:
            self._settle(ReleaseClaim(self.ref, away, rest_seconds))
        except (LeaseLost, PenstockError) as refusal:
            log.info("lot %s of %s: %s", self.claim.lot, self.arc.name, refusal)
        return False

    def _list_dead_attempts(self) -> None:
        """List the data of earlier attempts whose engines died."""
        if self._is_first:
            return
        list_dead_attempts(self.catalog, self.objects, self._refs, self.job_id, self.claim.lot)

    def _after_publishing(self, keys: StateKeys, notes: NamedNotes) -> None:
        """Update state keys and clean up; an engine repairs this if it is cut off."""
        try:
            is_gated = any(note.state is ManifestState.PARTIAL for _, note in notes)
            keys.show(self.claim.lot, ArcState.PARTIAL if is_gated else ArcState.COMPLETE)
            keys.show_manifests(self.claim.lot, self._refs, [note for _, note in notes])
            mine = (self.claim.id,)
            clean(self.catalog, self.objects, self._refs, self.job_id, self.claim.lot, mine)
            self.is_settled = True
        except PenstockError as error:
            log.warning("lot %s of %s is published, but %s", self.claim.lot, self.arc.name, error)
