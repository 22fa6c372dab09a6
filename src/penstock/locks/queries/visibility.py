"""Redaction of lots and their log for a key for one namespace.

The existence and age of a lot belong to its dataset. Its maker, readers and workers are shown only
inside the namespace of the job. See docs/adr/0008-doors.md.
"""

from collections.abc import Sequence

from penstock.catalog.rows import replace
from penstock.schema.catalog import EntityId
from penstock.schema.lots import HeldLot, Lot, LotHold, Transition
from penstock.schema.subscribers import LotEvent


def may_see(only: str | None, job: EntityId | None) -> bool:
    """Whether a viewer of one namespace may see a job; None is a viewer of all."""
    return only is None or job is None or job.namespace == only


def redact_lot(shown: Lot, only: str | None) -> Lot:
    """Hide the maker and the readers of a lot in other namespaces."""
    if only is None:
        return shown
    readers = [each for each in shown.consumers if each.namespace == only]
    if may_see(only, shown.job):
        return replace(shown, consumers=readers)
    return replace(shown, job=None, run=None, consumers=readers)


def redact_log(shown: Sequence[Transition], only: str | None) -> Sequence[Transition]:
    """Hide who did what in entries of jobs in other namespaces."""
    return [_transition(each, only) for each in shown]


def _transition(shown: Transition, only: str | None) -> Transition:
    if only is None or shown.job is None or shown.namespace == only:
        return shown
    return replace(shown, namespace=None, job=None, run=None, who="", why="")


def redact_held_lot(shown: HeldLot, only: str | None) -> HeldLot:
    """Hide the maker of a held lot in another namespace."""
    return shown if may_see(only, shown.job) else replace(shown, job=None, run=None)


def redact_hold(shown: LotHold, only: str | None) -> LotHold:
    """Hide a hold by a spent job in another namespace."""
    if may_see(only, shown.job):
        return shown
    return replace(shown, job=None, who=None, why=None, command=None)


def redact_event(shown: LotEvent, only: str | None) -> LotEvent:
    """Hide the job of a lot event in another namespace."""
    return shown if may_see(only, shown.job) else replace(shown, job=None, run=None)
