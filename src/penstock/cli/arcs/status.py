"""`penstock arcs status`."""

import time
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import Struct
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.cli.arcs.arcs import EMPTY, STATES, write_arcs
from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Namespace, Options, option
from penstock.cli.output import Column, note, out, write_line, write_table
from penstock.client import ApiError, Client
from penstock.schema.arcs import ShownArc
from penstock.schema.locks import Lock

app = App(
    name="status",
    help_epilogue="""Examples:
  penstock arcs status
  penstock arcs status --watch
  penstock arcs status --json | jq '.arcs[].counts'

Each count ends at a thousand; + means that there are more. --watch updates the
table until Ctrl-C.""",
)

_RUNNING_MAX = 20
_NOT_FOUND = 404


class RunningLot(Struct, frozen=True, rename="camel"):
    """A running lot, and its progress in parts."""

    arc: str
    lot: str
    owner: str
    since: str
    parts: int
    parts_done: int


class ArcStatus(Struct, frozen=True):
    """All arcs and running lots."""

    arcs: Sequence[ShownArc]
    running: Sequence[RunningLot]


@app.default
def status(
    *,
    watch: Annotated[bool, option("update it until it is stopped")] = False,
    interval: Annotated[float, Parameter(help="seconds between updates")] = 1.0,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Show the lots of all arcs by state, and running lots."""
    with options.connect() as client:
        if watch and not options.json:
            _watch(client, namespace, interval)
            return
        current = fetch_status(client, namespace)
    options.write(current, _write)


def _write(current: ArcStatus) -> None:
    write_arcs(current.arcs)
    if not current.arcs:
        return
    write_line()
    if current.running:
        columns = ("running", "lot", "parts done", "by", Column("since", whole=True))
        write_table(columns, map(_row, current.running))
    else:
        note(_idle(current.arcs))


def fetch_status(client: Client, namespace: str | None) -> ArcStatus:
    """Fetch all arcs and running lots."""
    arcs = client.arcs(namespace).arcs
    names = {(arc.namespace, arc.name): arc for arc in arcs}
    if not any(arc.counts.running for arc in arcs):
        return ArcStatus(arcs, ())
    locks = client.locks(namespace=namespace, limit=1000).locks
    live = [lock for lock in locks if (lock.namespace, lock.job) in names]
    split = {at for at, arc in names.items() if arc.parts is not None}
    running = [
        _running(client, lock, is_split=(lock.namespace, lock.job) in split)
        for lock in live[:_RUNNING_MAX]
    ]
    return ArcStatus(arcs, running)


def _running(client: Client, lock: Lock, *, is_split: bool) -> RunningLot:
    parts: Sequence[str] = ()
    if is_split:
        try:
            detail = client.arc_lot(lock.namespace, lock.job, lock.lot)
            parts = [part.state for part in detail.parts]
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
    done = sum(state in ("complete", "empty") for state in parts)
    arc = f"{lock.namespace}/{lock.job}"
    return RunningLot(arc, lock.lot, lock.owner, lock.since, len(parts), done)


def _row(lot: RunningLot) -> tuple[str, str, str, str, str]:
    parts = f"{lot.parts_done} of {lot.parts}" if lot.parts else ""
    return lot.arc, lot.lot, parts, lot.owner, show_time(lot.since)


def _idle(arcs: Sequence[ShownArc]) -> str:
    if any(arc.counts.ready for arc in arcs):
        return "no lot is running, but lots are ready; start an engine: `penstock arcs start`"
    return "no lot is running"


def _watch(client: Client, namespace: str | None, interval: float) -> None:
    console = out()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(_draw(fetch_status(client, namespace)), refresh=True)
            time.sleep(interval)


def _draw(current: ArcStatus) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("arc", no_wrap=True)
    for state in STATES:
        table.add_column(state, justify="right", no_wrap=True)
    for arc in current.arcs:
        counts = [arc.counts.shown(state) for state in STATES]
        table.add_row(f"{arc.namespace}/{arc.name}", *counts)
    lines = [Text("  ".join(filter(None, _row(lot)))) for lot in current.running]
    if not current.arcs:
        return Text(EMPTY)
    return Lines(table, Text(), *(lines or [Text(_idle(current.arcs))]))
