"""`penstock arcs`: its short commands; those that need more imports have their own modules."""

import shlex
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Group, Parameter

from penstock.cli.formats import show_bytes, show_time
from penstock.cli.options import OPTIONS, Limit, Namespace, Options, Reason
from penstock.cli.output import (
    Column,
    counted,
    note,
    write_fields,
    write_json,
    write_line,
    write_table,
)
from penstock.cli.targets import ArcName, LotId, find_arc
from penstock.client import Client
from penstock.schema.arcs import ArcLot, ArcLotDetail, ShownArc, Synced
from penstock.schema.catalog import EntityId
from penstock.states import ArcState

app = App(
    name="arcs",
    help_epilogue="""Examples:
  penstock arcs apply arcs.toml
  penstock arcs start
  penstock arcs status
  penstock arcs show shop/clean 20261115PT1H09
  penstock arcs clean shop/clean 20261115PT1H09 --why "half a file"

An arc waits for lots of its inputs and makes lots of its outputs: by a Python
function, or by a command in any language. `penstock arcs start` starts an
engine that runs arcs; any number of engines share the work.""",
)

_DO = Group("Declare and run", sort_key=1)
_LOOK = Group("Look", sort_key=2)
_CHANGE = Group("Change", sort_key=3)
# These modules are imported when their command runs: an engine imports far more than the others.
_COMMANDS = (
    (_DO, "apply", "Declare the arcs of a file or a Python module."),
    (_DO, "start", "Start an engine, which runs arcs until it is stopped."),
    (_DO, "run", "Run one lot of an arc in this process."),
    (_LOOK, "status", "Show the lots of all arcs by state, and running lots."),
)
for _order, (_group, _name, _text) in enumerate(_COMMANDS):
    _path = f"penstock.cli.arcs.{_name}:app"
    app.command(_path, name=_name, help=_text, group=_group, sort_key=_order)

STATES = ("running", "complete", "partial", "missing", "ready", "waiting", "held")
EMPTY = """there are no arcs yet; declare one in a file and apply it:

  # arcs.toml
  namespace = "shop"
  [arcs.clean]
  inputs = ["raw"]
  outputs = ["clean"]
  workload = ["sh", "-c", "cp /data/$PENSTOCK_LOT.csv $PENSTOCK_OUTPUT/"]

  penstock arcs apply arcs.toml
  penstock arcs start"""


