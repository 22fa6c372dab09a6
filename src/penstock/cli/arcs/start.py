"""`penstock arcs start`: an engine of arcs in its own process."""

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from penstock import __version__
from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors import LOCAL, open_executor
from penstock.arcs.queries import all_arcs
from penstock.arcs.rows import ArcRow
from penstock.arcs.workload.shell import command_rules, split_names
from penstock.cli.options import Executor, Objects, ProcessOptions, RunAs, option
from penstock.cli.stopping import StopSignals
from penstock.cli.targets import Name, choose_arc
from penstock.clock import format_time
from penstock.config import SECRET_VARIABLES, Loaded, Settings, mask_url
from penstock.errors import Invalid, Unavailable
from penstock.ingest.opening import IN_DATABASE
from penstock.operations.steppers import operation_steppers
from penstock.plane import Plane
from penstock.subscribers.own_backend import follow_settings
from penstock.telemetry import tracing
from penstock.telemetry.logs import set_up_logs

app = App(
    name="start",
    help_epilogue="""Examples:
  penstock arcs start
  penstock arcs start --concurrency 16 --arc shop/clean
  penstock arcs start --executor dask://scheduler:8786
  penstock arcs start --namespace shop --run-as shop
  penstock arcs start --once        (for cron)

An engine connects to the database and the object store, as `penstock serve`
does. Any number of engines on any number of machines share the work. An engine
also watches arrivals, notifies subscribers, and runs backfills and replays. It
imports functions from the current folder and PYTHONPATH; Dask workers import
them in their own environment.

A key that may declare an arc may run code here. --namespace runs only the arcs
of some namespaces, --run-as runs commands as a user with fewer rights.

On SIGTERM or Ctrl-C it finishes running lots and releases the others. A second
signal stops it at once; other engines take over when its leases expire.""",
)

_LOOK_SECONDS = 0.1
_IDLE_SECONDS = 0.25
_LEASE_SECONDS = 60  # the default lease of an arc

_log = logging.getLogger(__name__)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineOptions(ProcessOptions):
    """The settings of an engine."""

    executor: Executor = None
    objects: Objects = None
    run_as: RunAs = None

    def load(self, **more: object) -> Loaded:
        """Load the settings; an engine needs no ingest queue, so ZooKeeper may be away."""
        return super().load(queue=IN_DATABASE, **more)


ENGINE = EngineOptions()


@app.default
def start(
    *,
    concurrency: Annotated[
        int | None, Parameter(help="how many lots at a time", show_default=False)
    ] = None,
    arc: Annotated[tuple[str, ...], option("only this arc; repeatable")] = (),
    namespace: Annotated[
        tuple[str, ...], option("only the arcs of this namespace; repeatable")
    ] = (),
    once: Annotated[bool, option("end when no lot can run and no lot is running")] = False,
    options: EngineOptions = ENGINE,
) -> None:
    """Start an engine: claim lots, run their workloads, and publish the results."""
    if concurrency is not None and concurrency < 1:
        raise Invalid(f"--concurrency is {concurrency}; write 1 or more")
    namespaces = ",".join(namespace) or None
    settings = options.load(arc_concurrency=concurrency, arc_namespaces=namespaces).settings
    begin(settings)
    rules = command_rules(settings)
    with Plane.open(settings) as plane, tracing.on(settings.traces, plane.identity):
        # Refuse a store that lets two writers create the same key before any lot runs.
        plane.objects.check()
        wanted = _chosen_arcs(plane, arc, arcs_to_run(settings))
        follow_settings(plane.catalog, settings, plane.secrets, may_delete=False)
        with (
            open_executor(settings.executor, settings.arc_concurrency) as executor,
            StopSignals(_LEASE_SECONDS) as signals,
        ):
            worker = ArcWorker(
                plane.catalog,
                plane.database,
                plane.objects,
                executor,
                plane.clock,
                owner=owner(),
                concurrency=settings.arc_concurrency,
                lease_url=lease_url(settings),
                wanted=wanted,
                steppers=operation_steppers(plane.catalog, plane.clock),
                rules=rules,
                secrets=plane.secrets,
            )
            if once:
                worker.take_arrivals()
            with worker:
                _log.info("%s", _greeting(settings, arc))
                _wait(worker, signals, once=once)
                _log.info("stopping: claiming no more lots")
        if once:
            _log_next_retry(plane)
    _log.info("stopped: running lots are finished or released")


def begin(settings: Settings) -> None:
    """Set up logs, make the current folder importable, and remove secrets from the environment.

    The processes of workloads inherit the environment, but must not see the secrets.
    """
    set_up_logs(settings)
    for name in SECRET_VARIABLES:
        os.environ.pop(name, None)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    paths = os.environ.get("PYTHONPATH", "")
    if here not in paths.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, paths)))


def owner() -> str:
    """Return the name of this process as a worker."""
    return f"{socket.gethostname()}:{os.getpid()}"


def lease_url(settings: Settings) -> str | None:
    """Return the database where tasks renew their lease; other machines reach only PostgreSQL."""
    if settings.executor == LOCAL or not settings.database.startswith("postgresql://"):
        return None
    return settings.database


def arcs_to_run(settings: Settings) -> Callable[[ArcRow], bool]:
    """Return a filter for the arcs of the engine's namespaces, or for all."""
    namespaces = split_names(settings.arc_namespaces or "")
    return lambda arc: not namespaces or arc.namespace in namespaces


def _chosen_arcs(
    plane: Plane, names: Sequence[str], is_bound: Callable[[ArcRow], bool]
) -> Callable[[ArcRow], bool]:
    """Return a filter for the named arcs, which must exist."""
    if not names:
        return is_bound
    with plane.catalog.read() as tx:
        arcs: list[Name] = [(row.namespace, row.name) for row in all_arcs(tx)]
    chosen = {choose_arc(arcs, text) for text in names}
    return lambda arc: (arc.namespace, arc.name) in chosen and is_bound(arc)


def _greeting(settings: Settings, names: Sequence[str]) -> str:
    bound = f"all arcs of {settings.arc_namespaces}" if settings.arc_namespaces else "all arcs"
    which = ", ".join(names) if names else bound
    user = f", commands as {settings.run_as}" if settings.run_as else ""
    return (
        f"penstock {__version__} runs {which}, {settings.arc_concurrency} lots at a time; "
        f"executor {settings.executor}, database {mask_url(settings.database)}, "
        f"objects {settings.objects}{user}"
    )


def _wait(worker: ArcWorker, signals: StopSignals, *, once: bool) -> None:
    """Wait for a stop signal or, with `once`, until no work is left."""
    while not signals.received:
        time.sleep(_IDLE_SECONDS if once else _LOOK_SECONDS)
        if not once:
            continue
        try:
            if worker.is_idle():
                _log.info("no work is left")
                return
        except Unavailable as error:
            _log.warning("cannot find out whether work is left: %s", error)


def _log_next_retry(plane: Plane) -> None:
    with plane.catalog.read() as tx:
        row = tx.fetch_one("soonest_retry")
    if row is not None:
        at = format_time(row[0])
        _log.info("failed lots are retried later, the first of them at %s", at)
