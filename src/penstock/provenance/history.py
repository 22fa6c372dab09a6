"""The versions of a lot over time."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from penstock.catalog.entities.runs import lot_facet, lot_facets
from penstock.clock import HOUR, Micros, format_time
from penstock.db import Transaction
from penstock.errors import NotFound

_STRETCH: Micros = HOUR
_LIKE_MAX = 100  # patterns ignore case in some databases


class LotName(Struct, frozen=True):
    """A lot and its dataset."""

    dataset_id: str
    namespace: str
    dataset: str
    lot: str

    def __str__(self) -> str:
        return f"lot {self.lot} of {self.namespace}/{self.dataset}"


class LotAt(Struct, frozen=True):
    """The version that a lot had at a time, or has now, and whether it is still current."""

    name: LotName
    as_of: Micros | None
    version_id: str
    is_current: bool


class Registration(Struct, frozen=True):
    """The registration of an external lot."""

    dataset_id: str
    lot: str
    at: Micros
    who: str


class Publication(Struct, frozen=True):
    """The publication of a version."""

    version_id: str
    at: Micros


def lot_at(tx: Transaction, name: LotName, as_of: Micros | None) -> LotAt:
    """Return the version of a lot at a time, or now; raise NotFound if it had none."""
    row = tx.fetch_one("lot_now", dataset_id=name.dataset_id, lot=name.lot)
    now = row[0] if row is not None else None
    if as_of is None:
        if now is None:
            raise NotFound(f"{name} has no version: it was never made, or is unknown")
        return LotAt(name, None, now, is_current=True)
    earlier = [each for each in publications(tx, name, now) if each.at <= as_of]
    if not earlier:
        raise NotFound(
            f"{name} had no version at {format_time(as_of)}: it was made later, or the record "
            "of that time was pruned"
        )
    version_id = earlier[-1].version_id
    return LotAt(name, as_of, version_id, is_current=version_id == now)


def publications(tx: Transaction, name: LotName, now: str | None) -> list[Publication]:
    """Return the publications of a lot in order.

    The catalog has the times at which events happened, not when they arrived. Versions that were
    published together have distinct times there, a little later than the event.
    """
    first_records = versions_of(tx, name)
    wanted = {*first_records} if now is None else {*first_records, now}
    times: dict[str, Micros] = dict(tx.fetch("publications", ids=sorted(wanted)))
    published = [
        Publication(version, min(at, first_records.get(version, at)))
        for version, at in times.items()
    ]
    return sorted(published, key=lambda each: (each.at, each.version_id))


def versions_of(tx: Transaction, name: LotName) -> dict[str, Micros]:
    """Return every recorded version of a lot, with the time of its first record."""
    which = {"dataset_id": name.dataset_id, "lot": name.lot}
    manifests, outputs = tx.fetch_many(
        [("versions_with_manifests", which), ("versions_made_of_lot", which)]
    )
    registered = registrations(tx, [(name.dataset_id, name.lot)])
    return {**dict(manifests), **dict(outputs), **_registered(tx, name, registered)}


def registrations(tx: Transaction, lots: Iterable[tuple[str, str]]) -> list[Registration]:
    """Return the registrations of lots by dataset id, oldest first."""
    keys = [f"{dataset_id}{lot}" for dataset_id, lot in lots]
    return [Registration(*row) for row in tx.fetch("registrations_of_lots", keys=keys)]


def _registered(
    tx: Transaction, name: LotName, registered: Sequence[Registration]
) -> dict[str, Micros]:
    """Return the versions that registrations made, and when: the first of the lot after each."""
    versions: dict[str, Micros] = {}
    for each in registered:
        version = _declared(tx, name, each.at)
        if version is not None:
            versions.setdefault(version, each.at)
    return versions


def _declared(tx: Transaction, name: LotName, at: Micros) -> str | None:
    """Return the first version of the lot from a time on; prefer those with more evidence."""
    facets, which = lot_facets(name.lot), {"dataset_id": name.dataset_id, "at": at}
    until = at + _STRETCH  # versions of one call are published one by one
    plain = tx.fetch_one("version_declared_from", **which, until=until, facets=facets)
    if plain is not None:
        until = plain[1]
    pattern = f"%{_escaped(facets[1:-2])}%"
    others = tx.fetch(
        "versions_declared_like", **which, until=until, pattern=pattern, most=_LIKE_MAX
    )
    earlier = (version for version, said in others if _is_of(said, name.lot))
    return next(earlier, plain[0] if plain is not None else None)


def _is_of(facets: str, lot: str) -> bool:
    facet = lot_facet(facets)
    return facet is not None and lot in facet.all_lots


def _escaped(text: str) -> str:
    for letter in "!%_":
        text = text.replace(letter, f"!{letter}")
    return text
