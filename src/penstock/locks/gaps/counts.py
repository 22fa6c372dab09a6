"""What is there of the lots of a dataset, and what is not: counted by stretches, or lot by lot."""

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
    """How lots stand that are not simply there: what is alike of those with like causes."""

    kind: GapKind
    status: Status | None = None  # of the OUTPUT row, if there is one
    maker: str = ""  # the job whose row it is, or OUTSIDE
    is_held_lot: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether nobody who reads such a lot has to wait for it."""
        return readable(self.status)


MISSING = Condition(GapKind.MISSING)
_PUBLISHED = {state: Condition(kind, Status.READY) for state, kind in _OF_MANIFEST.items()}
# What is told by the lots that are there, and by their manifests.
_PLAIN = frozenset({None, MISSING, _PUBLISHED[ManifestState.EMPTY]})
Tally = Counter[Condition | None]  # None: simply there


def _condition(status: Status, became: str, maker: str, by_hand: int) -> Condition:
    """How a lot with this OUTPUT status, which is not READY, stands."""
    kind = _OF_STATUS.get(status, GapKind.WAITING)
    if status is Status.ERROR and became:
        kind = _OF_ERROR[became]
    return Condition(kind, status, maker, bool(by_hand))


def count_conditions(
    tx: Transaction, dataset_id: str, writers: Sequence[str], stretches: Sequence[Span]
) -> list[Tally]:
    """How many lots of each stretch are of which kind.

    What is READY is counted where it stands; only stretches that lack some are looked at again.
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
    """Between which lots stretches are, and how their ids are known."""
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
    """How each known lot of some stretches stands; lots that are not here are missing."""
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
    found: dict[str, Condition | None] = {}
    held = {lot for lot, state in awaited if state == WorkState.HELD}
    for lot, _ in awaited:
        found[lot] = Condition(GapKind.HELD if lot in held else GapKind.WAITING)
    for _, text in known:
        found |= {text[at : at + width]: None for at in range(0, len(text or ""), width)}
    for lot, status, *how in other:
        found[lot] = _condition(Status(status), *how)
    for lot, state in odd:
        found[lot] = _PUBLISHED[ManifestState(state)]
    return found
