"""Authentication: the key of a request, or the rights of a caller without a key."""

import math
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from penstock import signing
from penstock.access.caller import Proxies, parse_address
from penstock.access.keys import LOCAL, Key, Keys
from penstock.access.wrong_keys import WrongKeys
from penstock.errors import Busy, Forbidden, Malformed, Unauthorized
from penstock.server.responses import Header, Scope

SENDER = signing.SENDER.lower().encode()
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORWARDED_FOR = b"x-forwarded-for"
# A proxy adds at least one of these, unless its configuration removes them.
_FORWARDING = frozenset(
    {
        _FORWARDED_FOR,
        b"forwarded",
        b"via",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-forwarded-server",
        b"x-original-host",
        b"x-real-ip",
    }
)
_MAKE_A_KEY = "an administrator makes one with `penstock keys create NAME --role ROLE`"


class Heading(NamedTuple):
    """The request headers that the server uses."""

    authorization: bytes | None = None
    length: bytes | None = None
    encoding: bytes | None = None
    origin: bytes | None = None
    host: bytes | None = None
    last_event_id: bytes | None = None
    traceparent: bytes | None = None
    sender: bytes | None = None
    forwarded_for: bytes | None = None
    is_forwarded: bool = False
    is_chunked: bool = False

    @property
    def body_bytes(self) -> int:
        """The announced size of the body; 0 if none was announced."""
        return int(self.length) if self.length is not None and self.length.isdigit() else 0


NO_HEADING = Heading()


def heading(headers: Iterable[Header]) -> Heading:
    """Return the headers that the server uses; ASGI gives their names in lower case."""
    authorization = length = encoding = origin = host = last_event_id = None
    traceparent = sender = forwarded_for = None
    is_forwarded = is_chunked = False
    for name, value in headers:
        if name == b"authorization":
            authorization = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding":
            encoding = value
        elif name == b"origin":
            origin = value
        elif name == b"host":
            host = value
        elif name == b"last-event-id":
            last_event_id = value
        elif name == b"traceparent":
            traceparent = value
        elif name == SENDER:
            sender = value
        elif name == b"transfer-encoding":
            is_chunked = True
        elif name in _FORWARDING:
            is_forwarded = True
            if name == _FORWARDED_FOR:
                forwarded_for = value if forwarded_for is None else forwarded_for + b"," + value
    return Heading(
        authorization, length, encoding, origin, host, last_event_id, traceparent, sender,
        forwarded_for, is_forwarded, is_chunked,
    )  # fmt: skip


def count_hosts(scope: Scope) -> int:
    """Count the Host headers of a request; HTTP/1.0 may leave the header out."""
    count = sum(1 for name, _ in scope["headers"] if name == b"host")
    return count or int(scope["http_version"] == "1.0")


def check_host(scope: Scope) -> None:
    """Refuse a request without exactly one Host, as HTTP/1.1 demands.

    With two, a proxy could check one and this server the other.
    """
    count = count_hosts(scope)
    if count != 1:
        raise Malformed(
            f"the request has {count} Host headers; send one Host header with the name of this "
            "server"
        )


class Sender(NamedTuple):
    """The network side of a request: the program that connected, and the caller behind it."""

    peer: str
    caller: str
    http_version: str = "1.1"


NO_SENDER = Sender("", "")


def sender_of(scope: Scope, head: Heading, proxies: Proxies) -> Sender:
    """Return who connected, and the caller that configured proxies name."""
    client = scope.get("client")
    peer = str(client[0]) if client else ""
    caller = peer
    if head.forwarded_for is not None and proxies.include(peer):
        caller = proxies.caller_behind(peer, head.forwarded_for.decode("latin-1"))
    return Sender(peer, caller, scope["http_version"])


def _token(head: Heading) -> str:
    """Return the token of a request, or raise Unauthorized."""
    if head.authorization is None:
        raise Unauthorized(f"a key is needed: send `Authorization: Bearer KEY`; {_MAKE_A_KEY}")
    return bearer_token(head.authorization)


