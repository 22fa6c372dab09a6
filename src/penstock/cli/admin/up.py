"""`penstock up`: the server, the ingest daemons and the engine of arcs in one process."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import App, Parameter

from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors import open_executor
from penstock.arcs.workload.shell import command_rules
from penstock.cli.arcs.work import begin, bound_arcs, lease_url, owner
from penstock.cli.options import ServerFlags
from penstock.cli.stopping import leave
from penstock.config import Loaded, load
from penstock.ingest.workers.pool import Workers
from penstock.operations.steppers import operation_steppers
from penstock.plane import Plane
from penstock.server.connections import raise_descriptor_limit
from penstock.server.serve import HttpServer, tune_interpreter
from penstock.subscribers.own_backend import follow_settings
from penstock.telemetry import tracing

app = App(
    name="up",
    help_epilogue="""Examples:
  penstock up
  penstock up --database postgresql://penstock@db/penstock --objects s3://bucket/penstock
  penstock up --queue zookeeper://zk1:2181/penstock --executor dask://scheduler:8786

It does what `penstock serve`, `penstock ingest work` and `penstock arcs work`
do in processes of their own. Functions of arcs are imported from the current
folder and from PYTHONPATH.

It stops on SIGTERM and Ctrl-C: what is in flight is committed and answered,
what has begun is finished or given back.""",
)

_log = logging.getLogger(__name__)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class UpFlags(ServerFlags):
    """What the process may be told on the command line."""

    queue: Annotated[
        str | None, Parameter(help="where the queue is: database, or zookeeper://HOST:PORT/CHROOT")
    ] = None
    objects: Annotated[
        str | None, Parameter(help="where objects are stored: file:///FOLDER, s3://BUCKET, …")
    ] = None
    ingest_folder: Annotated[
        str | None, Parameter(help="where ingest jobs have their working folders")
    ] = None
    executor: Annotated[
        str | None, Parameter(help="where workloads run: local, or dask://HOST:PORT")
    ] = None
    run_as: Annotated[
        str | None, Parameter(help="the user that commands of arcs run as; needs root")
    ] = None

    def load(self) -> Loaded:
        """The settings with these flags."""
        return load(asdict(self))


UP = UpFlags()


@app.default
def up(*, flags: UpFlags = UP) -> None:
    """Run everything in one process until it is told to stop."""
    settings = flags.load().settings
    begin(settings)
    raise_descriptor_limit()
    with (
        HttpServer.open(settings) as server,
        tracing.on(settings.traces, server.plane.identity),
        at_work(server.plane) as workers,
    ):
        plane = server.plane
        follow_settings(plane.catalog, settings, plane.secrets, own_url=server.url)
        tune_interpreter()
        server.run()
        _log.info("stopping: taking up nothing more")
    _log.info("stopped: everything received is committed, what was begun is finished or given back")
    if workers.left:
        leave()


@contextmanager
def at_work(plane: Plane) -> Iterator[Workers]:
    """Have deposits and arcs worked on meanwhile."""
    settings = plane.settings
    # A store in which two could create one key is refused before anything is run.
    plane.objects.check()
    with ExitStack() as stack:
        workers = Workers(plane.context)
        executor = stack.enter_context(open_executor(settings.executor, settings.arc_concurrency))
        stack.enter_context(
            ArcWorker(
                plane.catalog,
                plane.database,
                plane.objects,
                executor,
                plane.clock,
                owner=owner(),
                concurrency=settings.arc_concurrency,
                lease_url=lease_url(settings),
                wanted=bound_arcs(settings),
                steppers=operation_steppers(plane.catalog, plane.clock),
                rules=command_rules(settings),
                secrets=plane.secrets,
            )
        )
        workers.start()
        stack.callback(workers.stop)
        yield workers
