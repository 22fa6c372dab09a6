"""Lots and their log as they are shown to a key for one namespace: without others' jobs.

That a lot is there, and since when, is of its dataset; who made it, reads it or works on it is told
within the namespace of the job. See docs/adr/0008-doors.md.
"""

from collections.abc import Sequence

from penstock.catalog.rows import replace
from penstock.schema.catalog import EntityId
from penstock.schema.lots import HeldLot, Lot, LotHold, Transition
from penstock.schema.subscribers import LotEvent


def may_see(only: str | None, job: EntityId | None) -> bool:
    """Whether a job may be named to whoever is shown one namespace; None is shown all."""
    return only is None or job is None or job.namespace == only


def redact_lot(found: Lot, only: str | None) -> Lot:
    """A lot, without the jobs elsewhere that made it or read it."""
    if only is None:
        return found
    readers = [each for each in found.consumers if each.namespace == only]
    if may_see(only, found.job):
        return replace(found, consumers=readers)
    return replace(found, job=None, run=None, consumers=readers)


def redact_log(found: Sequence[Transition], only: str | None) -> Sequence[Transition]:
    """Entries of a log; of what a job elsewhere did there is only that it was done."""
    return [_transition(each, only) for each in found]


def _transition(found: Transition, only: str | None) -> Transition:
    if only is None or found.job is None or found.namespace == only:
        return found
    return replace(found, namespace=None, job=None, run=None, who="", why="")


def redact_held_lot(found: HeldLot, only: str | None) -> HeldLot:
    """A lot that is held, without the job elsewhere that made it."""
    return found if may_see(only, found.job) else replace(found, job=None, run=None)


def redact_hold(found: LotHold, only: str | None) -> LotHold:
    """What holds a lot, without the job elsewhere that is out of tries with it."""
    if may_see(only, found.job):
        return found
    return replace(found, job=None, who=None, why=None, command=None)


def redact_event(found: LotEvent, only: str | None) -> LotEvent:
    """What happened to a lot, without the job elsewhere that did it."""
    return found if may_see(only, found.job) else replace(found, job=None, run=None)
