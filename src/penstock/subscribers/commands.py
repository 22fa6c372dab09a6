"""The tables and writes of subscribers: set, leased by a deliverer, advanced."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType

from penstock.access import audit
from penstock.access.secrets import is_sealed
from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import SECOND, Micros, lasts
from penstock.config import mask_url
from penstock.db import Transaction
from penstock.errors import Conflict, Invalid, NotFound
from penstock.lots.outbox import Outbox, check_not_pruned, last_id
from penstock.lots.rows import SubscriberRow
from penstock.schema.subscribers import SubscriberKind
from penstock.store.table_cache import TableCache
from penstock.store.unit_of_work import Changes

SUBSCRIBERS_MAX = 100  # each one may need a thread
ERROR_CHARS_MAX = 1000
WAIT_SECONDS_MAX = 300.0
ASKED_SECONDS_MAX = 3600.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_SECRET = re.compile(r"[!-~]{1,1000}")


class _Gone(Struct, frozen=True):
    name: str


class SubscriberTables:
    """Subscribers by name."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self.subscribers: TableCache[SubscriberRow] = TableCache(self._fetch, uow.undo)
        self.cached: tuple[TableCache[Any], ...] = (self.subscribers,)
        self.append_only: tuple[TableCache[Any], ...] = ()

    def changes(self) -> Changes:
        """Return every change."""
        return [
            ("forget_subscribers", [_Gone(name) for name in self.subscribers.gone()]),
            ("put_subscribers", self.subscribers.changed()),
        ]

    def _fetch(self, names: list[str]) -> dict[str, SubscriberRow]:
        rows = self._uow.tx.rows(SubscriberRow, "subscribers_by_names", names=names)
        return {row.name: row for row in rows}


class DeliveryState(StrEnum):
    """The progress of a subscriber."""

    ALL = "told"
    BEHIND = "behind"
    FAILING = "failing"


def outbox_of(kind: SubscriberKind) -> Outbox:
    """Return the outbox that subscribers of a kind read."""
    return "runs" if kind == SubscriberKind.OPENLINEAGE else "lots"


