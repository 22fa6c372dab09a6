"""`penstock arcs delete | clean | sync | backfill | backfills`."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter

from penstock.cli import exit_codes
from penstock.cli.options import REMOTE, Json, Limit, Namespace, RemoteFlags, Why, switch
from penstock.cli.output import Column, note, write_fields, write_json, write_line, write_table
from penstock.cli.targets import ArcName, From, LotId, To, find_arc, read_bound
from penstock.cli.times import show_duration, show_time
from penstock.client import Client
from penstock.errors import Invalid
from penstock.schema.arcs import Synced
from penstock.schema.operations import Backfill, BackfillPlan

_CHANGE = Group("Change", sort_key=3)
app = App(name="lots")

Move = Literal["pause", "resume", "cancel"]
_LOOK_SECONDS = 1.0
_LINES_MAX = 50
_ENDED = ("done", "cancelled")
_CUT = "more lots need it: when this backfill has ended, start another"


@app.command(group=_CHANGE)
def delete(
    arc: ArcName,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Forget an arc: no engine runs it any more; its job, its runs and its lots stay."""
    with remote.connect() as client:
        named = find_arc(client, arc, namespace)
        client.delete_arc(named.namespace, named.name)
    if as_json:
        write_json(named)
    else:
        write_line(f"arc {named.namespace}/{named.name} is forgotten")


