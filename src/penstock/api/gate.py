"""Who is asking, and whether they may."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from penstock import signing
from penstock.access.keys import LOCAL, Key, Keys
from penstock.api.answers import Header
from penstock.errors import Forbidden, Unauthorized

SENDER = signing.SENDER.lower().encode()
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Heading(NamedTuple):
    """The request headers that matter here."""

    authorization: bytes | None = None
    length: bytes | None = None
    encoding: bytes | None = None
    origin: bytes | None = None
    host: bytes | None = None
    last_event_id: bytes | None = None
    traceparent: bytes | None = None
    sender: bytes | None = None


NO_HEADING = Heading()


def heading(headers: Iterable[Header]) -> Heading:
    """Pick the headers that matter; ASGI gives their names in lower case."""
    authorization = length = encoding = origin = host = last_event_id = None
    traceparent = sender = None
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
    return Heading(
        authorization, length, encoding, origin, host, last_event_id, traceparent, sender
    )


def bearer_token(authorization: bytes) -> str:
    """The token of an `Authorization: Bearer` header."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized("the Authorization header is not `Bearer KEY`; send it like that")
    return token.strip().decode("latin-1")


class Gate:
    """Finds out who is asking. Without `keys_needed` a call without a key is a local one.

    Where only this machine is served, such a call must name this machine, or one of `hosts`.
    """

    def __init__(
        self, keys: Keys, *, keys_needed: bool, local_only: bool, hosts: str | None = None
    ) -> None:
        self._keys = keys
        self.keys_needed = keys_needed
        self._local_only = local_only
        self._hosts = frozenset(name.strip().lower() for name in (hosts or "").split(","))

    def at_once(self, method: str, head: Heading) -> Key | None:
        """Who is asking, if no database must be asked for it."""
        if head.authorization is not None:
            return self._keys.remembered(bearer_token(head.authorization))
        return self._without_key(method, head)

    def _without_key(self, method: str, head: Heading) -> Key:
        if self.keys_needed:
            raise Unauthorized(
                "a key is needed: send `Authorization: Bearer KEY`; an administrator makes one "
                "with `penstock keys create`"
            )
        if self._local_only and head.host is not None:
            self._check_host(head.host)
        if method not in _SAFE:
            _check_origin(head)
        return LOCAL

    def ask(self, head: Heading, method: str = "GET") -> Key:
        """Who is asking, from the database.

        Where there are no keys, a client that sends one all the same is as good as without.
        """
        try:
            return self._keys.authenticate(bearer_token(head.authorization or b""))
        except Unauthorized:
            if self.keys_needed or self._keys.exist():
                raise
            return self._without_key(method, head)

    def _check_host(self, host: bytes) -> None:
        """A page of another site may have its own name lead here: then its origin is ours."""
        if leads_here(host):
            return
        name = _name_of(host)
        if name not in self._hosts:
            raise Forbidden(
                f"without a key this server is called localhost, not {name[:255]!r}: call it by "
                "that name or 127.0.0.1, send a key, or list the name in the setting `hosts` "
                "(PENSTOCK_HOSTS)"
            )


def _check_origin(head: Heading) -> None:
    """A page of another site must not write through the browser of somebody on this machine."""
    if head.origin is None or head.host is None:
        return
    if head.origin.partition(b"://")[2] != head.host:
        raise Forbidden(
            "a page from another site tried to write without a key; send one, or call from here"
        )


@lru_cache(maxsize=128)
def leads_here(host: bytes) -> bool:
    """Whether a Host header has a name or address that only this machine itself can have."""
    name = _name_of(host)
    return name.endswith(".localhost") or name == "" or is_loopback(name)


def _name_of(host: bytes) -> str:
    """A Host header without its port, as names are compared."""
    name, colon, port = host.decode("latin-1").lower().rpartition(":")
    if not colon or not port.isdigit():
        name = host.decode("latin-1").lower()
    return name.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
