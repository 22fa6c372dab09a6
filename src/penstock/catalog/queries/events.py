"""Queries for received events, by event time."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw, Struct

from penstock.clock import HOUR, Micros, format_time, has_zone, parse_time
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import Invalid
from penstock.ids import run_id as id_of_run
from penstock.schema.shape import Page, raw

# Later than every event, and a whole hour, so that an open end has no partial hour to count.
EARLIEST: Micros = -(1 << 31) * HOUR
LATEST: Micros = (1 << 31) * HOUR


class EventKind(StrEnum):
    """The kinds of OpenLineage event."""

    RUN = "RUN"
    JOB = "JOB"
    DATASET = "DATASET"


ALL_KINDS: Sequence[EventKind] = tuple(EventKind)


class _Timed(Struct, rename="camel"):
    event_time: str


_read_time = msgspec.json.Decoder(_Timed).decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode


def counted_type(kind: str, event_type: str) -> str:
    """Return the type under which an event is counted: of a run event its own, else the kind."""
    return event_type if kind == EventKind.RUN else kind


def hour_of(at: Micros) -> Micros:
    """Return the start of the hour, by which events are counted."""
    return at - at % HOUR


def list_events(
    tx: Transaction,
    before: Micros | None,
    after: Micros | None,
    *,
    descending: bool = True,
    limit: int,
    offset: int,
    run_id: str | None = None,
    namespace: str | None = None,
    kinds: Sequence[EventKind] = ALL_KINDS,
) -> Page[dict[str, Any]]:
    """Return a page of events of these kinds with a time in [after, before), unchanged.

    Only a time without a zone is written differently: in UTC, as it was read.
    """
    span = {
        "after": EARLIEST if after is None else after,
        "before": LATEST if before is None else before,
    }
    page = {**span, "limit": limit, "offset": offset}
    chosen = list(kinds or ALL_KINDS)
    of_kinds = {"kinds": chosen}
    order = "newest" if descending else "oldest"
    if run_id is not None:
        run = {"run_id": id_of_run(run_id)}
        events, *counts = tx.fetch_many(
            [
                ("read_events_of_run", {**page, **run, "sign": -1 if descending else 1}),
                ("count_events_of_run", {**span, **run}),
            ]
        )
    elif namespace is not None:
        here = {"namespace": namespace}
        events, *counts = tx.fetch_many(
            [
                (f"read_events_of_namespace_{order}_first", {**page, **of_kinds, **here}),
                ("count_events_of_namespace", {**span, **of_kinds, **here}),
            ]
        )
    else:
        reading = (f"read_events_{order}_first", {**page, **of_kinds})
        events, *counts = tx.fetch_many([reading, *_counting(**span, kinds=chosen)])
    total = sum(count for ((count,),) in counts)
    return Page([_with_zone(payload) for (payload,) in events], total)


def _with_zone(payload: str) -> Any:
    """Return an event with a zone in its time: Java clients require one."""
    try:
        at = _read_time(payload).event_time
        if has_zone(at):
            return raw(payload)
        members = _read_members(payload)
        members["eventTime"] = Raw(msgspec.json.encode(format_time(parse_time(at))))
    except (msgspec.MsgspecError, Invalid):
        return raw(payload)
    return Raw(msgspec.json.encode(members))


def _counting(after: Micros, before: Micros, kinds: Sequence[EventKind]) -> list[Ask]:
    """Count whole hours by their totals, and partial hours at the ends one by one."""
    first, last = -hour_of(-after), hour_of(before)
    if first > last:
        return [("count_events", {"after": after, "before": before, "kinds": kinds})]
    hours = {"after": first, "before": last, "kinds": kinds}
    asks: list[Ask] = [("count_events_by_hours", hours)]
    if after < first:
        asks.append(("count_events", {"after": after, "before": first, "kinds": kinds}))
    if last < before:
        asks.append(("count_events", {"after": last, "before": before, "kinds": kinds}))
    return asks
