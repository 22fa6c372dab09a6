"""Keys and the audit log, for administrators."""

import re
from typing import Annotated

from msgspec import Meta

from penstock.access import audit
from penstock.access.keys import LOCAL, Key, ListedKey, Rate
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Malformed, Unauthorized
from penstock.schema.admin import (
    AuditExport,
    AuditLog,
    CreatedKey,
    KeyRole,
    ShownCaller,
    ShownEntry,
    ShownKey,
    ShownKeys,
)
from penstock.schema.shape import time_or_none
from penstock.schema.texts import Time
from penstock.server.content import Body, Limit, OwnBody, Paging, Query, moment
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route

INT_MAX = 2**63 - 1
_POSITION = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class KeyBody(Body, frozen=True):
    """The key to make."""

    name: str
    role: KeyRole
    namespace: str | None = None
    requests_per_second: int | None = None
    bytes_per_second: int | None = None


class RateBody(OwnBody, frozen=True):
    """The rates of a key per second: null is the server's default, 0 is no limit."""

    requests_per_second: int | None = None
    bytes_per_second: int | None = None


class KeysQuery(Query, frozen=True):
    """The selection of keys."""

    revoked: bool = False


class AuditQuery(Paging, frozen=True):
    """The selection of audit entries: by key, by action and by time."""

    who: str | None = None
    action: Annotated[str | None, Meta(description="a part of what was done, as `hold`")] = None
    since: Time | None = None


class ExportQuery(Query, frozen=True):
    """The selection of exported entries: since a time, after an entry, by page size."""

    since: Time | None = None
    after: Annotated[str | None, Meta(description="the `next` of the page before")] = None
    limit: Limit = 1000


async def create_key(context: RequestContext, body: KeyBody) -> CreatedKey:
    """Make a key. Its token is in the answer and nowhere else. Needs an admin's key."""
    _require_key(context.key)
    keys, who = context.plane.keys, context.key.name
    rate = Rate(body.requests_per_second, body.bytes_per_second)
    created = await context.state.in_thread(
        keys.create, body.name, body.role, namespace=body.namespace, rate=rate, who=who
    )
    return CreatedKey(_shown(created.key), created.token)


async def limit_key(context: RequestContext, name: str, body: RateBody) -> ShownKey:
    """Set the rates of a key; servers apply them within seconds.

    A rate that is omitted becomes the server's default. Needs an admin's key.
    """
    _require_key(context.key)
    rate = Rate(body.requests_per_second, body.bytes_per_second)
    keys = context.plane.keys
    return _shown(await context.state.in_thread(keys.limit, name, rate, who=context.key.name))


async def list_keys(context: RequestContext, query: KeysQuery) -> ShownKeys:
    """List active keys, or with `revoked=true` all keys."""
    keys = context.plane.keys
    rows = await context.state.in_thread(keys.listed, revoked=query.revoked)
    return ShownKeys([_shown(key) for key in rows])


async def revoke_key(context: RequestContext, name: str) -> ShownKey:
    """Revoke a key; it stops working within seconds. Needs an admin's key."""
    _require_key(context.key)
    return _shown(
        await context.state.in_thread(context.plane.keys.revoke, name, who=context.key.name)
    )


def list_audit(tx: Transaction, query: AuditQuery) -> AuditLog:
    """List the audit log, newest first."""
    since = moment(query.since, "since")
    entries = audit.entries(
        tx, query.limit, query.offset, who=query.who, action=query.action, since=since
    )
    return AuditLog([_shown_entry(entry) for entry in entries])


def export_audit(tx: Transaction, query: ExportQuery) -> AuditExport:
    """Export the audit log page by page, oldest first, with the hashes of its chain."""
    at, id = _position(query.after, moment(query.since, "since"))
    page = audit.export(tx, at, id, query.limit)
    is_full = bool(page) and len(page) == query.limit
    return AuditExport(
        [_shown_entry(entry) for entry in page],
        f"{page[-1].at}-{page[-1].id}" if is_full else None,
    )


def _position(after: str | None, since: Micros | None) -> tuple[Micros, int]:
    if after is None:
        return (since or 0) - 1, INT_MAX
    match = _POSITION.fullmatch(after)
    if match is None:
        raise Malformed("after is not the `next` of a page; leave it out to begin at the start")
    return int(match[1]), int(match[2])


def _shown_entry(entry: audit.AuditEntry | audit.ChainedEntry) -> ShownEntry:
    return ShownEntry(
        id=entry.id,
        at=format_time(entry.at),
        who=entry.who,
        address=entry.address,
        action=entry.action,
        target=entry.target,
        detail=entry.detail,
        hash=entry.hash,
    )


def _require_key(key: Key) -> None:
    """Refuse callers without a key: a key stays valid after the server begins to require keys."""
    if key is LOCAL:
        raise Unauthorized(
            "keys are made and revoked with an admin's key; the first one is made with "
            "`penstock keys create NAME --role admin`"
        )


def _shown(key: ListedKey) -> ShownKey:
    return ShownKey(
        key.id,
        key.name,
        key.role,
        key.namespace,
        format_time(key.created_at),
        time_or_none(key.revoked_at),
        key.requests_per_second,
        key.bytes_per_second,
    )


async def show_key(context: RequestContext) -> ShownCaller:
    """Show the key of this request, and its rights."""
    key = context.key
    return ShownCaller(None if key is LOCAL else key.name, key.role, key.namespace)


ROUTES = (
    Route(ASYNC, "GET", f"{BASE}/keys", list_keys, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{BASE}/keys", create_key, Reach.EVERYTHING, KeyRole.ADMIN, status=201),
    Route(ASYNC, "PUT", f"{BASE}/keys/{{name}}/rates", limit_key, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "DELETE", f"{BASE}/keys/{{name}}", revoke_key, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(READ, "GET", f"{BASE}/audit", list_audit, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(READ, "GET", f"{BASE}/audit/export", export_audit, Reach.EVERYTHING, KeyRole.ADMIN),
    Route(ASYNC, "GET", f"{BASE}/key", show_key, Reach.SHARED),
)
