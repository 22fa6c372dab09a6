"""Subscribers: who is told of what happens to lots; set, taken by a deliverer, moved on."""

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

SUBSCRIBERS_MAX = 100  # each may need a thread
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
        """Every change of the batch of writes."""
        return [
            ("forget_subscribers", [_Gone(name) for name in self.subscribers.gone()]),
            ("put_subscribers", self.subscribers.changed()),
        ]

    def _fetch(self, names: list[str]) -> dict[str, SubscriberRow]:
        rows = self._uow.tx.rows(SubscriberRow, "subscribers_by_names", names=names)
        return {row.name: row for row in rows}


class DeliveryState(StrEnum):
    """How far a subscriber is."""

    ALL = "told"
    BEHIND = "behind"
    FAILING = "failing"


def outbox_of(kind: SubscriberKind) -> Outbox:
    """Which outbox subscribers of a kind follow."""
    return "runs" if kind == SubscriberKind.OPENLINEAGE else "lots"


class SetSubscriber(Write, frozen=True):
    """Make a subscriber, or change it. A new one is told of what happens from now on.

    The secret is encrypted already. Without one it keeps the one it has; None takes it away.
    `after` sets how far it was told.
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
        """Whoever delivers to it now is refused, and reads it anew."""
        self._check()
        cache = uow.tables(SubscriberTables).subscribers
        held = cache.get(self.name)
        if held is None and len(load_subscribers(uow.tx)) >= SUBSCRIBERS_MAX:
            raise Conflict(f"there are {SUBSCRIBERS_MAX} subscribers, and no more can be had")
        if held is not None and outbox_of(held.kind) != outbox_of(self.kind) and self.after is None:
            raise Conflict(
                f"{self.name!r} is a subscriber of kind {held.kind}, whose events are others; "
                "delete it, or give it another name"
            )
        outbox, after = outbox_of(self.kind), self.after
        if after is not None:
            check_not_pruned(uow.tx, after, outbox)
        elif held is not None:
            after = held.cursor
        else:
            after = last_id(uow.tx, outbox)
        secret = self.secret
        if isinstance(secret, UnsetType):
            secret = held.secret if held is not None else None
        row = SubscriberRow(
            name=self.name,
            kind=self.kind,
            url=self.url,
            secret=secret,
            namespace=self.namespace,
            dataset=self.dataset,
            cursor=after,
            token=held.token + 1 if held is not None else 1,
            owner="",
            lease_until=0,
            failures=0,
            next_try_at=0,
            error="",
            failed_at=held.failed_at if held is not None else None,
            delivered_at=held.delivered_at if held is not None else None,
            created_at=held.created_at if held is not None else now,
            updated_at=now,
        )
        cache.put(self.name, row)
        audit.append(uow.tx, now, self.who, "set subscriber", self.name, self._detail())
        return row

    def _detail(self) -> str:
        """The change without its secret."""
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
            raise Invalid("a subscriber goes on after an event; 0 is before the first")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid("that URL cannot be called; write it like https://host/path")
    if parts.username is not None or parts.password is not None:
        raise Invalid("leave the password out of the URL: a secret proves who is calling")


class DeleteSubscriber(Write, frozen=True):
    """Tell a subscriber nothing more."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """What it was."""
        cache = uow.tables(SubscriberTables).subscribers
        row = _known(cache.get(self.name), self.name)
        cache.put(self.name, None)
        audit.append(uow.tx, now, self.who, "delete subscriber", self.name)
        return row


class AcquireSubscriber(Write, frozen=True):
    """Be the one who delivers to a subscriber, unless somebody else is."""

    name: str
    owner: str
    lease_seconds: float

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """The subscriber, with the token that goes with each further write."""
        cache = uow.tables(SubscriberTables).subscribers
        row = _known(cache.get(self.name), self.name)
        if is_leased_elsewhere(row, self.owner, self.lease_seconds, now):
            raise Conflict(f"{row.owner} delivers to subscriber {self.name!r}")
        if is_backing_off(row, now):
            raise Conflict(f"subscriber {self.name!r} is tried again later")
        taken = replace(
            row,
            token=row.token + 1,
            owner=self.owner,
            lease_until=now + round(self.lease_seconds * SECOND),
        )
        cache.put(self.name, taken)
        return taken


class RenewSubscribers(Write, frozen=True):
    """Say that deliveries go on."""

    held: tuple[tuple[str, int], ...]  # names and tokens
    lease_seconds: float

    def execute(self, uow: UnitOfWork, now: Micros) -> set[str]:
        """The names of those that are not ours any more."""
        cache = uow.tables(SubscriberTables).subscribers
        cache.prefetch(name for name, _ in self.held)
        lost = set()
        for name, token in self.held:
            row = cache.get(name)
            if row is None or row.token != token:
                lost.add(name)
            elif row.owner:  # otherwise its deliverer has let it go just now
                until = now + round(self.lease_seconds * SECOND)
                cache.put(name, replace(row, lease_until=until))
        return lost


class MoveCursor(Write, frozen=True):
    """A subscriber has had all events up to one; with 0 seconds of lease it is let go."""

    name: str
    token: int
    cursor: int
    lease_seconds: float
    delivered: bool  # not only passed over

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Only for whoever holds it."""
        row = _held(uow, self.name, self.token)
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
    """A subscriber did not take an event: it is let go, and tried again after a while."""

    name: str
    token: int
    cursor: int
    error: str
    asked_seconds: float = 0.0  # for how long the receiver wants to be left alone
    delivered: bool = False  # it took others just before

    def execute(self, uow: UnitOfWork, now: Micros) -> SubscriberRow:
        """Only for whoever holds it."""
        row = _held(uow, self.name, self.token)
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
    """Whether somebody else delivers to a subscriber."""
    return row.owner != owner and lasts(row.lease_until, round(lease_seconds * SECOND), now)