@app.command(group=_CHANGE)
def clean(
    arc: ArcName,
    lot: LotId,
    /,
    *,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Remove what failed attempts on a lot left, good parts too: partial becomes missing."""
    with remote.connect() as client:
        named = find_arc(client, arc, namespace)
        found = client.clean_lot(named.namespace, named.name, lot, why)
    if as_json:
        write_json(found)
        return
    gone = len(found.failed_attempts)
    write_line(
        f"lot {lot} of arc {named.namespace}/{named.name} is {found.state or 'not tried'}: "
        f"nothing is left of {gone} failed {'attempt' if gone == 1 else 'attempts'}"
    )


@app.command(group=_CHANGE)
def sync(
    arc: Annotated[
        str | None, Parameter(help="the arc; all, if none is named", show_default=False)
    ] = None,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Make the state keys and well-known manifests of the object store anew."""
    done = {}
    with remote.connect() as client:
        if arc is not None:
            named = find_arc(client, arc, namespace)
            names = [(named.namespace, named.name)]
        else:
            names = [(each.namespace, each.name) for each in client.arcs(namespace).arcs]
        for at in names:
            done["/".join(at)] = _sync(client, *at)
    if as_json:
        write_json(done)
        return
    for name, found in done.items():
        told = f"arc {name}: {found.lots:,} lots, {found.changed:,} put right"
        told += f", keys of {found.removed:,} unknown lots removed" if found.removed else ""
        write_line(told)
        if found.lost:
            note(f"{found.lost:,} manifests of arc {name} are not in the object store any more")
    if not done:
        note("there are no arcs yet; declare one with `penstock arcs apply FILE`")


def _sync(client: Client, namespace: str, arc: str) -> Synced:
    total, after = Synced(0, 0, 0, 0, None), None
    while True:
        found = client.sync_arc(namespace, arc, after)
        total = Synced(
            total.lots + found.lots,
            total.changed + found.changed,
            total.removed + found.removed,
            total.lost + found.lost,
            None,
        )
        after = found.next
        if after is None:
            return total


@app.command(group=_CHANGE)
def backfill(
    arc: ArcName,
    /,
    *,
    first: From = None,
    last: To = None,
    lot: Annotated[
        tuple[str, ...] | None, Parameter(help="exactly this lot; may be repeated")
    ] = None,
    failed_and_missing: Annotated[bool, switch("only lots that failed or are missing")] = False,
    all_lots: Annotated[
        bool, Parameter(name="--all", negative=(), show_default=False, help="good lots, too")
    ] = False,
    stale: Annotated[bool, switch("also lots whose inputs were made anew since")] = False,
    newest_first: Annotated[bool, switch("begin with the newest lot")] = False,
    max_running: Annotated[int, Parameter(help="how many lots at a time")] = 4,
    dry_run: Annotated[bool, switch("only show what would be done")] = False,
    watch: Annotated[bool, switch("stay until it has ended")] = False,
    why: Annotated[str, Parameter(help="the reason, for the record", show_default=False)] = "",
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Repair lots of an arc that failed or are missing; good ones stay as they are.

    Name a range with --from and --to, or lots with --lot. Lots with free ids
    need neither: then it is for all that failed or are missing, 10,000 at most.

    --failed-and-missing is the default; --stale and --all add other lots.
    Engines do the work (`penstock arcs work`), after fresh lots. The exit code
    is 3 if a dry run finds a lot that is not good, or if such lots are left
    when --watch ends.
    """
    with remote.connect() as client:
        named = find_arc(client, arc, namespace)
        begun = client.backfill(
            named.namespace,
            named.name,
            read_bound(first),
            read_bound(last),
            lots=lot or (),
            failed_and_missing=failed_and_missing,
            all_lots=all_lots,
            stale=stale,
            newest_first=newest_first,
            max_running=max_running,
            dry_run=dry_run,
            why=why,
        )
        if begun.plan is not None:
            return _tell_plan(begun.plan, as_json)
        if begun.backfill is None:
            raise Invalid("the server has neither begun a backfill nor planned one")
        found = begun.backfill
        if not as_json:
            write_line(found.id)
            note(f"`penstock arcs backfills {found.id}` shows how far it is; engines do the work")
            if found.is_cut:
                note(_CUT)
        if watch:
            found = _follow(client, found.id)
    if as_json:
        write_json(found)
    left = found.failed + found.waiting + found.held
    return exit_codes.GAPS if watch and left else exit_codes.DONE


def _tell_plan(plan: BackfillPlan, as_json: bool) -> int:
    amiss = sum(number for what, number in plan.totals.items() if what not in ("good", "stale"))
    code = exit_codes.GAPS if amiss else exit_codes.DONE
    if as_json:
        write_json(plan)
        return code
    lots = _lots(plan.count, plan.interval, plan.first, plan.last)
    write_line(f"arc {plan.namespace}/{plan.arc}, {lots}: {_numbers(plan.totals)}")
    write_line(f"it would: {_numbers(plan.actions)}")
    if plan.lines:
        write_line()
        write_table(
            (Column("lot", whole=True), Column("is", whole=True), "would be", "because"),
            ((x.lot, x.now, _done(x.action), x.cause) for x in plan.lines[:_LINES_MAX]),
        )
    if len(plan.lines) > _LINES_MAX or plan.is_cut:
        note(f"the first {_LINES_MAX} lots are shown; --json shows more")
    return code


def _lots(number: int, interval: str | None, first: str, last: str) -> str:
    """The lots of a backfill in a few words; without an interval they are a list."""
    if interval is not None:
        return f"{number:,} lots of {interval} from {first} to {last}"
    if number < 2:
        return f"lot {first}" if number else "no lots"
    return f"{number:,} lots, {first} to {last}"


def _numbers(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in counts.items() if number) or "nothing"


def _done(action: str) -> str:
    return {
        "leave": "left alone",
        "wait": "waited for",
        "follow": "followed",
        "run": "run",
        "retry": "tried again",
        "unhold": "let go and tried again",
        "rerun": "made anew",
    }.get(action, action)


def _follow(client: Client, backfill_id: str) -> Backfill:
    """Tell on stderr how a backfill goes on, until it has ended or somebody has paused it."""
    told = ""
    while True:
        found = client.get_backfill(backfill_id)
        line = _line(found)
        if line != told:
            note(line)
            told = line
        if found.state in (*_ENDED, "paused"):
            return found
        time.sleep(_LOOK_SECONDS)


def _line(found: Backfill) -> str:
    counts = {
        "going": found.going,
        "done": found.done,
        "failed": found.failed,
        "waiting": found.waiting,
        "held": found.held,
        "good": found.good,
    }
    said = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    return f"{found.state}: looked at {found.looked_at:,} of {found.count:,} lots; {said or 'none'}"


@app.command(group=_CHANGE)
def backfills(
    backfill_id: Annotated[str | None, Parameter(help="one of them", show_default=False)] = None,
    move: Annotated[
        Move | None, Parameter(help="pause it, resume it, cancel it", show_default=False)
    ] = None,
    /,
    *,
    why: Annotated[str | None, Parameter(help="the reason, for the record")] = None,
    watch: Annotated[bool, switch("stay until it has ended")] = False,
    limit: Limit = 20,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List backfills, or show one of them; pause, resume or cancel it."""
    with remote.connect() as client:
        if backfill_id is None:
            listed = client.backfills(limit)
            if as_json:
                write_json(listed)
            else:
                _write_backfills(listed.backfills)
            return
        found = _moved(client, backfill_id, move, why)
        if watch:
            found = _follow(client, backfill_id)
    if as_json:
        write_json(found)
    else:
        _write_backfill(found)


def _moved(client: Client, backfill_id: str, move: Move | None, why: str | None) -> Backfill:
    if move is None:
        return client.get_backfill(backfill_id)
    if not why:
        raise Invalid(f"why {move} it? Say so with --why, for the record")
    act = {
        "pause": client.pause_backfill,
        "resume": client.resume_backfill,
        "cancel": client.cancel_backfill,
    }[move]
    return act(backfill_id, why)


def _write_backfills(found: Sequence[Backfill]) -> None:
    if not found:
        note("there are no backfills; start one with `penstock arcs backfill ARC`")
        return
    write_table(
        ("id", "arc", Column("state", whole=True), "lots", "so far", Column("since", whole=True)),
        (
            (
                each.id,
                f"{each.namespace}/{each.arc}",
                each.state,
                f"{each.first} to {each.last}" if each.count > 1 else each.first,
                _line(each).partition("; ")[2],
                show_time(each.since),
            )
            for each in found
        ),
    )


def _write_backfill(found: Backfill) -> None:
    rate = found.lots_per_hour
    write_fields(
        [
            ("backfill", found.id),
            ("arc", f"{found.namespace}/{found.arc}"),
            ("state", found.state),
            ("lots", _lots(found.count, found.interval, found.first, found.last)),
            ("more lots", _CUT if found.is_cut else None),
            ("for lots", found.scope),
            (
                "at a time",
                f"{found.max_running}, {'newest' if found.newest_first else 'oldest'} first",
            ),
            ("so far", _line(found).partition(": ")[2]),
            ("has run", show_duration(round(found.seconds * 1000))),
            ("rate", f"{rate:,.0f} lots an hour" if rate is not None else None),
            ("begun by", f"{found.who}{': ' if found.why else ''}{found.why}"),
        ]
    )
    if found.failures:
        write_line()
        write_table(
            (Column("failed again", whole=True), "error"),
            ((each.lot, each.error) for each in found.failures),
        )
