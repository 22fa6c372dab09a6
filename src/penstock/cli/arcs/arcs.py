"""`penstock arcs`: its commands, and those that only look."""

import shlex
from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Group, Parameter

from penstock.cli.arcs import lots as arcs_lots
from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import REMOTE, Json, Limit, Namespace, RemoteFlags
from penstock.cli.output import Column, note, write_fields, write_json, write_line, write_table
from penstock.cli.targets import ArcName, find_arc
from penstock.cli.times import show_time
from penstock.schema.arcs import ArcLot, ArcLotDetail, ShownArc
from penstock.states import ArcState

app = App(
    name="arcs",
    help_epilogue="""Examples:
  penstock arcs apply arcs.toml
  penstock arcs work
  penstock arcs status
  penstock arcs show shop/clean 20261115PT1H09
  penstock arcs backfill shop/clean --from 2026-11-01 --to 2026-11-15 --dry-run
  penstock arcs backfill shop/letters --lot monday --lot tuesday --why "repaired"

An arc waits for lots of its inputs and makes lots of its outputs: by a Python
function, or by a command in any language. `penstock arcs work` is an engine
that runs them; there may be many.""",
)

_DO = Group("Declare and run", sort_key=1)
_LOOK = Group("Look", sort_key=2)
# Imported when they are run: an engine needs far more than who looks at an arc.
COMMANDS: tuple[tuple[Group, str, str], ...] = (
    (_DO, "apply", "Declare arcs as a file or a Python module describes them."),
    (_DO, "work", "Run arcs until told to stop: an engine."),
    (_DO, "run", "Run one lot of an arc here and now."),
    (_LOOK, "status", "Show where all arcs stand, and what is running."),
)
for _order, (_group, _name, _text) in enumerate(COMMANDS):
    _path = f"penstock.cli.arcs.{_name}:app"
    app.command(_path, name=_name, help=_text, group=_group, sort_key=_order)
app.command(arcs_lots.app, name="*")

STATES = ("running", "complete", "partial", "missing", "ready", "waiting", "held")
EMPTY = """there are no arcs yet; declare one in a file and apply it:

  # arcs.toml
  namespace = "shop"
  [arcs.clean]
  inputs = ["raw"]
  outputs = ["clean"]
  workload = ["sh", "-c", "cp /data/$PENSTOCK_LOT.csv $PENSTOCK_OUTPUT/"]

  penstock arcs apply arcs.toml
  penstock arcs work"""


@app.command(name="list", group=_LOOK)
def list_arcs(
    *, namespace: Namespace = None, remote: RemoteFlags = REMOTE, as_json: Json = False
) -> None:
    """List arcs, and how many of their lots stand where."""
    with remote.connect() as client:
        found = client.arcs(namespace)
    if as_json:
        write_json(found)
        return
    if not found.arcs:
        for line in EMPTY.splitlines():
            note(line)
        return
    write_arcs(found.arcs)


def write_arcs(arcs: Sequence[ShownArc]) -> None:
    """Arcs, one to a line."""
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
    lot: Annotated[str | None, Parameter(help="one lot of it", show_default=False)] = None,
    /,
    *,
    state: Annotated[ArcState | None, Parameter(help="only lots in this state")] = None,
    after: Annotated[str | None, Parameter(help="only lots after this one")] = None,
    limit: Limit = 20,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show an arc and its lots; or one lot: its parts, failed attempts and manifests."""
    with remote.connect() as client:
        named = find_arc(client, arc, namespace)
        at = named.namespace, named.name
        if lot is not None:
            detail = client.arc_lot(*at, lot)
            if as_json:
                write_json(detail)
            else:
                _write_lot(f"{at[0]}/{at[1]}", detail)
            return
        found = client.arc(*at)
        lots = client.arc_lots(*at, state=state, after=after, limit=limit)
    if as_json:
        write_json({"arc": found, **_plain(lots.lots, lots.next)})
        return
    _write_arc(found)
    write_line()
    if not lots.lots:
        which = f"in state {state} " if state else ""
        note(f"no lot {which}to show; lots come with those of its inputs: `penstock lots register`")
        return
    write_lots(lots.lots)
    if lots.next is not None:
        note(f"{len(lots.lots)} lots shown; --after {lots.next} shows those that follow")


def _plain(lots: Sequence[ArcLot], following: str | None) -> dict[str, object]:
    return {"lots": lots, "next": following}


def _write_arc(arc: ShownArc) -> None:
    def named(namespace: str, dataset: str) -> str:
        return f"{namespace or arc.namespace}/{dataset}"

    load, parts, counts = arc.workload, arc.parts, arc.counts
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
                    named(each.namespace, each.dataset) + ("" if each.subscribe else " (joins)")
                    for each in arc.inputs
                ),
            ),
            ("writes", ", ".join(named(each.namespace, each.dataset) for each in arc.outputs)),
            ("runs", load.function or " ".join(load.command)),
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


def write_lots(lots: Sequence[ArcLot]) -> None:
    """Lots of an arc, one to a line."""
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


def _write_lot(arc: str, found: ArcLotDetail) -> None:
    write_fields(
        [
            ("lot", found.lot),
            ("arc", arc),
            ("state", found.state or "not tried"),
            ("work", found.work),
            ("try", f"{found.attempts} of {found.attempts_max}"),
            ("run", found.run),
            ("worked on by", found.owner),
            ("since", show_time(found.since)),
            ("not before", show_time(found.not_before)),
            ("last error", found.error),
        ]
    )
    if found.parts:
        write_line()
        write_table(
            ("part", Column("state", whole=True), Column("things", numbers=True), "bytes", "error"),
            ((p.part, p.state, p.uris, show_bytes(p.bytes), p.error) for p in found.parts),
        )
    if found.failed_attempts:
        write_line()
        write_table(
            ("failed attempt", Column("left behind", whole=True), Column("at", whole=True)),
            ((each.run, each.state, show_time(each.at)) for each in found.failed_attempts),
        )
    if found.manifests:
        write_line()
        write_table(
            ("made", Column("manifest", whole=True), Column("things", numbers=True), "bytes",
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
                for m in found.manifests
            ),
        )  # fmt: skip
    if found.state == "partial":
        clean = shlex.join(["penstock", "arcs", "clean", arc, found.lot])
        note(f"`{clean} --why …` removes what is left behind")
