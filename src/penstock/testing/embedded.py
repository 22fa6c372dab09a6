"""A server embedded in a test: real, on SQLite, in a thread of its own."""

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
    """A server that listens on a free port of this machine; whoever is there may do everything."""

    def __init__(self, http: HttpServer, folder: Path, closing: ExitStack) -> None:
        self._http = http
        self._closing = closing
        self.folder = folder

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._http.url

    @property
    def plane(self) -> Plane:
        """What it serves, for tests that look behind the API."""
        return self._http.plane

    def client(self, **settings: Any) -> Client:
        """A client of it, closed with the server at the latest."""
        client = Client(self.url, **settings)
        self._closing.callback(client.close)
        return client

    def async_client(self, **settings: Any) -> AsyncClient:
        """An asynchronous client of it, to be closed in the event loop that uses it."""
        return AsyncClient(self.url, **settings)

    def put_lot(self, dataset: Name, lot: str, files: Mapping[str, bytes]) -> None:
        """Publish a lot of a dataset that consists of these files, as if it had arrived."""
        with Client(self.url) as client:
            put_lot(self.plane, client, dataset, lot, files)

    def read_lot(self, dataset: Name, lot: str) -> dict[str, bytes]:
        """The files that a lot consists of, by name."""
        with Client(self.url) as client:
            return read_lot(self.plane, client, dataset, lot)

    def declare_arc(self, function: Callable[..., object]) -> None:
        """Declare the arc that a function with `@penstock.arc` is."""
        with Client(self.url) as client:
            declare(client, function)

    def run_arc(self, arc: Callable[..., object] | str, lot: str) -> MadeLot:
        """Run one lot of an arc, here and now, in the thread of the test.

        The arc is a function with `@penstock.arc`, which is declared first, or NAMESPACE/NAME.
        A lot that fails raises ArcFailed, one that is not ready Conflict.
        """
        with Client(self.url) as client:
            return run_arc(self.plane, client, arc, lot)

    @contextmanager
    def working(self, *, ingest: bool = True, arcs: bool = True) -> Iterator[None]:
        """Have batches ingested and arcs run in the background while the block lasts."""
        with ExitStack() as stack:
            if ingest:
                stack.enter_context(_ingesting(self.plane))
            if arcs:
                stack.enter_context(_running_arcs(self.plane))
            yield


@contextmanager
def server(folder: Path | str | None = None, **settings: Any) -> Iterator[Server]:
    """A server for the length of a block.

    What it keeps is in the folder, or in one of its own that goes with it. Other settings are
    those of `penstock config show`; those of your environment and files are not read.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-testing-"))
        home = Path(folder).resolve()
        home.mkdir(parents=True, exist_ok=True)
        kept = {
            "host": "127.0.0.1",
            "port": 0,
            "database": f"sqlite:///{home}/penstock.db",
            "objects": f"file://{home}/objects",
            "ingest_folder": f"{home}/ingest",
        }
        http = stack.enter_context(HttpServer.open(Settings(**{**kept, **settings})))
        thread = threading.Thread(target=http.run, name="penstock server")
        thread.start()
        stack.callback(thread.join)
        stack.callback(http.stop)
        yield Server(http, home, stack.enter_context(ExitStack()))


@contextmanager
def _ingesting(plane: Plane) -> Iterator[None]:
    # With a session of its own: the server's goes on when these daemons stop.
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