def is_backing_off(row: SubscriberRow, now: Micros) -> bool:
    """Whether a subscriber is left alone for a while, because it took something not."""
    return lasts(row.next_try_at, row.next_try_at - (row.failed_at or 0), now)


def retry_seconds(failures: int) -> float:
    """How many seconds to wait after so many failures in a row."""
    return min(2.0 ** min(failures - 1, 30), WAIT_SECONDS_MAX)


def count_by_delivery(tx: Transaction) -> Mapping[DeliveryState, int]:
    """How many subscribers are how far."""
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
    """Every subscriber, by name."""
    return tx.rows(SubscriberRow, "all_subscribers")


def stored_secrets(tx: Transaction) -> dict[str, str]:
    """The secrets of subscribers as they are stored."""
    return {
        f"the secret of subscriber {row.name}": row.secret
        for row in load_subscribers(tx)
        if row.secret is not None
    }


def check_secret(secret: str) -> str:
    """Refuse a secret that cannot stand in a header."""
    if not _SECRET.fullmatch(secret):
        raise Invalid("a secret is 1 to 1000 printable ASCII characters without spaces")
    return secret


def get_subscriber(tx: Transaction, name: str) -> SubscriberRow:
    """One subscriber, or NotFound."""
    found: Iterable[SubscriberRow] = tx.rows(SubscriberRow, "subscribers_by_names", names=[name])
    return _known(next(iter(found), None), name)


def _known(row: SubscriberRow | None, name: str) -> SubscriberRow:
    if row is None:
        raise NotFound(
            f"there is no subscriber {name[:100]!r}; `penstock subscribers list` lists them"
        )
    return row


def _held(uow: UnitOfWork, name: str, token: int) -> SubscriberRow:
    row = _known(uow.tables(SubscriberTables).subscribers.get(name), name)
    if row.token != token:
        raise Conflict(
            f"subscriber {name!r} was taken or changed since: its token is {row.token}, "
            f"not {token}; nothing was changed"
        )
    return row
