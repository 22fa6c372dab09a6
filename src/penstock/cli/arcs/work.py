"""`penstock arcs work`: an engine of arcs in a process of its own."""

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from penstock import __version__
from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors import LOCAL, open_executor
from penstock.arcs.queries import all_arcs
from penstock.arcs.rows import ArcRow
from penstock.arcs.workload.shell import command_rules, split_names
from penstock.cli.options import Config, Database, switch
from penstock.cli.stopping import StopSignals
from penstock.cli.targets import choose_arc
from penstock.clock import format_time
from penstock.config import SECRET_VARIABLES, Loaded, Settings, load, mask_url
from penstock.errors import Invalid, Unavailable
from penstock.ingest.opening import IN_DATABASE
from penstock.operations.steppers import operation_steppers
from penstock.plane import Plane
from penstock.schema.catalog import EntityId
from penstock.subscribers.own_backend import follow_settings
from penstock.telemetry import tracing
from penstock.telemetry.logs import set_up_logs

app = App(
    name="work",
    help_epilogue="""Examples:
  penstock arcs work
  penstock arcs work --concurrency 16 --arc shop/clean
  penstock arcs work --executor dask://scheduler:8786
  penstock arcs work --namespace shop --run-as shop
  penstock arcs work --once        (for cron)

It works straight on the database and the object store, as `penstock serve`
does; any number of engines on any number of machines share the work. It also
watches the places where objects arrive, tells subscribers, and moves backfills
and replays on. Functions are imported from the current folder and from
PYTHONPATH; on Dask, from where its workers are.

A key that may declare an arc may run code here. --namespace runs only the arcs
of some namespaces, --run-as runs commands as a user with fewer rights.

It stops on SIGTERM and Ctrl-C: what has begun is finished, and what has not
is given back. A second signal stops it at once; others go on when the leases
of its lots have ended.""",
)

_LOOK_SECONDS = 0.1
_IDLE_SECONDS = 0.25
_LEASE_SECONDS = 60  # of an arc that does not say its own

_log = logging.getLogger(__name__)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """What an engine may be told on the command line."""

    executor: Annotated[
        str | None, Parameter(help="where workloads run: local, or dask://HOST:PORT")
    ] = None
    database: Database = None
    objects: Annotated[
        str | None, Parameter(help="where lots are kept: file:///FOLDER, s3://BUCKET/PREFIX, …")
    ] = None
    run_as: Annotated[str | None, Parameter(help="the user that commands run as; needs root")] = (
        None
    )
    config: Config = None
    log_level: Annotated[
        str | None, Parameter(help="the least serious thing to log: debug, info, warning, error")
    ] = None
    log_format: Annotated[str | None, Parameter(help="how to write log lines: text, json")] = None

    def load(self, **more: object) -> Loaded:
        """The settings with these flags; no queue of ingest is opened, as nothing is taken from it.

        A ZooKeeper that is away stops no engine.
        """
        return load({**asdict(self), "queue": IN_DATABASE, **more})


ENGINE = EngineFlags()


@app.default
def work(
    *,
    concurrency: Annotated[
        int | None, Parameter(help="how many lots at a time", show_default=False)
    ] = None,
    arc: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="only this arc; repeatable"),
    ] = (),
    namespace: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(), show_default=False, help="only the arcs of this namespace; repeatable"
        ),
    ] = (),
    once: Annotated[bool, switch("end when nothing can be run and nothing runs")] = False,
    flags: EngineFlags = ENGINE,
) -> None:
    """Run arcs until told to stop: claim lots, run their workloads, publish what they make."""
    if concurrency is not None and concurrency < 1:
        raise Invalid(f"--concurrency {concurrency} lets nothing be done; write 1 or more")
    namespaces = ",".join(namespace) or None
    settings = flags.load(arc_concurrency=concurrency, arc_namespaces=namespaces).settings
    begin(settings)
    rules = command_rules(settings)
    with Plane.open(settings) as plane, tracing.on(settings.traces, plane.identity):
        # A store in which two could create one key is refused before anything is run.
        plane.objects.check()
        wanted = _wanted(plane, arc, bound_arcs(settings))
        follow_settings(plane.catalog, settings, plane.secrets, may_delete=False)
        with (
            open_executor(settings.executor, settings.arc_concurrency) as executor,
            StopSignals(_LEASE_SECONDS) as signals,
        ):
            station = ArcWorker(
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
                station.take_arrivals()
            with station:
                _log.info("%s", _greeting(settings, arc))
                _stay(station, signals, once=once)
                _log.info("stopping: taking up nothing more")
        if once:
            _tell_what_waits(plane)
    _log.info("stopped: what was begun is finished or given back")


def begin(settings: Settings) -> None:
    """Write log lines, and let functions of the current folder be found, by children too.

    Secrets leave the environment: the processes that workloads run in do not inherit them.
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
    """Who holds what this process works on."""
    return f"{socket.gethostname()}:{os.getpid()}"


def lease_url(settings: Settings) -> str | None:
    """Where tasks keep their lease: on other machines they reach only a database server."""
    if settings.executor == LOCAL or not settings.database.startswith("postgresql://"):
        return None
    return settings.database


def bound_arcs(settings: Settings) -> Callable[[ArcRow], bool]:
    """Which arcs the engine runs: those of its namespaces, or all."""
    namespaces = split_names(settings.arc_namespaces or "")
    return lambda arc: not namespaces or arc.namespace in namespaces


def _wanted(
    plane: Plane, named: Sequence[str], is_bound: Callable[[ArcRow], bool]
) -> Callable[[ArcRow], bool]:
    """Which arcs to run; those that were named have to be there."""
    if not named:
        return is_bound
    with plane.catalog.read() as tx:
        known = [EntityId(row.namespace, row.name) for row in all_arcs(tx)]
    chosen = {choose_arc(known, text) for text in named}
    return lambda arc: EntityId(arc.namespace, arc.name) in chosen and is_bound(arc)


def _greeting(settings: Settings, named: Sequence[str]) -> str:
    bound = f"all arcs of {settings.arc_namespaces}" if settings.arc_namespaces else "all arcs"
    which = ", ".join(named) if named else bound
    user = f", commands as {settings.run_as}" if settings.run_as else ""
    return (
        f"penstock {__version__} runs {which}, {settings.arc_concurrency} lots at a time; "
        f"executor {settings.executor}, database {mask_url(settings.database)}, "
        f"objects {settings.objects}{user}"
    )


def _stay(station: ArcWorker, signals: StopSignals, *, once: bool) -> None:
    """Return when told to stop or, if it is for once, when nothing is left."""
    while not signals.received:
        time.sleep(_IDLE_SECONDS if once else _LOOK_SECONDS)
        if not once:
            continue
        try:
            if station.is_idle():
                _log.info("nothing is left to do")
                return
        except Unavailable as error:
            _log.warning("whether something is left is not known: %s", error)


def _tell_what_waits(plane: Plane) -> None:
    with plane.catalog.read() as tx:
        row = tx.fetch_one("soonest_retry")
    if row is not None:
        at = format_time(row[0])
        _log.info("lots that failed are tried again later, the first of them at %s", at)
