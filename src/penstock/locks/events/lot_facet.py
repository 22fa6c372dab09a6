"""The lots that an OpenLineage event names, and its producer.

An event names lots for the whole run, in a run facet `penstock_lot` such as
`{"lot": "20230206PT24H"}` or `{"lots": [...]}`, or dataset by dataset: in a facet of the same name,
or in OpenLineage's own `subset` facets, where a partition is a lot. Locations and filters are not
lots.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from penstock.catalog.events import known_facets
from penstock.catalog.events.causes import cause_of
from penstock.catalog.events.facets import Facets
from penstock.catalog.events.known_facets import LOT_FACET
from penstock.catalog.events.parse import Event, Mention
from penstock.errors import Invalid
from penstock.schema.lot_ids import check_lot, is_clock, sort_key

T = TypeVar("T")
Lots = tuple[str, ...]  # in the order of lots, each once

LOTS_MAX: Final = 1000  # that one event can lock
REFUSED_MAX: Final = 10  # refusals of one event that are logged
TEXT_CHARS_MAX: Final = 1000
SUBSET: Final = "subset"


class NamedLots(Struct, frozen=True):
    """The lots that an event names: of the whole run, or by dataset."""

    of_run: Lots = ()
    inputs: Mapping[str, Lots] = field(default_factory=dict)
    outputs: Mapping[str, Lots] = field(default_factory=dict)
    refused: tuple[str, ...] = ()  # reasons why ids were refused

    def __bool__(self) -> bool:
        return bool(self.of_run or self.inputs or self.outputs)


NO_LOTS: Final = NamedLots()


class _Lot(Struct):
    lot: str | None = None
    lots: list[str] = field(default_factory=list)


class _Partition(Struct):
    identifier: str | None = None
    dimensions: dict[str, Any] = field(default_factory=dict)


class _Condition(Struct):
    type: str = ""
    partitions: list[_Partition] = field(default_factory=list)


class _Subset(Struct):
    inputCondition: _Condition | None = None
    outputCondition: _Condition | None = None


class _Sender(Struct):
    producer: str = ""


# Created at import: two threads that use a new type at the same time would crash msgspec.
_decode_lot = msgspec.json.Decoder(_Lot).decode
_decode_subset = msgspec.json.Decoder(_Subset).decode
_decode_sender = msgspec.json.Decoder(_Sender).decode


def read_lots(event: Event) -> NamedLots:
    """Read the lots that an event names; an invalid id is refused with a reason."""
    mentions = event.inputs + event.outputs
    if LOT_FACET not in event.run_facets and not any(map(_names_lots, mentions)):
        return NO_LOTS
    reader = _Reader()
    of_run = reader.lots(reader.facet(event.run_facets.get(LOT_FACET)))
    inputs = reader.side(event.inputs)
    outputs = reader.side(mention for mention in event.outputs if not reader.is_clock(mention))
    if len(reader.seen) > LOTS_MAX:
        why = f"the event names {len(reader.seen)} lots; at most {LOTS_MAX} can be locked"
        return NamedLots(refused=(f"{why}, so none is",))
    return NamedLots(of_run, inputs, outputs, tuple(reader.refused))


def _names_lots(mention: Mention) -> bool:
    of_side = mention.io_facets
    return LOT_FACET in mention.facets or LOT_FACET in of_side or SUBSET in of_side


class _Reader:
    """Reads lot ids, and collects refusals."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.refused: dict[str, None] = {}

    def side(self, mentions: Iterable[Mention]) -> dict[str, Lots]:
        by_dataset: dict[str, Lots] = {}
        for mention in mentions:
            lots = self.lots(self.dataset(mention))
            if lots:
                by_dataset[mention.id] = _in_order((*by_dataset.get(mention.id, ()), *lots))
        return by_dataset

    def lots(self, ids: Iterable[str]) -> Lots:
        lots = []
        for lot in ids:
            try:
                lots.append(check_lot(lot))
            except Invalid as refusal:
                self.refuse(str(refusal))
        self.seen.update(lots)
        return _in_order(lots)

    def refuse(self, why: str) -> None:
        if len(self.refused) < REFUSED_MAX:
            self.refused[why] = None

    def is_clock(self, mention: Mention) -> bool:
        """Whether an output is a clock; a clock is refused."""
        if is_clock(mention.name):
            self.refuse(f"{_clean(mention.name)} is a clock, and no job makes its lots")
            return True
        return False

    def dataset(self, mention: Mention) -> Iterator[str]:
        for facets in (mention.facets, mention.io_facets):
            yield from self.facet(facets.get(LOT_FACET))
        yield from _of_subset(mention.io_facets)

    def facet(self, raw: Raw | None) -> Iterable[str]:
        facet = _read(raw, _decode_lot)
        if facet is None:
            if raw is not None:
                self.refuse(
                    f"facet {LOT_FACET} names no lots that can be read; write "
                    '{"lot": "…"} or {"lots": ["…"]}, with texts'
                )
            return ()
        return facet.lots if facet.lot is None else (facet.lot, *facet.lots)


def _in_order(lots: Iterable[str]) -> Lots:
    return tuple(sorted(set(lots), key=sort_key))


def _of_subset(facets: Facets) -> Iterator[str]:
    subset = _read(facets.get(SUBSET), _decode_subset)
    condition = (subset.inputCondition or subset.outputCondition) if subset is not None else None
    if condition is not None and condition.type == "partition":
        yield from map(_partition_lot, condition.partitions)


def _partition_lot(partition: _Partition) -> str:
    """Return the identifier, or the dimensions by name: `country=PL,day=2024-10-15`."""
    if partition.identifier:
        return partition.identifier
    return ",".join(f"{key}={_text(value)}" for key, value in sorted(partition.dimensions.items()))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def read_producer(event: Event) -> str:
    """Read the producer of an event."""
    sender = _read(Raw(event.payload.encode()), _decode_sender)
    return _clean(sender.producer) if sender is not None else ""


def read_error(event: Event) -> str:
    """Read why a run failed from its last event."""
    checked = (known_facets.of_reading(each.facets, each.io_facets) for each in event.inputs)
    return _clean(cause_of(event.run_facets, checked) or "")


def _clean(text: str) -> str:
    return text.replace("\x00", "")[:TEXT_CHARS_MAX]


def _read(raw: Raw | None, decode: Callable[[Raw], T]) -> T | None:
    """Decode a facet; return None if it does not have the shape of its name."""
    if raw is None:
        return None
    try:
        return decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
