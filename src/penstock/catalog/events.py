"""Events as they were received, by the time they state."""

from msgspec import Raw

from penstock.catalog.shapes import Page, raw
from penstock.clock import HOUR, Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.ids import run_id as id_of_run

# Beyond every event, and whole hours, so that an open end has no broken hour to count.
EARLIEST: Micros = -(1 << 31) * HOUR
LATEST: Micros = (1 << 31) * HOUR


def hour_of(at: Micros) -> Micros:
    """When the hour began in which this is; events are counted by it."""
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
) -> Page[Raw]:
    """A page of the events whose time is in [after, before), word for word."""
    span = {
        "after": EARLIEST if after is None else after,
        "before": LATEST if before is None else before,
    }
    page = {**span, "limit": limit, "offset": offset}
    if run_id is not None:
        run = {"run_id": id_of_run(run_id)}
        events, *counts = tx.fetch_many(
            [
                ("read_events_of_run", {**page, **run, "sign": -1 if descending else 1}),
                ("count_events_of_run", {**span, **run}),
            ]
        )
    elif namespace is not None:
        order = "newest" if descending else "oldest"
        events, *counts = tx.fetch_many(
            [
                (f"read_events_of_namespace_{order}_first", {**page, "namespace": namespace}),
                ("count_events_of_namespace", {**span, "namespace": namespace}),
            ]
        )
    else:
        statement = "read_events_newest_first" if descending else "read_events_oldest_first"
        events, *counts = tx.fetch_many([(statement, page), *_counting(**span)])
    total = sum(count for ((count,),) in counts)
    return Page([raw(payload) for (payload,) in events], total)


def _counting(after: Micros, before: Micros) -> list[Ask]:
    """Count whole hours by their totals, and only the broken hours at the ends one by one."""
    first, last = -hour_of(-after), hour_of(before)
    if first > last:
        return [("count_events", {"after": after, "before": before})]
    asks: list[Ask] = [("count_events_by_hours", {"after": first, "before": last})]
    if after < first:
        asks.append(("count_events", {"after": after, "before": first}))
    if last < before:
        asks.append(("count_events", {"after": last, "before": before}))
    return asks
