"""What a subscriber is sent for each event: the POSTs, in their order, each with a name of its own.

A delivery has the same name however often it is made, so that a receiver can tell a double.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.lots.outbox import events_after
from penstock.lots.rows import SubscriberRow
from penstock.schema.subscribers import SubscriberKind
from penstock.signing import DELIVERY, SENDER, SIGNATURE, sign
from penstock.subscribers.commands import load_subscribers
from penstock.subscribers.openlineage import list_datasets, load_reports

PAGE = 100
LINEAGE_PATH = "/api/v1/lineage"


class EventPosts(Struct, frozen=True):
    """An event of an outbox, and what a subscriber is sent for it: nothing, if it is not for it."""

    id: int
    posts: Sequence[tuple[str, bytes]]  # names of deliveries, and bodies


def load_posts(tx: Transaction, row: SubscriberRow, after: int) -> list[EventPosts]:
    """The next events for a subscriber, with those that are passed over."""
    if row.kind == SubscriberKind.OPENLINEAGE:
        return _of_runs(tx, row, after)
    return [
        EventPosts(
            event.id,
            [(f"{row.name}-{event.id}", msgspec.json.encode(event))]
            if row.wants(event.dataset.namespace, event.dataset.name)
            else (),
        )
        for event in events_after(tx, after, PAGE)
    ]


def _of_runs(tx: Transaction, row: SubscriberRow, after: int) -> list[EventPosts]:
    ends = tx.fetch("run_ends_after", after=after, most=PAGE)
    reports = load_reports(tx, (run_id for _, _, run_id in ends))
    letters = []
    for number, _, run_id in ends:
        report = reports.get(run_id)  # a run may have been pruned meanwhile
        posts: Sequence[tuple[str, bytes]] = ()
        if report is not None and _is_wanted(row, list(list_datasets(report[0]))):
            _, begun, ended = report
            name = f"{row.name}-{number}"
            posts = [(f"{name}-start", begun), (f"{name}-end", ended)]
        letters.append(EventPosts(number, posts))
    return letters


def _is_wanted(row: SubscriberRow, datasets: Sequence[tuple[str, str]]) -> bool:
    if not row.namespace and not row.dataset:
        return True
    return any(row.wants(namespace, name) for namespace, name in datasets)


def target(row: SubscriberRow) -> str:
    """Where a subscriber is called; a bare OpenLineage backend is called where all of them are."""
    if row.kind == SubscriberKind.OPENLINEAGE and urlsplit(row.url).path in ("", "/"):
        return row.url.rstrip("/") + LINEAGE_PATH
    return row.url


def headers(row: SubscriberRow, delivery: str, body: bytes, now: Micros) -> dict[str, str]:
    """What proves who is calling: a signature, or the key that the other backend has given."""
    found = {"Content-Type": "application/json", DELIVERY: delivery}
    if row.kind == SubscriberKind.OPENLINEAGE:
        found[SENDER] = _sender(row)
    if row.secret is not None and row.kind == SubscriberKind.OPENLINEAGE:
        found["Authorization"] = f"Bearer {row.secret}"
    elif row.secret is not None:
        found[SIGNATURE] = sign(row.secret, body, now)
    return found


def is_own_sender(tx: Transaction, sender: str) -> bool:
    """Whether what was sent comes from a deliverer of this very database, by whatever way."""
    return any(_sender(row) == sender for row in load_subscribers(tx) if row.owner)


def _sender(row: SubscriberRow) -> str:
    """Who delivers: another each time that somebody takes the subscriber, and in no copy of it."""
    return ids.derived_id("sender", row.name, row.owner, str(row.token))
