"""Conditions of the lots of a dataset: counted by stretches, or read lot by lot."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock.db import Transaction
from penstock.locks.gaps.spans import Span
from penstock.locks.lock_rules import readable
from penstock.schema.gaps import GapKind
from penstock.schema.lots import Status
from penstock.states import ManifestState, WorkState

_OF_STATUS = {Status.RUNNING: GapKind.RUNNING, Status.HOLD: GapKind.HELD}
_OF_ERROR = {"removed": GapKind.REMOVED, "tried": GapKind.PARTIAL}
_OF_MANIFEST = {
    ManifestState.EMPTY: GapKind.EMPTY,
    ManifestState.REMOVED: GapKind.REMOVED,
    ManifestState.PARTIAL: GapKind.PARTIAL,
}


class Condition(Struct, frozen=True):
    """The condition of lots that are not plainly READY; lots with one cause have the same one."""

    kind: GapKind
    status: Status | None = None  # of the OUTPUT row, if one exists
    maker: str = ""  # the job whose row it is, or OUTSIDE
    is_held_lot: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether readers need not wait for such a lot."""
        return readable(self.status)


MISSING = Condition(GapKind.MISSING)
_PUBLISHED = {state: Condition(kind, Status.READY) for state, kind in _OF_MANIFEST.items()}
# Conditions that follow from READY lots and their manifests alone.
_PLAIN = frozenset({None, MISSING, _PUBLISHED[ManifestState.EMPTY]})
Tally = Counter[Condition | None]  # None: plainly READY


def _condition(status: Status, became: str, maker: str, by_hand: int) -> Condition:
    """Return the condition of a lot with this OUTPUT status, which is not READY."""
    kind = _OF_STATUS.get(status, GapKind.WAITING)
    if status is Status.ERROR and became:
        kind = _OF_ERROR[became]
    return Condition(kind, status, maker, bool(by_hand))


def count_conditions(
    tx: Transaction, dataset_id: str, writers: Sequence[str], stretches: Sequence[Span]
) -> list[Tally]:
    """Count the lots of each stretch by condition.

    READY lots are counted first; only stretches that lack some are read again.
    """
    if not stretches:
        return []
    which = {"dataset_id": dataset_id, "width": stretches[0].width}
    within = {**which, **_within(stretches)}
    sizes = {stretch.key: stretch.count for stretch in stretches}
    counts = {key: Tally() for key in sizes}
    others = set()
    for key, ready, has_others in tx.fetch("count_ready_lots", **within, keys=list(sizes)):
        counts[key][None] = ready
        others |= {key} if has_others else set()
    for key, state, odd in tx.fetch("count_odd_manifests", **within, keys=list(sizes)):
        counts[key][_PUBLISHED[ManifestState(state)]] += odd
        counts[key][None] -= odd
    if short := [key for key in _lacking(counts, sizes) if key in others]:
        for key, status, *how, count in tx.fetch("count_other_lots", **which, keys=short):
            counts[key][_condition(Status(status), *how)] += count
    if writers and (short := _lacking(counts, sizes)):
        awaited = tx.fetch("count_awaited_lots", **which, keys=short, jobs=list(writers))
        for key, known, held in awaited:
            counts[key][Condition(GapKind.HELD)] += held
            counts[key][Condition(GapKind.WAITING)] += known - held
    for key in _lacking(counts, sizes):
        counts[key][MISSING] = sizes[key] - counts[key].total()
    return [+tally for tally in counts.values()]


def _within(stretches: Sequence[Span]) -> dict[str, object]:
    return {
        "first": min(stretches, key=lambda stretch: stretch.start).first,
        "last": max(stretches, key=lambda stretch: stretch.start).last,
        "head": stretches[0].head,
        "interval": str(stretches[0].interval),
    }


def _lacking(counts: Mapping[str, Tally], sizes: Mapping[str, int]) -> list[str]:
    return [key for key, size in sizes.items() if counts[key].total() < size]


def read_conditions(
    tx: Transaction, dataset_id: str, writers: Sequence[str], counted: Mapping[Span, Tally]
) -> dict[str, Condition | None]:
    """Read the condition of each known lot of some stretches; the other lots are missing."""
    if not counted:
        return {}
    width = next(iter(counted)).width
    keys = [stretch.key for stretch in counted]
    which = {"dataset_id": dataset_id, "width": width, "keys": keys}
    others = [stretch.key for stretch, tally in counted.items() if tally.keys() - _PLAIN]
    known, other, odd, awaited = tx.fetch_many(
        [
            ("known_lots", which),
            ("other_lots", {**which, "keys": others}),
            ("odd_manifests", which),
            ("awaited_lots", {"width": width, "keys": others, "jobs": list(writers)}),
        ]
    )
    conditions: dict[str, Condition | None] = {}
    held = {lot for lot, state in awaited if state == WorkState.HELD}
    for lot, _ in awaited:
        conditions[lot] = Condition(GapKind.HELD if lot in held else GapKind.WAITING)
    for _, text in known:
        conditions |= {text[at : at + width]: None for at in range(0, len(text or ""), width)}
    for lot, status, *how in other:
        conditions[lot] = _condition(Status(status), *how)
    for lot, state in odd:
        conditions[lot] = _PUBLISHED[ManifestState(state)]
    return conditions
