"""Keys and the audit log, for administrators."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from penstock.access import audit
from penstock.access.keys import LOCAL, Key, ListedKey, Role
from penstock.api.bodies import Body
from penstock.api.calls import Call
from penstock.api.parameters import Paging, Query, Time, moment
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog.shapes import Shape, time_or_none
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import Unauthorized


class KeyBody(Body, frozen=True):
    """The key to make."""

    name: str
    role: Role
    namespace: str | None = None


class KeysQuery(Query, frozen=True):
    """Which keys."""

    revoked: bool = False


class AuditQuery(Paging, frozen=True):
    """Of whom, what was done, and since when."""

    who: str | None = None
    action: Annotated[str | None, Meta(description="a part of what was done, as `hold`")] = None
    since: Time | None = None


class ShownKey(Shape, frozen=True):
    """A key without its secret."""

    id: str
    name: str
    role: Role
    namespace: str | None
    created_at: str
    revoked_at: str | None


class ShownKeys(Shape, frozen=True):
    """The keys there are."""

    keys: Sequence[ShownKey]


class CreatedKey(Shape, frozen=True):
    """A new key with its token, which is shown this once."""

    key: ShownKey
    token: str


class ShownEntry(Shape, frozen=True):
    """Who did what to what, and when."""

    at: str
    who: str
    action: str
    target: str
    detail: str


class AuditLog(Shape, frozen=True):
    """A part of the audit log."""

    entries: Sequence[ShownEntry]


async def create_key(call: Call, body: KeyBody) -> CreatedKey:
    """Make a key. Its token is in the answer and nowhere else. Needs an admin's key."""
    _require_key(call.key)
    keys, who = call.door.plane.keys, call.key.name
    made = await call.door.in_thread(
        keys.create, body.name, body.role, namespace=body.namespace, who=who
    )
    return CreatedKey(_shown(made.key), made.token)


async def list_keys(call: Call, query: KeysQuery) -> ShownKeys:
    """List the keys that work, or with `revoked=true` every key there ever was."""
    keys = call.door.plane.keys
    found = await call.door.in_thread(keys.listed, revoked=query.revoked)
    return ShownKeys([_shown(key) for key in found])


async def revoke_key(call: Call, name: str) -> ShownKey:
    """Let a key work no more, within seconds. Needs an admin's key."""
    _require_key(call.key)
    return _shown(await call.door.in_thread(call.door.plane.keys.revoke, name, who=call.key.name))


def list_audit(tx: Transaction, query: AuditQuery) -> AuditLog:
    """List what administrators did, newest first."""
    since = moment(query.since, "since")
    found = audit.entries(
        tx, query.limit, query.offset, who=query.who, action=query.action, since=since
    )
    return AuditLog(
        [ShownEntry(format_time(e.at), e.who, e.action, e.target, e.detail) for e in found]
    )


def _require_key(key: Key) -> None:
    """A key outlives a server that needs none, so whoever makes one must have one."""
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
    )


ROUTES = (
    Route("GET", f"{BASE}/keys", list_keys, Reach.EVERYTHING, Role.ADMIN),
    Route("POST", f"{BASE}/keys", create_key, Reach.EVERYTHING, Role.ADMIN, status=201),
    Route("DELETE", f"{BASE}/keys/{{name}}", revoke_key, Reach.EVERYTHING, Role.ADMIN),
    Route("GET", f"{BASE}/audit", list_audit, Reach.EVERYTHING, Role.ADMIN),
)
