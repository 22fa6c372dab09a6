"""Running a task, wherever the executor does it.

This is what goes on in other processes and machines. It knows the object store and nothing of the
database, but for the one who keeps the lease.
"""

from uuid import uuid4

import msgspec

from penstock import logs, tracing
from penstock.arcs.calling import call
from penstock.arcs.command_tasks import run_command_task
from penstock.arcs.leases import kept
from penstock.arcs.tasks import Context, Task, TaskResult, plain
from penstock.errors import Away, PenstockError
from penstock.lots.files import put_manifest
from penstock.lots.manifests import RETRY_MARK
from penstock.objects.uris import open_store


def run_apart(task: Task) -> TaskResult:
    """Run a task in a place of its own, where it may be run twice without anybody's knowing."""
    claim = task.attempt.partition(RETRY_MARK)[0]
    attempt = f"{claim}{RETRY_MARK}{uuid4().hex[:12]}"
    return run_task(msgspec.structs.replace(task, attempt=attempt))


def run_task(task: Task) -> TaskResult:
    """Run a workload and write the manifests of what it made; it never raises for the workload."""
    ids = {
        "lot": task.lot,
        "part": task.part,
        "run": task.run_id,
        "job": f"{task.namespace}/{task.arc}",
        "arc": task.arc,
    }
    name = "arc.part" if task.part else "arc.task"
    with logs.about(**ids), tracing.span(name, under=task.trace, **ids):
        result = _run(task)
        if result.error:
            tracing.fail(result.error)
    return result


def _run(task: Task) -> TaskResult:
    try:
        store = open_store(task.objects, is_marked=task.is_marked)
        context = Context(task, store)
        with kept(task.lease, context.lost.set):
            if task.workload.function is not None:
                call(task.workload.function, context, task.workload.timeout_seconds)
            else:
                run_command_task(task, context)
            for function in task.checks:
                _run_check(function, context, task.workload.timeout_seconds)
        notes = tuple(put_manifest(store, manifest) for manifest in context.manifests())
        return TaskResult(notes, checks=context.checks())
    except PenstockError as error:
        return TaskResult(error=plain(str(error)), is_away=isinstance(error, Away))
    except (Exception, SystemExit) as error:
        return TaskResult(error=plain(f"{type(error).__name__}: {error}"))


def _run_check(function: str, context: Context, timeout_seconds: int | None) -> None:
    """Have a function look at what was made; one that asserts in vain has said no."""
    name, before = function.rpartition(":")[2], context.checks()
    try:
        said = call(function, context, timeout_seconds)
    except AssertionError as error:
        context.check(name, False, detail=str(error))
        return
    if said is not None or context.checks() == before:
        context.check(name, said is None or bool(said))