class SetSubscriber(Write, frozen=True):
    """Create or change a subscriber; a new one receives events from now on.

    The secret is encrypted already: UNSET keeps the current one, None removes it. `after` moves the
    cursor.
    """

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    name: str
    kind: SubscriberKind
    url: str
    secret: str | UnsetType | None = UNSET
    namespace: str = ""
    dataset: str = ""
    after: int | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """Write the subscriber; its token changes, so a running delivery is refused."""
        self._check()
        cache = uow.tables(SubscriberTables).subscribers
        before = cache.get(self.name)
        if before is None and len(load_subscribers(uow.tx)) >= SUBSCRIBERS_MAX:
            raise Conflict(
                f"there are {SUBSCRIBERS_MAX} subscribers already; delete one to add another"
            )
        if (
            before is not None
            and outbox_of(before.kind) != outbox_of(self.kind)
            and self.after is None
        ):
            raise Conflict(
                f"{self.name!r} is a subscriber of kind {before.kind}, which reads other events; "
                "delete it, or use another name"
            )
        outbox, after = outbox_of(self.kind), self.after
        if after is not None:
            check_not_pruned(uow.tx, after, outbox)
        elif before is not None:
            after = before.cursor
        else:
            after = last_id(uow.tx, outbox)
        secret = self.secret
        if isinstance(secret, UnsetType):
            secret = before.secret if before is not None else None
        row = SubscriberRow(
            name=self.name,
            kind=self.kind,
            url=self.url,
            secret=secret,
            namespace=self.namespace,
            dataset=self.dataset,
            cursor=after,
            token=before.token + 1 if before is not None else 1,
            owner="",
            lease_until=0,
            failures=0,
            next_try_at=0,
            error="",
            failed_at=before.failed_at if before is not None else None,
            delivered_at=before.delivered_at if before is not None else None,
            created_at=before.created_at if before is not None else now,
            updated_at=now,
        )
        cache.put(self.name, row)
        audit.append(uow.tx, now, self.who, "set subscriber", self.name, self._detail())
        return row

    def _detail(self) -> str:
        """Describe the change without its secret."""
        secret = "kept" if isinstance(self.secret, UnsetType) else "set" if self.secret else "none"
        change = {
            "kind": self.kind,
            "url": mask_url(self.url),
            "secret": secret,
            "namespace": self.namespace,
            "dataset": self.dataset,
            "after": self.after,
        }
        return msgspec.json.encode(change).decode()

    def _check(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise Invalid(
                f"{self.name[:64]!r} cannot name a subscriber; use up to 100 letters, digits, "
                "dots, dashes and underscores"
            )
        _check_url(self.url)
        if isinstance(self.secret, str) and not is_sealed(self.secret):
            check_secret(self.secret)
        if self.after is not None and self.after < 0:
            raise Invalid(
                "the cursor of a subscriber cannot be negative; 0 is before the first event"
            )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid("that URL cannot be called; write it like https://host/path")
    if parts.username is not None or parts.password is not None:
        raise Invalid("leave the password out of the URL; use a secret to authenticate the call")


class DeleteSubscriber(Write, frozen=True):
    """Delete a subscriber."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """Delete it, and return its last state."""
        cache = uow.tables(SubscriberTables).subscribers
        row = _require(cache.get(self.name), self.name)
        cache.put(self.name, None)
        audit.append(uow.tx, now, self.who, "delete subscriber", self.name)
        return row


class AcquireSubscriber(Write, frozen=True):
    """Acquire the lease of a subscriber for a deliverer."""

    name: str
    owner: str
    lease_seconds: float

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """Acquire it; return the subscriber with the token of all further writes."""
        cache = uow.tables(SubscriberTables).subscribers
        row = _require(cache.get(self.name), self.name)
        if is_leased_elsewhere(row, self.owner, self.lease_seconds, now):
            raise Conflict(f"{row.owner} delivers to subscriber {self.name!r}")
        if is_backing_off(row, now):
            raise Conflict(f"subscriber {self.name!r} is backing off after a failure")
        leased = replace(
            row,
            token=row.token + 1,
            owner=self.owner,
            lease_until=now + round(self.lease_seconds * SECOND),
        )
        cache.put(self.name, leased)
        return leased


class RenewSubscribers(Write, frozen=True):
    """Renew the leases of subscribers."""

    leases: tuple[tuple[str, int], ...]  # names and tokens
    lease_seconds: float

    def execute(self, uow: UnitOfWork, now: Micros) -> set[str]:
        """Renew them; return the names of those that were lost."""
        cache = uow.tables(SubscriberTables).subscribers
        cache.prefetch(name for name, _ in self.leases)
        lost = set()
        for name, token in self.leases:
            row = cache.get(name)
            if row is None or row.token != token:
                lost.add(name)
            elif row.owner:  # else its delivery has just ended
                until = now + round(self.lease_seconds * SECOND)
                cache.put(name, replace(row, lease_until=until))
        return lost


class MoveCursor(Write, frozen=True):
    """Move the cursor of a subscriber; a lease of 0 seconds releases it."""

    name: str
    token: int
    cursor: int
    lease_seconds: float
    delivered: bool  # false if all events were skipped

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write it, if the token is current."""
        row = _require_token(uow, self.name, self.token)
        moved = replace(
            row,
            cursor=max(row.cursor, self.cursor),
            lease_until=now + round(self.lease_seconds * SECOND) if self.lease_seconds else 0,
            owner=row.owner if self.lease_seconds else "",
        )
        if self.delivered:
            moved = replace(moved, failures=0, next_try_at=0, error="", delivered_at=now)
        uow.tables(SubscriberTables).subscribers.put(self.name, moved)


class FailDelivery(Write, frozen=True):
    """Record a failed delivery: release the subscriber, and retry it after a backoff."""

    name: str
    token: int
    cursor: int
    error: str
    asked_seconds: float = 0.0  # the wait that the receiver asked for
    delivered: bool = False  # earlier events of this delivery succeeded

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """Write it, if the token is current."""
        row = _require_token(uow, self.name, self.token)
        failures = 1 if self.delivered else row.failures + 1
        wait = max(retry_seconds(failures), min(self.asked_seconds, ASKED_SECONDS_MAX))
        failed = replace(
            row,
            cursor=max(row.cursor, self.cursor),
            lease_until=0,
            owner="",
            failures=failures,
            next_try_at=now + round(wait * SECOND),
            error=self.error[:ERROR_CHARS_MAX].replace("\x00", ""),
            failed_at=now,
            delivered_at=now if self.delivered else row.delivered_at,
        )
        uow.tables(SubscriberTables).subscribers.put(self.name, failed)
        return failed


def is_leased_elsewhere(row: SubscriberRow, owner: str, lease_seconds: float, now: Micros) -> bool:
    """Whether another deliverer has leased a subscriber."""
    return row.owner != owner and lasts(row.lease_until, round(lease_seconds * SECOND), now)


def is_backing_off(row: SubscriberRow, now: Micros) -> bool:
    """Whether a subscriber backs off after a failure."""
    return lasts(row.next_try_at, row.next_try_at - (row.failed_at or 0), now)


def retry_seconds(failures: int) -> float:
    """Return the backoff after so many consecutive failures, in seconds."""
    return min(2.0 ** min(failures - 1, 30), WAIT_SECONDS_MAX)


def count_by_delivery(tx: Transaction) -> Mapping[DeliveryState, int]:
    """Count the subscribers by progress."""
    rows = load_subscribers(tx)
    last = {outbox: last_id(tx, outbox) for outbox in {outbox_of(row.kind) for row in rows}}
    return Counter(
        DeliveryState.FAILING
        if row.failures
        else (
            DeliveryState.ALL if row.cursor >= last[outbox_of(row.kind)] else DeliveryState.BEHIND
        )
        for row in rows
    )


def load_subscribers(tx: Transaction) -> list[SubscriberRow]:
    """Load all subscribers, by name."""
    return tx.rows(SubscriberRow, "all_subscribers")


def stored_secrets(tx: Transaction) -> dict[str, str]:
    """Load the stored secrets of subscribers."""
    return {
        f"the secret of subscriber {row.name}": row.secret
        for row in load_subscribers(tx)
        if row.secret is not None
    }


def check_secret(secret: str) -> str:
    """Refuse a secret that is not valid in a header."""
    if not _SECRET.fullmatch(secret):
        raise Invalid("a secret is 1 to 1000 printable ASCII characters without spaces")
    return secret


def get_subscriber(tx: Transaction, name: str) -> SubscriberRow:
    """Read one subscriber, or raise NotFound."""
    rows: Iterable[SubscriberRow] = tx.rows(SubscriberRow, "subscribers_by_names", names=[name])
    return _require(next(iter(rows), None), name)


def _require(row: SubscriberRow | None, name: str) -> SubscriberRow:
    if row is None:
        raise NotFound(
            f"there is no subscriber {name[:100]!r}; `penstock subscribers list` lists them"
        )
    return row


def _require_token(uow: UnitOfWork, name: str, token: int) -> SubscriberRow:
    row = _require(uow.tables(SubscriberTables).subscribers.get(name), name)
    if row.token != token:
        raise Conflict(
            f"subscriber {name!r} was acquired or changed since: its token is {row.token}, "
            f"not {token}; nothing was changed"
        )
    return row
