"""Quality reports of runs on a version, as facets of the dataset.

Each test is often a run of its own, so results are merged. The later result of a test wins, and so
do the latest metrics.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from penstock.catalog.events.facets import Facets, read_facets, read_stamps, stamped_at
from penstock.catalog.events.known_facets import ASSERTIONS, CHECKS, EXPECTATIONS, LOT_FACET
from penstock.clock import Micros

_LISTS: Final = (ASSERTIONS, EXPECTATIONS)
_IDENTITY: Final = ("name", "assertion", "expectationType", "column")
_OF_A_PART: Final = frozenset({LOT_FACET, "subset"})  # not about the whole version
_decode = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(list[dict[str, Any]]).decode


def reported_at(facets: str, stamps: str) -> Micros | None:
    """Return when a run last reported quality in these facets, or None."""
    if len(facets) == 2 or not any(f'"{name}"' in facets for name in CHECKS):
        return None
    stated = read_stamps(stamps)
    return max((stamped_at(stated[name]) for name in CHECKS if name in stated), default=None)


def with_reports(facets: Facets, written: str | None, reports: Iterable[str]) -> Facets:
    """Return the facets of a version, merged with those of runs that checked it."""
    shown = dict(facets)
    if written is not None:
        of_writing = read_facets(written).items()
        shown |= {name: facet for name, facet in of_writing if name not in _OF_A_PART}
    by_name: dict[str, list[Raw]] = {}
    for report in reports:
        for name, facet in read_facets(report).items():
            if name in CHECKS:
                by_name.setdefault(name, []).append(facet)
    for name, of_name in by_name.items():
        shown[name] = _laid_together(of_name) if name in _LISTS else of_name[0]
    return shown


def _laid_together(facets: list[Raw]) -> Raw:
    """Merge a facet of several runs into one; the newest comes first."""
    if len(facets) == 1:
        return facets[0]
    results: dict[str, Mapping[str, Any]] = {}
    for facet in facets:
        for each in _assertions(facet):
            identity = msgspec.json.encode([each.get(name) for name in _IDENTITY]).decode()
            results.setdefault(identity, each)
    try:
        newest = _decode(facets[0])
    except msgspec.MsgspecError:
        return facets[0]
    newest["assertions"] = Raw(msgspec.json.encode(list(results.values())))
    return Raw(msgspec.json.encode(newest))


def _assertions(facet: Raw) -> list[dict[str, Any]]:
    """Return the results in a facet; none if it does not have the expected shape."""
    try:
        return _decode_list(_decode(facet).get("assertions", Raw(b"[]")))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
