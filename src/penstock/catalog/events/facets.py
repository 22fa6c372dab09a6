"""Merging of facets from many events, independent of the order of arrival.

Each facet keeps the stamp of the event that set it, and the greater stamp wins. Stamps are a total
order on events, so any order and any repetition end in the same set.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Raw

from penstock.clock import Micros

Facets = Mapping[str, Raw]
Stamp = int

REMEMBERED_MAX: Final = 8192  # characters; caching longer texts would use too much memory
NO_FACETS: Final[dict[str, Raw]] = {}
NONE: Final = "{}"  # an empty stored set, or empty stamps
_NULL: Final = Raw(b"null")
_LAST: Final = 1 << 62
_RANKS: Final = {"START": 1, "RUNNING": 2, "OTHER": 3, "COMPLETE": 4, "FAIL": 5, "ABORT": 6}
_TERMINAL: Final = frozenset({"COMPLETE", "FAIL", "ABORT"})


class _Mark(msgspec.Struct, gc=False):
    deleted: bool = msgspec.field(name="_deleted", default=False)


class _RunStamps(msgspec.Struct, gc=False):
    run: Raw = Raw(b"{}")
    job: Raw = Raw(b"{}")


_decode_mark = msgspec.json.Decoder(_Mark).decode
_decode_facets = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_stamps = msgspec.json.Decoder(dict[str, int]).decode
_decode_run_stamps = msgspec.json.Decoder(_RunStamps).decode
_encode = msgspec.json.encode


def event_stamp(at: Micros, event_type: str) -> Stamp:
    """Return the stamp between runs: by event time, then later states after earlier ones."""
    return at * 8 + _RANKS.get(event_type, 0)


def run_stamp(at: Micros, event_type: str) -> Stamp:
    """Return the stamp within a run: the first terminal event wins; later ones fill gaps."""
    if event_type in _TERMINAL:
        return _LAST - at
    return event_stamp(at, event_type)


def stamped_at(stamp: Stamp) -> Micros:
    """Return the event time of a stamp of either kind."""
    return _LAST - stamp if stamp > _LAST >> 1 else stamp // 8


def restamped(stamp: Stamp, at: Micros) -> Stamp:
    """Return a stamp with another event time."""
    return _LAST - at if stamp > _LAST >> 1 else at * 8 + stamp % 8


def read_facets(text: str) -> Facets:
    """Decode a stored set; keep each facet as text."""
    return _remembered_facets(text) if len(text) <= REMEMBERED_MAX else _decode_facets(text)


@lru_cache(maxsize=4096)
def _remembered_facets(text: str) -> Facets:
    return _decode_facets(text)


def write_facets(facets: Facets) -> str:
    """Encode a set for storage."""
    return _encode(facets).decode()


def read_stamps(text: str) -> dict[str, int]:
    """Decode stored stamps, by facet."""
    return _decode_stamps(text) if len(text) > 2 else {}


def write_stamps(stamps: Mapping[str, int]) -> str:
    """Encode stamps for storage."""
    return _encode(stamps).decode()


def mark_stated(stamps: str, *names: str) -> str:
    """Return stamps that stop versions from inheriting facets stated by other means."""
    return write_stamps(dict.fromkeys(names, 0) | read_stamps(stamps))


def laid_over(inherited: str | None, own: str) -> str:
    """Overlay one stored set, or its stamps, on another."""
    if inherited is None:
        return own
    if len(own) == 2:
        return inherited
    return write_facets({**read_facets(inherited), **read_facets(own)})


class Merged(msgspec.Struct, frozen=True, gc=False):
    """The result of a merge, and the new facets that won.

    `facets` is the unchanged input text if only stamps moved.
    """

    facets: str
    stamps: str
    won: Facets


def read_run_stamps(text: str) -> tuple[str, str]:
    """Decode the stored stamps of a run's facets and of its job's facets, as text."""
    stamps = _decode_run_stamps(text)
    return bytes(stamps.run).decode(), bytes(stamps.job).decode()


def together(facets: str, stamps: str, others: str, stamps_of_others: str) -> str:
    """Merge two stored sets for display; the later report of a facet wins."""
    if len(others) == 2:
        return facets
    if len(facets) == 2:
        return others
    said, said_by_others = read_stamps(stamps), read_stamps(stamps_of_others)
    shown = dict(read_facets(facets))
    for name, value in read_facets(others).items():
        if _is_later(said_by_others[name], said.get(name)):
            shown[name] = value
    return write_facets(shown)


def is_deleted(facet: Raw) -> bool:
    """Return whether a facet only says that it was deleted."""
    if b"_deleted" not in bytes(facet):
        return False
    try:
        return _decode_mark(facet).deleted
    except msgspec.MsgspecError:
        return False


def shown(facets: str) -> str:
    """Return a set without deleted facets, which stay stored to block older ones."""
    if "_deleted" not in facets:
        return facets
    held = read_facets(facets)
    return write_facets({name: facet for name, facet in held.items() if not is_deleted(facet)})


def others_hold(name: str, stamps: str, stamps_of_others: str, until: Micros) -> bool:
    """Return whether a facet was shown from another report at a time."""
    said = read_stamps(stamps_of_others)[name]
    return stamped_at(said) <= until and _is_later(said, read_stamps(stamps).get(name))


def _is_later(stamp: Stamp, held: Stamp | None) -> bool:
    return held is None or stamped_at(stamp) > stamped_at(held)


def merge(facets: str, stamps: str, new: Facets, stamp: Stamp) -> Merged | None:
    """Merge the facets of one event into a stored set; None if nothing changes."""
    if _NULL in new.values():
        new = {name: value for name, value in new.items() if value != _NULL}
    if not new:
        return None
    if len(stamps) == 2:
        return Merged(write_facets(new), write_stamps(dict.fromkeys(new, stamp)), new)
    old_facets = read_facets(facets)
    old_stamps = read_stamps(stamps)
    won = {}
    told_apart = False
    for name, value in new.items():
        before = old_stamps.get(name)
        if before is not None:
            held = old_facets.get(name)  # None: stated by other means than a facet
            if before > stamp or (before == stamp and held and bytes(held) >= bytes(value)):
                continue
            told_apart = told_apart or held != value
        else:
            told_apart = True
        old_stamps[name] = stamp
        won[name] = value
    if not won:
        return None
    merged = write_facets({**old_facets, **won}) if told_apart else facets
    return Merged(merged, write_stamps(old_stamps), won)
