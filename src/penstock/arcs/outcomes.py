"""What becomes of a lot that was claimed, and of the tasks that it took."""

import logging
from concurrent.futures import CancelledError, Future
from typing import NamedTuple

from penstock.arcs.rows import NamedChecks, NamedNotes, PartState
from penstock.arcs.tasks import TaskResult, plain
from penstock.errors import Away
from penstock.lots.manifests import ManifestNote, PartLine
from penstock.states import ManifestState

log = logging.getLogger(__name__)


class Lost(Exception):
    """The claim is, or may be, somebody else's by now."""


class Made(NamedTuple):
    """What a lot consists of now, and what was said about it, by output."""

    notes: NamedNotes
    checks: NamedChecks = ()


class Failed(Exception):
    """The workload ended badly."""


class Given(Exception):
    """The claim is given back untouched."""


class Loss(str):
    """What is known of the end of a process or machine that was lost with its task."""


def result_of(future: "Future[TaskResult]") -> TaskResult | Loss:
    """What a task came to, if whoever ran it was not lost."""
    try:
        return future.result()
    except CancelledError:
        # Nobody here cancels what he still waits for: a cluster has lost its scheduler.
        raise Away("the scheduler of the cluster was lost, and what it had to do") from None
    except Exception as error:
        log.warning("a worker was lost: %s: %s", type(error).__name__, error)
        return Loss(f"{type(error).__name__}: {error}")
    except BaseException as error:  # the workload's own, such as a KeyboardInterrupt
        return TaskResult(error=plain(f"{type(error).__name__}: {error}"))


def part_state(result: TaskResult) -> PartState:
    """The state of a part that was done."""
    empty = all(noted.state is ManifestState.EMPTY for _, noted in result.notes)
    return PartState.EMPTY if empty else PartState.COMPLETE


def rolled_up(states: set[ManifestState]) -> ManifestState:
    """The state of a lot whose parts have these."""
    for state in (ManifestState.PARTIAL, ManifestState.COMPLETE):
        if state in states:
            return state
    return ManifestState.EMPTY


def line_of(part: str, noted: ManifestNote) -> PartLine:
    """A part in the manifest of its lot."""
    return PartLine(part, noted.key, noted.state, noted.uris, noted.bytes)
