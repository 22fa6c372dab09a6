"""`penstock arcs status`: where all arcs stand, and what is running."""

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
from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags, switch
from penstock.cli.output import Column, note, out, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.client import ApiError, Client
from penstock.schema.arcs import ShownArc
from penstock.schema.locks import Lock

app = App(
    name="status",
    help_epilogue="""Examples:
  penstock arcs status
  penstock arcs status --watch
  penstock arcs status --json | jq '.arcs[].counts'

Lots are counted up to a thousand of each kind, and + says that there are more.
--watch draws it anew until Ctrl-C.""",
)

_RUNNING_MAX = 20
_NOT_FOUND = 404


class RunningLot(Struct, frozen=True, rename="camel"):
    """A lot that is being worked on, and how many of its parts are done."""

    arc: str
    lot: str
    owner: str
    since: str
    parts: int
    parts_done: int


class Status(Struct, frozen=True):
    """Where arcs stand, and what is running."""

    arcs: Sequence[ShownArc]
    running: Sequence[RunningLot]


@app.default
def status(
    *,
    watch: Annotated[bool, switch("draw it anew until told to stop")] = False,
    interval: Annotated[float, Parameter(help="seconds from one look to the next")] = 1.0,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show where all arcs stand, and what is running."""
    with remote.connect() as client:
        if watch and not as_json:
            _watch(client, namespace, interval)
            return
        found = look(client, namespace)
    if as_json:
        write_json(found)
        return
    if not found.arcs:
        for line in EMPTY.splitlines():
            note(line)
        return
    write_arcs(found.arcs)
    write_line()
    if found.running:
        columns = ("running", "lot", "parts done", "by", Column("since", whole=True))
        write_table(columns, map(_row, found.running))
    else:
        note(_idle(found.arcs))


def look(client: Client, namespace: str | None) -> Status:
    """Where arcs stand now."""
    arcs = client.arcs(namespace).arcs
    names = {(arc.namespace, arc.name): arc for arc in arcs}
    if not any(arc.counts.running for arc in arcs):
        return Status(arcs, ())
    locks = client.locks(namespace=namespace, limit=1000).locks
    live = [lock for lock in locks if (lock.namespace, lock.job) in names]
    split = {at for at, arc in names.items() if arc.parts is not None}
    running = [
        _running(client, lock, is_split=(lock.namespace, lock.job) in split)
        for lock in live[:_RUNNING_MAX]
    ]
    return Status(arcs, running)


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
        return "nothing is running, though lots are ready; start an engine: `penstock arcs work`"
    return "nothing is running"


def _watch(client: Client, namespace: str | None, interval: float) -> None:
    console = out()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(_drawn(look(client, namespace)), refresh=True)
            time.sleep(interval)


def _drawn(found: Status) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("arc", no_wrap=True)
    for state in STATES:
        table.add_column(state, justify="right", no_wrap=True)
    for arc in found.arcs:
        counts = [arc.counts.shown(state) for state in STATES]
        table.add_row(f"{arc.namespace}/{arc.name}", *counts)
    lines = [Text("  ".join(filter(None, _row(lot)))) for lot in found.running]
    if not found.arcs:
        return Text(EMPTY)
    return Lines(table, Text(), *(lines or [Text(_idle(found.arcs))]))
