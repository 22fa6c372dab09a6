"""The HTTP server: listens, serves until a signal stops it, and finishes running requests."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, TracebackType
from typing import Self, cast

import uvicorn

from penstock import __version__
from penstock.access.caller import Proxies
from penstock.clock import Clock, system_clock
from penstock.config import Settings, mask_url
from penstock.errors import Conflict, Invalid
from penstock.plane import Plane
from penstock.server.app import Api
from penstock.server.auth import is_loopback
from penstock.server.connections import (
    KEEP_ALIVE_SECONDS,
    ConnectionLimits,
    Connections,
    DescriptorWatch,
    LimitedProtocol,
    connections_possible,
    raise_descriptor_limit,
)
from penstock.server.content import Budget
from penstock.server.metrics import Metrics
from penstock.server.pages import Site
from penstock.server.routes.table import ROUTES
from penstock.subscribers.own_backend import follow_settings
from penstock.telemetry import tracing
from penstock.telemetry.logs import set_up_logs
from penstock.web.files import Files

BACKLOG = 2048
# A caller that never finishes its request must not keep a stopping server alive.
STOP_SECONDS_MAX = 30
# Rare collections: with the default, most of the slowest answers are collections.
_GC_THRESHOLD = (50_000, 20, 100)

# With the default of 5 ms, a thread that returns from the database waits that long for the GIL.
_SWITCH_SECONDS = 0.0005

_log = logging.getLogger(__name__)


def serve(settings: Settings) -> None:
    """Run a server until SIGTERM or SIGINT, then finish the running requests."""
    set_up_logs(settings)
    raise_descriptor_limit()
    with (
        HttpServer.open(settings) as server,
        tracing.on(settings.traces, server.plane.identity),
    ):
        plane = server.plane
        follow_settings(plane.catalog, settings, plane.secrets, own_url=server.url)
        tune_interpreter()
        server.run()
    _log.info("stopped: everything received is committed and answered")


def tune_interpreter() -> None:
    """Tune the interpreter for a process that only serves."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)
    sys.setswitchinterval(_SWITCH_SECONDS)


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits of the settings, with no more connections than descriptors."""
    return ConnectionLimits(
        settings.header_bytes_max,
        settings.header_count_max,
        settings.first_request_seconds,
        settings.header_seconds,
        settings.silence_seconds,
        connections_possible(settings.connections_max),
        settings.connections_per_address_max,
    )


class HttpServer:
    """One server on one plane. It listens when it is created.

    `run` serves in the calling thread until `stop`, which any thread may call; in the main thread
    also until SIGTERM or SIGINT.
    """

    def __init__(self, plane: Plane, api: Api, listener: socket.socket) -> None:
        self._plane = plane
        self._api = api
        self._listener = listener
        host, port = listener.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        taken = frozenset(route.path.split("/")[1] for route in ROUTES)
        self.connections = Connections(
            connection_limits(plane.settings), Proxies(plane.settings.proxies).include
        )
        config = uvicorn.Config(
            Site(api, taken, Files()),
            http=cast(type[asyncio.Protocol], partial(LimitedProtocol, self.connections)),
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
        )
        self._server = _Uvicorn(config, self.stop, self.connections)

    @classmethod
    def open(cls, settings: Settings, clock: Clock = system_clock) -> Self:
        """Open the plane and listen. Refuse to listen beyond this machine without keys."""
        metrics = Metrics()
        with contextlib.ExitStack() as opened:
            plane = opened.enter_context(Plane.open(settings, clock, metrics.committed))
            check_reach(plane)
            listener = opened.enter_context(listen(settings.host, settings.port))
            api = opened.enter_context(contextlib.closing(Api(plane, metrics)))
            server = cls(plane, api, listener)
            opened.pop_all()
            return server

    @property
    def plane(self) -> Plane:
        """The parts of the product that this server serves."""
        return self._plane

    @property
    def budget(self) -> Budget:
        """The budget of bytes for request bodies."""
        return self._api.state.budget

    def run(self) -> None:
        """Serve until `stop`; answer every request that began."""
        settings = self._plane.settings
        database = mask_url(settings.database)
        _log.info("penstock %s listens on %s, database %s", __version__, self.url, database)
        self._log_auth()
        self._api.state.deliverer.start()
        self._server.run(sockets=[self._listener])

    def _log_auth(self) -> None:
        settings = self._plane.settings
        is_open = not self._plane.keys.were_made() and settings.auth != "required"
        level = logging.WARNING if is_open and not is_loopback(settings.host) else logging.INFO
        _log.log(level, "authentication: %s", describe_auth(self._plane))

    def stop(self) -> None:
        """Take no new requests; `run` returns after the running ones are answered."""
        self._api.state.stopping = True
        self._api.state.relay.stop()
        self._server.should_exit = True

    def close(self) -> None:
        """Close the listener, the threads and the plane; queued writes are committed first."""
        self._listener.close()
        self._api.close()
        self._plane.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Uvicorn(uvicorn.Server):
    """Uvicorn with exit status 0 after a signal."""

    def __init__(
        self, config: uvicorn.Config, stop: Callable[[], None], connections: Connections
    ) -> None:
        super().__init__(config)
        self._stop = stop
        self._connections = connections
        self._descriptors = DescriptorWatch()

    async def on_tick(self, counter: int) -> bool:
        """Check connections and descriptors once a second; uvicorn ticks ten times."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            self._connections.check(now)
            self._descriptors.check(now)
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; uvicorn would raise the signal again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self._stop()

        before = {number: signal.signal(number, handle) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def check_reach(plane: Plane) -> None:
    """Refuse to listen beyond this machine while no key exists, unless `insecure` is set."""
    settings = plane.settings
    if is_loopback(settings.host) or settings.insecure or plane.keys.were_made():
        return
    raise Invalid(
        f"{settings.host} can be reached from other machines and there are no keys: make one "
        "with `penstock keys create NAME --role admin`, or listen on 127.0.0.1; --insecure "
        "serves everybody"
    )


def describe_auth(plane: Plane) -> str:
    """Describe in one line which calls need a key."""
    settings = plane.settings
    if plane.keys.were_made():
        return f"{settings.auth}; keys were made, so every call needs one"
    if settings.auth == "required":
        return (
            "required; there is no key yet, so every call is refused: make one with "
            "`penstock keys create NAME --role admin`"
        )
    if is_loopback(settings.host):
        return "open-on-loopback; there is no key yet, so callers on this machine need none"
    return (
        f"insecure; there is no key yet, so anybody who reaches {settings.host} may read and write"
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise an error with the reason."""
    try:
        addresses = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # `localhost` may be IPv4 and IPv6; programs that use 127.0.0.1 must reach it.
        family, *_, address = min(addresses, key=lambda each: each[0] != socket.AF_INET)
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(
            address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        raise Conflict(
            f"cannot listen on {host}:{port}: {error.strerror or error}; "
            "free it, or choose another --host or --port"
        ) from None
