"""API keys: created, shown once, stored as digests, revoked."""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

from msgspec import Struct, structs

from penstock import ids
from penstock.access import audit
from penstock.clock import Clock, Micros
from penstock.db import Database, Transaction
from penstock.db.database import Row
from penstock.errors import Conflict, Forbidden, Invalid, NotFound, Unauthorized
from penstock.schema.admin import KeyRole

TOKEN_PREFIX = "pk_"
TOKEN_BYTES = 32
NAME_LENGTH_MAX = 255
RATE_MAX = 2**53
CACHE_SECONDS = 5.0
ABSENCE_SECONDS = 1.0
CACHE_SIZE_MAX = 10_000


class Key(Struct, frozen=True):
    """A key: its name, its role and, for some, its only namespace."""

    id: str
    name: str
    role: KeyRole
    namespace: str | None
    requests_per_second: int | None = None  # None: the server's default; 0: unlimited
    bytes_per_second: int | None = None

    def require_role(self, needed: KeyRole) -> None:
        """Raise Forbidden if the call needs a higher role."""
        if not self.role.covers(needed):
            role = f"an {needed}" if needed == KeyRole.ADMIN else f"a {needed}"
            raise Forbidden(
                f"key {self.name!r} is a {self.role}; this call needs {role}: use another key"
            )

    def require_namespace(self, namespace: str) -> None:
        """Raise Forbidden for a call outside the key's namespace."""
        if self.namespace is not None and self.namespace != namespace:
            raise Forbidden(
                f"key {self.name!r} is only for namespace {self.namespace!r}, "
                f"not for {namespace!r}: use another key"
            )

    def require_own(self, namespace: str) -> None:
        """Raise for a thing outside the key's namespace, without naming its namespace."""
        if self.namespace is not None and self.namespace != namespace:
            raise Forbidden(
                f"key {self.name!r} is only for namespace {self.namespace!r}, and this belongs to "
                "another: use another key"
            )

    def require_every_namespace(self) -> None:
        """Raise Forbidden for a call over all namespaces if the key has one."""
        if self.namespace is not None:
            raise Forbidden(
                f"key {self.name!r} is only for namespace {self.namespace!r}, and this call "
                "spans namespaces: use a key without one"
            )


LOCAL = Key(id="", name=audit.LOCAL, role=KeyRole.ADMIN, namespace=None)


class Rate(Struct, frozen=True):
    """Requests and bytes per second of a key. None: the server's default; 0: unlimited."""

    requests_per_second: int | None = None
    bytes_per_second: int | None = None

    def __str__(self) -> str:
        both = ((self.requests_per_second, "requests"), (self.bytes_per_second, "bytes"))
        return ", ".join(
            f"{'no limit of' if rate == 0 else rate} {unit} per second"
            for rate, unit in both
            if rate is not None
        )

    def check(self) -> None:
        """Raise Invalid for a value that is not a rate."""
        for rate in (self.requests_per_second, self.bytes_per_second):
            if rate is not None and not 0 <= rate <= RATE_MAX:
                raise Invalid(
                    f"a rate is a whole number from 0, which is without limit, to {RATE_MAX}, "
                    f"not {rate}"
                )


DEFAULT_RATE = Rate()


class ListedKey(Struct, frozen=True):
    """A key in a list: everything but its secret."""

    id: str
    name: str
    role: KeyRole
    namespace: str | None
    created_at: Micros
    revoked_at: Micros | None
    requests_per_second: int | None = None
    bytes_per_second: int | None = None

    @property
    def rate(self) -> Rate:
        """The rate of the key."""
        return Rate(self.requests_per_second, self.bytes_per_second)


class NewKey(Struct, frozen=True):
    """A new key; its token is not stored and cannot be shown again."""

    key: ListedKey
    token: str


