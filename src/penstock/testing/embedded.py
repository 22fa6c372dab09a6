"""A server embedded in a test: real, on SQLite, in its own thread."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors.local import LocalThreads
from penstock.client import AsyncClient, Client
from penstock.client.names import Name
from penstock.config import Settings
from penstock.ingest.opening import open_ingest
from penstock.ingest.workers.pool import Workers
from penstock.operations.steppers import operation_steppers
from penstock.plane import Plane
from penstock.server.serve import HttpServer
from penstock.testing.inline import ArcFailed, MadeLot, declare, put_lot, read_lot, run_arc

__all__ = ["ArcFailed", "MadeLot", "Server", "server"]

_ARCS_AT_ONCE = 4
_LOOK_SECONDS = 0.05


class Server:
    """A server on a free port of this machine. Every caller may do everything."""

    def __init__(self, http: HttpServer, folder: Path, closing: ExitStack) -> None:
        self._http = http
        self._closing = closing
        self.folder = folder

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._http.url

    @property
    def plane(self) -> Plane:
        """The server's plane, for tests that look behind the API."""
        return self._http.plane

    def client(self, **settings: Any) -> Client:
        """Return a client, which is closed with the server at the latest."""
        client = Client(self.url, **settings)
        self._closing.callback(client.close)
        return client

    def async_client(self, **settings: Any) -> AsyncClient:
        """Return an asynchronous client, to be closed in the event loop that uses it."""
        return AsyncClient(self.url, **settings)

    def put_lot(self, dataset: Name, lot: str, files: Mapping[str, bytes]) -> None:
        """Publish a lot of a dataset with these files, as if it had arrived."""
        with Client(self.url) as client:
            put_lot(self.plane, client, dataset, lot, files)

    def read_lot(self, dataset: Name, lot: str) -> dict[str, bytes]:
        """Return the files of a lot, by name."""
        with Client(self.url) as client:
            return read_lot(self.plane, client, dataset, lot)

    def declare_arc(self, function: Callable[..., object]) -> None:
        """Declare the arc of a function with `@penstock.arc`."""
        with Client(self.url) as client:
            declare(client, function)

    def run_arc(self, arc: Callable[..., object] | str, lot: str) -> MadeLot:
        """Run one lot of an arc in the thread of the test.

        The arc is a function with `@penstock.arc`, which is declared first, or NAMESPACE/NAME. A
        lot that fails raises ArcFailed; one that is not ready raises Conflict.
        """
        with Client(self.url) as client:
            return run_arc(self.plane, client, arc, lot)

    @contextmanager
    def working(self, *, ingest: bool = True, arcs: bool = True) -> Iterator[None]:
        """Ingest batches and run arcs in the background while the block lasts."""
        with ExitStack() as stack:
            if ingest:
                stack.enter_context(_ingesting(self.plane))
            if arcs:
                stack.enter_context(_running_arcs(self.plane))
            yield


@contextmanager
def server(folder: Path | str | None = None, **settings: Any) -> Iterator[Server]:
    """Run a server for the length of a block.

    Its data is in the folder, or in a temporary one. Other settings are those of `penstock config
    show`. Your environment and settings files are not read.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-testing-"))
        home = Path(folder).resolve()
        home.mkdir(parents=True, exist_ok=True)
        defaults = {
            "host": "127.0.0.1",
            "port": 0,
            "database": f"sqlite:///{home}/penstock.db",
            "objects": f"file://{home}/objects",
            "ingest_folder": f"{home}/ingest",
        }
        http = stack.enter_context(HttpServer.open(Settings(**{**defaults, **settings})))
        thread = threading.Thread(target=http.run, name="penstock server")
        thread.start()
        stack.callback(thread.join)
        stack.callback(http.stop)
        yield Server(http, home, stack.enter_context(ExitStack()))


@contextmanager
def _ingesting(plane: Plane) -> Iterator[None]:
    # A session of its own, because the server's must outlive these daemons.
    context = open_ingest(plane.settings, plane.catalog, plane.clock)
    workers = Workers(context, poll_seconds=_LOOK_SECONDS)
    workers.start()
    try:
        yield
    finally:
        workers.stop()
        context.close()


@contextmanager
def _running_arcs(plane: Plane) -> Iterator[None]:
    with (
        LocalThreads(_ARCS_AT_ONCE, "arc-task") as executor,
        ArcWorker(
            plane.catalog,
            plane.database,
            plane.objects,
            executor,
            plane.clock,
            owner="penstock.testing",
            concurrency=_ARCS_AT_ONCE,
            steppers=operation_steppers(plane.catalog, plane.clock),
            secrets=plane.secrets,
        ),
    ):
        yield
