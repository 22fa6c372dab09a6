"""`penstock up`: server, ingest workers and arc engine in one process."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from cyclopts import App, Parameter

from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors import open_executor
from penstock.arcs.workload.shell import command_rules
from penstock.cli.arcs.start import arcs_to_run, begin, lease_url, owner
from penstock.cli.options import Executor, IngestFolder, Objects, Queue, RunAs, ServerOptions
from penstock.cli.stopping import exit_now
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

It combines `penstock serve`, `penstock ingest start` and `penstock arcs start`.
It imports functions of arcs from the current folder and PYTHONPATH.

On SIGTERM or Ctrl-C it answers open requests, and finishes or releases running
work.""",
)

_log = logging.getLogger(__name__)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class UpOptions(ServerOptions):
    """The settings of the process."""

    queue: Queue = None
    objects: Objects = None
    ingest_folder: IngestFolder = None
    executor: Executor = None
    run_as: RunAs = None


UP = UpOptions()


@app.default
def up(*, options: UpOptions = UP) -> None:
    """Run server, ingest workers and arc engine in one process."""
    settings = options.load().settings
    begin(settings)
    raise_descriptor_limit()
    with (
        HttpServer.open(settings) as server,
        tracing.on(settings.traces, server.plane.identity),
        background_work(server.plane) as workers,
    ):
        plane = server.plane
        follow_settings(plane.catalog, settings, plane.secrets, own_url=server.url)
        tune_interpreter()
        server.run()
        _log.info("stopping: accepting no more work")
    _log.info("stopped: received requests are committed, running work is finished or released")
    if workers.hanging:
        exit_now()


@contextmanager
def background_work(plane: Plane) -> Iterator[Workers]:
    """Run ingest workers and an arc engine during a block."""
    settings = plane.settings
    # Refuse a store that lets two writers create the same key before any work runs.
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
                wanted=arcs_to_run(settings),
                steppers=operation_steppers(plane.catalog, plane.clock),
                rules=command_rules(settings),
                secrets=plane.secrets,
            )
        )
        workers.start()
        stack.callback(workers.stop)
        yield workers