class Keys:
    """The keys of a database, with a cache.

    A key that another process revokes works for at most CACHE_SECONDS more. The first key that
    another process creates takes effect within ABSENCE_SECONDS.
    """

    def __init__(
        self, database: Database, *, clock: Clock, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._clock = clock
        self._seconds = seconds
        self._seen: dict[str, tuple[Key, float]] = {}
        self._were_made = False
        self._absent_until = float("-inf")
        self._lock = threading.Lock()

    def create(
        self,
        name: str,
        role: KeyRole,
        *,
        namespace: str | None = None,
        rate: Rate = DEFAULT_RATE,
        who: str,
    ) -> NewKey:
        """Create a key and record who created it."""
        _check_name(name)
        rate.check()
        if namespace is not None and not namespace.strip():
            raise Invalid("the key's namespace is empty; name one, or leave it out")
        token = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        at = self._clock()
        key = ListedKey(
            ids.new_id(),
            name,
            role,
            namespace,
            at,
            None,
            rate.requests_per_second,
            rate.bytes_per_second,
        )
        with self._database.write() as tx:
            if _live_key(tx, name) is not None:
                raise Conflict(f"there is a key named {name!r} already; revoke it or choose a name")
            tx.execute(
                "add_key",
                id=key.id,
                name=name,
                role=str(role),
                namespace=namespace,
                digest=digest_of(token),
                created_at=at,
                requests_per_second=rate.requests_per_second,
                bytes_per_second=rate.bytes_per_second,
            )
            detail = f"role {role}" + (f", namespace {namespace}" if namespace else "")
            detail += f", {rate}" if rate != DEFAULT_RATE else ""
            audit.append(tx, at, who, "key create", name, detail)
        self._were_made = True
        return NewKey(key, token)

    def limit(self, name: str, rate: Rate, *, who: str) -> ListedKey:
        """Set both rates of a key and record who set them."""
        rate.check()
        at = self._clock()
        with self._database.write() as tx:
            key = _require_live_key(tx, name)
            tx.execute(
                "limit_key",
                id=key.id,
                requests_per_second=rate.requests_per_second,
                bytes_per_second=rate.bytes_per_second,
            )
            audit.append(tx, at, who, "key limit", name, str(rate) or "the server's default")
        self._forget()
        return structs.replace(
            key,
            requests_per_second=rate.requests_per_second,
            bytes_per_second=rate.bytes_per_second,
        )

    def revoke(self, name: str, *, who: str) -> ListedKey:
        """Revoke a key and record who revoked it."""
        at = self._clock()
        with self._database.write() as tx:
            key = _require_live_key(tx, name)
            tx.execute("revoke_key", id=key.id, at=at)
            audit.append(tx, at, who, "key revoke", name)
        self._forget()
        return structs.replace(key, revoked_at=at)

    def _forget(self) -> None:
        with self._lock:
            self._seen.clear()

    def listed(self, *, revoked: bool = False) -> list[ListedKey]:
        """Return the valid keys, or all keys ever created."""
        with self._database.read() as tx:
            return _listed(tx.fetch("keys_all" if revoked else "keys_live"))

    def were_made_lately(self) -> bool | None:
        """Return whether any key was ever created; None if only the database knows."""
        if self._were_made:
            return True
        return False if self._seconds() < self._absent_until else None

    def were_made(self) -> bool:
        """Return whether any key was ever created.

        A revoked key counts: its loss must not open the server.
        """
        if not self._were_made:
            absent_until = self._seconds() + ABSENCE_SECONDS
            with self._database.read() as tx:
                self._were_made = tx.fetch_one("keys_were_made") is not None
            self._absent_until = absent_until
        return self._were_made

    def remembered(self, token: str) -> Key | None:
        """Return the cached key of a token; never query the database."""
        known = self._seen.get(digest_of(token))
        if known is None or known[1] < self._seconds():
            return None
        return known[0]

    def authenticate(self, token: str) -> Key:
        """Return the key of a token."""
        known = self.remembered(token)
        if known is not None:
            return known
        digest = digest_of(token)
        fresh_until = self._seconds() + CACHE_SECONDS
        with self._database.read() as tx:
            row = tx.fetch_one("key_by_digest", digest=digest)
        if row is None or not hmac.compare_digest(row[4], digest):
            raise Unauthorized("the key is unknown or was revoked; ask an administrator for one")
        key = Key(row[0], row[1], KeyRole(row[2]), row[3], row[5], row[6])
        with self._lock:
            if len(self._seen) >= CACHE_SIZE_MAX:
                self._seen.clear()
            self._seen[digest] = (key, fresh_until)
        return key


def digest_of(token: str) -> str:
    """Return the stored digest of a token. Tokens are random, so a plain digest is safe."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _require_live_key(tx: Transaction, name: str) -> ListedKey:
    key = _live_key(tx, name)
    if key is None:
        raise NotFound(f"there is no live key named {name!r}; list them to see which are")
    return key


def _live_key(tx: Transaction, name: str) -> ListedKey | None:
    found = _listed(tx.fetch("key_by_name", name=name))
    return found[0] if found else None


def _listed(rows: list[Row]) -> list[ListedKey]:
    return [ListedKey(id, name, KeyRole(role), *rest) for id, name, role, *rest in rows]


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > NAME_LENGTH_MAX or not name.isprintable():
        raise Invalid(
            f"a key's name is 1 to {NAME_LENGTH_MAX} printable characters, for example etl-prod"
        )
    if name in ids.DOTS:
        raise Invalid(f"a key cannot be named {name!r}, which means a folder in a path")
    if name == audit.LOCAL:
        raise Invalid(f"{name!r} is what calls without a key are recorded as; choose another name")
