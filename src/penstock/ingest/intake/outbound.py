"""An HTTP client that connects only to public addresses and listed places.

The check happens at connect: this module resolves the host, checks every address, and connects to
a checked address. So the check also covers redirects and names that change their address.
"""

import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, BinaryIO

import httpcore
import httpx

from penstock.errors import Invalid, NotFound
from penstock.ingest.intake.places import (
    Places,
    check_url,
    file_path,
    is_public,
    not_allowed,
    redact_url,
)
from penstock.outgoing import certificates

__all__ = [
    "Places",
    "Resolve",
    "check_url",
    "open_client",
    "open_file",
    "redact_url",
    "resolve_host",
]

Resolve = Callable[[str, int], Sequence[str]]

REDIRECTS_MAX = 5
ADDRESSES_TRIED_MAX = 4
CONNECTIONS_MAX = 64
# A server that sends fewer bytes in this time of waiting has stalled.
STALL_SECONDS = 60.0
STALL_BYTES = 64 * 1024

_KINDS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.PoolTimeout, httpx.PoolTimeout),
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.TimeoutException, httpx.TimeoutException),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
    (httpcore.NetworkError, httpx.NetworkError),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
    (httpcore.ProtocolError, httpx.RemoteProtocolError),
    (httpcore.UnsupportedProtocol, httpx.UnsupportedProtocol),
)


def resolve_host(host: str, port: int) -> list[str]:
    """Return every address of a host, in the system's order of preference."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in addresses))


def open_client(
    places: Places,
    *,
    timeout_seconds: float = 30.0,
    stall_seconds: float = STALL_SECONDS,
    resolve: Resolve = resolve_host,
    tls: ssl.SSLContext | None = None,
) -> httpx.Client:
    """Open a client that follows redirects to allowed places only."""
    return httpx.Client(
        transport=_PlacesTransport(places, resolve, tls, stall_seconds),
        timeout=timeout_seconds,
        follow_redirects=True,
        max_redirects=REDIRECTS_MAX,
        trust_env=False,
        headers={"accept-encoding": "identity", "user-agent": "penstock"},
        # Depositors share a client: a cookie of one server must not be sent in another deposit.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def open_file(url: str, places: Places) -> BinaryIO:
    """Open the regular file of a file URL in a listed place."""
    check_url(url, places)
    # The resolved path has no symbolic links. It is checked again because a link may have changed
    # since the first check. Each folder is opened without following links, so that a link that is
    # created in between is an error.
    path = file_path(url)
    if not places.holds(path):
        raise not_allowed(url, "it leads out of the listed places")
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in path.parts[1:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            below = os.open(name, flags, dir_fd=folder)
            os.close(folder)
            folder = below
        # Without O_NONBLOCK, opening a FIFO would wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.open(path.name or ".", flags, dir_fd=folder)
    except OSError as error:
        raise NotFound(
            f"{redact_url(url)} cannot be read: {error.strerror}; check the path"
        ) from None
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Invalid(f"{redact_url(url)} is not a regular file; submit the files one by one")
    return os.fdopen(file, "rb")


class _NotPublic(Exception):
    """A host has an address that is not public."""


class _Stream(httpcore.NetworkStream):
    """A connection that times out when the server sends too slowly."""

    def __init__(self, inner: httpcore.NetworkStream, stall_seconds: float) -> None:
        self._inner = inner
        self._stall_seconds = stall_seconds
        self._waited = 0.0
        self._received = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        began = time.monotonic()
        data = self._inner.read(max_bytes, timeout)
        self._waited += time.monotonic() - began
        self._received += len(data)
        if self._waited > self._stall_seconds:
            if data and self._received < STALL_BYTES:
                raise httpcore.ReadTimeout(
                    f"only {self._received} bytes came in {self._waited:.0f} seconds"
                )
            self._waited, self._received = 0.0, 0
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._waited, self._received = 0.0, 0
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, timeout)
        return _Stream(inner, self._stall_seconds)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Connector(httpcore.NetworkBackend):
    """A connector that resolves a host once, checks its addresses and connects to one of them."""

    def __init__(self, resolve: Resolve, *, public_only: bool, stall_seconds: float) -> None:
        self._resolve = resolve
        self._public_only = public_only
        self._stall_seconds = stall_seconds
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the host {host} was not found: {error}") from error
        if self._public_only and not all(map(is_public, addresses)):
            raise _NotPublic(host)
        failure: Exception = httpcore.ConnectError(f"the host {host} has no address")
        for address in addresses[:ADDRESSES_TRIED_MAX]:
            try:
                stream = self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self._stall_seconds)
        raise failure


class _Body(httpx.SyncByteStream):
    def __init__(self, chunks: Iterable[bytes], close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._chunks

    def close(self) -> None:
        self._close()


class _PlacesTransport(httpx.BaseTransport):
    """A transport with separate pools for listed places and for all other URLs.

    So a connection to a listed place never serves another URL.
    """

    def __init__(
        self, places: Places, resolve: Resolve, tls: ssl.SSLContext | None, stall_seconds: float
    ) -> None:
        self._places = places
        self._resolve = resolve
        self._tls = tls
        self._stall_seconds = stall_seconds
        self._pools: dict[tuple[str, bool], httpcore.ConnectionPool] = {}
        self._opening = threading.Lock()

    def _pool(self, url: httpx.URL) -> httpcore.ConnectionPool:
        public_only = not self._places.covers(str(url))
        with self._opening:
            pool = self._pools.get((url.scheme, public_only))
            if pool is None:
                pool = self._pools[url.scheme, public_only] = httpcore.ConnectionPool(
                    ssl_context=self._tls or certificates(str(url), trust_env=False),
                    max_connections=CONNECTIONS_MAX,
                    max_keepalive_connections=8,
                    keepalive_expiry=5.0,
                    network_backend=_Connector(
                        self._resolve, public_only=public_only, stall_seconds=self._stall_seconds
                    ),
                )
            return pool

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = str(request.url)
        check_url(url, self._places)
        if request.url.scheme not in ("http", "https"):
            raise Invalid(
                f"{redact_url(url)} may not be fetched: a redirect goes to http or https only"
            )
        pool = self._pool(request.url)
        assert isinstance(request.stream, httpx.SyncByteStream)
        core_request = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            with _as_httpx():
                answer = pool.handle_request(core_request)
        except _NotPublic as error:
            raise not_allowed(url, f"the host {error} is not at a public address") from None
        assert isinstance(answer.stream, Iterable)
        response = httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream, answer.close),
            extensions=answer.extensions,
        )
        return _redirect(request, response) if response.has_redirect_location else response

    def close(self) -> None:
        with self._opening:
            for pool in self._pools.values():
                pool.close()


def _redirect(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    """Drop the body of a redirect, which the client would read into memory."""
    response.close()
    location = response.headers["location"]
    try:
        target = request.url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise Invalid(
            f"{redact_url(str(request.url))} redirects to what is no URL: {error}"
        ) from None
    if request.url.scheme == "https" and target.scheme == "http":
        raise Invalid(
            f"{redact_url(str(request.url))} redirects from https to http "
            f"({redact_url(str(target))}); use the final URL, if plain http is meant"
        )
    # With an empty stream a redirect that is not followed can be read like any answer.
    empty = httpx.ByteStream(b"")
    return httpx.Response(response.status_code, headers={"location": location}, stream=empty)


@contextmanager
def _as_httpx() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        for kind, mapped in _KINDS:
            if isinstance(error, kind):
                raise mapped(str(error)) from error
        raise