@app.command(name="list", group=_LOOK)
def list_arcs(*, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """List arcs with the numbers of their lots by state."""
    with options.connect() as client:
        page = client.arcs(namespace)
    options.write(page, lambda page: write_arcs(page.arcs))


def write_arcs(arcs: Sequence[ShownArc]) -> None:
    """Write one arc a line, or how to declare the first."""
    if not arcs:
        for line in EMPTY.splitlines():
            note(line)
        return
    write_table(
        (Column("arc", whole=True), *(Column(state, numbers=True) for state in STATES)),
        (
            (f"{arc.namespace}/{arc.name}", *(arc.counts.shown(state) for state in STATES))
            for arc in arcs
        ),
    )


@app.command(group=_LOOK)
def show(
    arc: ArcName,
    lot: Annotated[str | None, Parameter(help="one of its lots", show_default=False)] = None,
    /,
    *,
    state: Annotated[ArcState | None, Parameter(help="only lots in this state")] = None,
    after: Annotated[str | None, Parameter(help="only lots after this one")] = None,
    limit: Limit = 20,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Show an arc and its lots; or a lot: its parts, failed attempts and manifests."""
    with options.connect() as client:
        at = find_arc(client, arc, namespace)
        if lot is not None:
            options.write(client.arc_lot(*at, lot), lambda lot: _write_lot("/".join(at), lot))
            return
        details = client.arc(*at)
        page = client.arc_lots(*at, state=state, after=after, limit=limit)
    if options.json:
        write_json({"arc": details, "lots": page.lots, "next": page.next})
        return
    _write_arc(details)
    write_line()
    if not page.lots:
        which = f"in state {state} " if state else ""
        note(f"no lot {which}yet; lots follow those of its inputs: `penstock lots register`")
        return
    _write_lots(page.lots)
    if page.next is not None:
        note(f"{len(page.lots)} lots are shown; --after {page.next} shows the next")


def _write_arc(arc: ShownArc) -> None:
    def full_name(namespace: str, dataset: str) -> str:
        return f"{namespace or arc.namespace}/{dataset}"

    workload, parts, counts = arc.workload, arc.parts, arc.counts
    by = parts and (
        parts.pattern or parts.function or f"at most {show_bytes(parts.bytes_max or 0)}"
    )
    write_fields(
        [
            ("arc", f"{arc.namespace}/{arc.name}"),
            ("about", arc.description),
            ("project", f"{arc.project}, version {arc.version}"),
            (
                "reads",
                ", ".join(
                    full_name(each.namespace, each.dataset) + ("" if each.subscribe else " (joins)")
                    for each in arc.inputs
                ),
            ),
            ("writes", ", ".join(full_name(each.namespace, each.dataset) for each in arc.outputs)),
            ("runs", workload.function or " ".join(workload.command)),
            ("in parts", f"{by}, {parts.running_max} at a time" if parts else ""),
            (
                "at a time",
                f"{arc.running_max} lots, {'newest' if arc.newest_first else 'oldest'} first",
            ),
            ("tries", f"{arc.retry.tries}, {arc.retry.back_off_seconds} s apart at first"),
            ("if empty", arc.on_empty),
            ("if stale", arc.stale),
            ("checks", ", ".join(arc.checks)),
            ("lots", ", ".join(f"{counts.shown(state)} {state}" for state in STATES)),
        ]
    )


def _write_lots(lots: Sequence[ArcLot]) -> None:
    write_table(
        (
            Column("lot", whole=True),
            Column("state", whole=True),
            Column("work", whole=True),
            Column("try", whole=True),
            Column("since", whole=True),
            "last error",
        ),
        (
            (
                each.lot,
                each.state,
                each.work,
                f"{each.attempts} of {each.attempts_max}",
                show_time(each.since),
                each.error,
            )
            for each in lots
        ),
    )


def _write_lot(arc: str, lot: ArcLotDetail) -> None:
    write_fields(
        [
            ("lot", lot.lot),
            ("arc", arc),
            ("state", lot.state or "not tried"),
            ("work", lot.work),
            ("try", f"{lot.attempts} of {lot.attempts_max}"),
            ("run", lot.run),
            ("claimed by", lot.owner),
            ("since", show_time(lot.since)),
            ("not before", show_time(lot.not_before)),
            ("last error", lot.error),
        ]
    )
    if lot.parts:
        write_line()
        write_table(
            (
                "part",
                Column("state", whole=True),
                Column("objects", numbers=True),
                "bytes",
                "error",
            ),
            ((p.part, p.state, p.uris, show_bytes(p.bytes), p.error) for p in lot.parts),
        )
    if lot.failed_attempts:
        write_line()
        write_table(
            (
                "failed attempt",
                Column("left behind", whole=True),
                Column("at", whole=True),
            ),
            ((each.run, each.state, show_time(each.at)) for each in lot.failed_attempts),
        )
    if lot.manifests:
        write_line()
        write_table(
            ("made", Column("manifest", whole=True), Column("objects", numbers=True), "bytes",
             Column("at", whole=True), "version id"),
            (
                (
                    f"{m.namespace}/{m.dataset}",
                    m.state if m.is_current else f"{m.state}, replaced",
                    m.uris,
                    show_bytes(m.bytes),
                    show_time(m.at),
                    m.version,
                )
                for m in lot.manifests
            ),
        )  # fmt: skip
    if lot.state == "partial":
        clean = shlex.join(["penstock", "arcs", "clean", arc, lot.lot])
        note(f"`{clean} --why REASON` removes the remains of failed attempts")


@app.command(group=_CHANGE)
def delete(arc: ArcName, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Delete an arc, so that no engine runs it; its job, runs and lots stay."""
    with options.connect() as client:
        at = find_arc(client, arc, namespace)
        client.delete_arc(*at)
    options.write_line(EntityId(*at), f"arc {'/'.join(at)} is deleted")


@app.command(group=_CHANGE)
def clean(
    arc: ArcName,
    lot: LotId,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Remove all that failed attempts on a lot left, so that partial becomes missing."""
    with options.connect() as client:
        at = find_arc(client, arc, namespace)
        details = client.clean_lot(*at, lot, why)
    attempts = counted(len(details.failed_attempts), "failed attempt")
    state = details.state or "not tried"
    options.write_line(
        details, f"lot {lot} of arc {'/'.join(at)} is {state}; {attempts} left nothing behind"
    )


@app.command(group=_CHANGE)
def sync(
    arc: Annotated[
        str | None, Parameter(help="the arc; default: all arcs", show_default=False)
    ] = None,
    /,
    *,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Rebuild the state keys and well-known manifests in the object store."""
    with options.connect() as client:
        if arc is not None:
            arcs = [find_arc(client, arc, namespace)]
        else:
            arcs = [(each.namespace, each.name) for each in client.arcs(namespace).arcs]
        results = {"/".join(at): _sync(client, *at) for at in arcs}
    options.write(results, _write_synced)


def _write_synced(results: dict[str, Synced]) -> None:
    for arc, result in results.items():
        removed = f", keys of {result.removed:,} unknown lots removed" if result.removed else ""
        write_line(f"arc {arc}: {result.lots:,} lots, {result.changed:,} corrected{removed}")
        if result.lost:
            note(f"{result.lost:,} manifests of arc {arc} are missing in the object store")
    if not results:
        note("there are no arcs yet; declare one with `penstock arcs apply FILE`")


def _sync(client: Client, namespace: str, arc: str) -> Synced:
    total, after = Synced(0, 0, 0, 0, None), None
    while True:
        page = client.sync_arc(namespace, arc, after)
        total = Synced(
            total.lots + page.lots,
            total.changed + page.changed,
            total.removed + page.removed,
            total.lost + page.lost,
            None,
        )
        after = page.next
        if after is None:
            return total