def bearer_token(authorization: bytes) -> str:
    """Return the token of an `Authorization: Bearer` header."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized("the Authorization header is not `Bearer KEY`; send it like that")
    return token.strip().decode("latin-1")


class Gate:
    """The rule that decides which requests need a key.

    Once a key exists, every request needs one, on every address. Before that, one without a key
    is served if the setting `auth` opens a server on loopback, and only to callers on this
    machine; or, beyond loopback, if the setting `insecure` opens the server to all.
    """

    def __init__(
        self,
        keys: Keys,
        wrong_keys: WrongKeys,
        *,
        is_required: bool,
        local_only: bool,
        hosts: str | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._keys = keys
        self._wrong_keys = wrong_keys
        self._is_required = is_required
        self._local_only = local_only
        self._hosts = frozenset(name.strip().lower() for name in (hosts or "").split(","))
        self.proxies = proxies or Proxies()

    def at_once(self, method: str, head: Heading, sender: Sender) -> Key | None:
        """Return the key of a call, or None if the database must be asked."""
        needed = True if self._is_required else self._keys.were_made_lately()
        if needed is None:
            return None
        if not needed:
            return self._without_key(method, head, sender)
        return self._keys.remembered(_token(head))

    def ask(self, method: str, head: Heading, sender: Sender) -> Key:
        """Return the key of a call, and ask the database for it."""
        if not self._is_required and not self._keys.were_made():
            return self._without_key(method, head, sender)
        token = _token(head)
        try:
            return self._keys.authenticate(token)
        except Unauthorized:
            self._wrong_keys.note(sender.caller)
            raise

    def _without_key(self, method: str, head: Heading, sender: Sender) -> Key:
        """Let a caller on this machine act as an administrator, or refuse.

        There are no keys, so one that is sent is ignored: clients are set up before servers.
        """
        if self._local_only:
            self._check_proxy(head, sender)
            if head.host is not None:
                self._check_host(head.host)
        if method not in _SAFE:
            _check_origin(head)
        return LOCAL

    def _check_proxy(self, head: Heading, sender: Sender) -> None:
        """Refuse a call that a proxy passed on for a caller who may be anywhere.

        A proxy on this machine connects from loopback for every caller.
        """
        if self.proxies.include(sender.peer):
            caller = parse_address(sender.caller)
            if head.forwarded_for is not None and caller is not None and caller.is_loopback:
                return
            reason = f"the caller {sender.caller} behind the proxy is not on this machine"
            if head.forwarded_for is None:
                reason = "the proxy named no caller in X-Forwarded-For"
        elif head.is_forwarded:
            reason = "a proxy that the setting `proxies` does not list passed this call on"
        elif sender.http_version == "1.0":
            # As nginx and others call by default, without a header that would tell.
            reason = "this call came over HTTP/1.0, as proxies call"
        else:
            return
        raise Unauthorized(f"a key is needed, because {reason}; {_MAKE_A_KEY}")

    def _check_host(self, host: bytes) -> None:
        """Refuse a foreign Host: the DNS name of another site may point to this machine."""
        if leads_here(host):
            return
        name = _name_of(host)
        if name not in self._hosts:
            raise Forbidden(
                f"a call without a key must name localhost or 127.0.0.1, not {name[:255]!r}: send "
                f"a key; {_MAKE_A_KEY}"
            )


def _check_origin(head: Heading) -> None:
    """Refuse a foreign Origin: another site must not write through a local user's browser."""
    if head.origin is None or head.host is None:
        return
    if head.origin.partition(b"://")[2] != head.host:
        raise Forbidden(
            "a page from another site tried to write without a key; send one, or call from here"
        )


@lru_cache(maxsize=128)
def leads_here(host: bytes) -> bool:
    """Return whether a Host header has a name or address that only this machine can have."""
    name = _name_of(host)
    return name.endswith(".localhost") or name == "" or is_loopback(name)


def _name_of(host: bytes) -> str:
    """Return a Host header without its port, in lower case."""
    name, colon, port = host.decode("latin-1").lower().rpartition(":")
    if not colon or not port.isdigit():
        name = host.decode("latin-1").lower()
    return name.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on this address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# An idle key may send as much at once as its rate allows in this many seconds.
BURST_SECONDS = 2
# Buckets of keys that were revoked, or are full again, are dropped once there are more.
_BUCKETS_MAX = 10_000


class _Bucket:
    """The token bucket of a key. It fills at the key's rate; one request may overdraw it."""

    __slots__ = ("level", "rate", "since")

    def __init__(self, rate: int, now: float) -> None:
        self.rate = rate
        self.level = float(rate * BURST_SECONDS)
        self.since = now

    def fill(self, now: float) -> None:
        self.level = min(self.rate * BURST_SECONDS, self.level + (now - self.since) * self.rate)
        self.since = now

    @property
    def seconds_left(self) -> int:
        """Return the seconds until the bucket holds a token; 0 if it does now."""
        return 0 if self.level > 0 else max(1, math.ceil(-self.level / self.rate))


class Rates:
    """The rates of all keys of one server. Used by its event loop, and by threads of uploads."""

    def __init__(
        self,
        requests_per_second: int,
        bytes_per_second: int,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests_per_second = requests_per_second
        self._bytes_per_second = bytes_per_second
        self._seconds = seconds
        self._requests: dict[str, _Bucket] = {}
        self._bytes: dict[str, _Bucket] = {}

    def count_request(self, key: Key) -> None:
        """Count a request of a key, or raise Busy if the key sends too many or too much."""
        rate = _rate(key.requests_per_second, self._requests_per_second)
        bytes_rate = _rate(key.bytes_per_second, self._bytes_per_second)
        if not key.id or not (rate or bytes_rate):
            return
        now = self._seconds()
        if bytes_rate:
            self._check(self._filled(self._bytes, key, bytes_rate, now), key, "bytes")
        if rate:
            bucket = self._filled(self._requests, key, rate, now)
            self._check(bucket, key, "requests")
            bucket.level -= 1

    def count_bytes(self, key: Key, size: int) -> None:
        """Count the bytes that a key has sent; an excess delays its next request."""
        rate = _rate(key.bytes_per_second, self._bytes_per_second)
        if key.id and rate:
            self._filled(self._bytes, key, rate, self._seconds()).level -= size

    def _filled(self, buckets: dict[str, _Bucket], key: Key, rate: int, now: float) -> _Bucket:
        bucket = buckets.get(key.id)
        if bucket is None or bucket.rate != rate:
            if len(buckets) >= _BUCKETS_MAX:
                buckets.clear()
            bucket = buckets[key.id] = _Bucket(rate, now)
        bucket.fill(now)
        return bucket

    def _check(self, bucket: _Bucket, key: Key, unit: str) -> None:
        if seconds := bucket.seconds_left:
            raise Busy(
                f"key {key.name!r} sends more than {bucket.rate} {unit} per second; "
                f"wait {seconds} s, or ask an administrator for a higher rate",
                retry_after_seconds=seconds,
            )


def _rate(own: int | None, default: int) -> int:
    return default if own is None else own
