"""The requests that a subscriber receives for each event, in order, each with a name.

A delivery keeps its name when it is repeated, so that a receiver can detect duplicates.
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
    """An event of an outbox, and its requests; none if the subscriber does not want the event."""

    id: int
    posts: Sequence[tuple[str, bytes]]  # delivery names and bodies


def load_posts(tx: Transaction, row: SubscriberRow, after: int) -> list[EventPosts]:
    """Load the next events for a subscriber, with those to skip."""
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
    events = []
    for number, _, run_id in ends:
        report = reports.get(run_id)  # the run may have been pruned
        posts: Sequence[tuple[str, bytes]] = ()
        if report is not None and _is_wanted(row, list(list_datasets(report[0]))):
            _, begun, ended = report
            name = f"{row.name}-{number}"
            posts = [(f"{name}-start", begun), (f"{name}-end", ended)]
        events.append(EventPosts(number, posts))
    return events


def _is_wanted(row: SubscriberRow, datasets: Sequence[tuple[str, str]]) -> bool:
    if not row.namespace and not row.dataset:
        return True
    return any(row.wants(namespace, name) for namespace, name in datasets)


def target(row: SubscriberRow) -> str:
    """Return the URL of a subscriber; a bare OpenLineage URL gets the standard path."""
    if row.kind == SubscriberKind.OPENLINEAGE and urlsplit(row.url).path in ("", "/"):
        return row.url.rstrip("/") + LINEAGE_PATH
    return row.url


def headers(row: SubscriberRow, delivery: str, body: bytes, now: Micros) -> dict[str, str]:
    """Return the headers that authenticate a call: a signature, or the API key of a backend."""
    values = {"Content-Type": "application/json", DELIVERY: delivery}
    if row.kind == SubscriberKind.OPENLINEAGE:
        values[SENDER] = _sender(row)
    if row.secret is not None and row.kind == SubscriberKind.OPENLINEAGE:
        values["Authorization"] = f"Bearer {row.secret}"
    elif row.secret is not None:
        values[SIGNATURE] = sign(row.secret, body, now)
    return values


def is_own_sender(tx: Transaction, sender: str) -> bool:
    """Whether a deliverer of this database sent an event, on whatever way."""
    return any(_sender(row) == sender for row in load_subscribers(tx) if row.owner)


def _sender(row: SubscriberRow) -> str:
    """Return an id that changes with each lease, and differs in copies of the database."""
    return ids.derived_id("sender", row.name, row.owner, str(row.token))
