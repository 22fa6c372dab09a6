"""`penstock backfills`."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import App, Parameter

from penstock.cli import exit_codes
from penstock.cli.formats import show_duration, show_time
from penstock.cli.options import OPTIONS, Limit, Namespace, OptionalReason, Options, Reason, option
from penstock.cli.output import Column, note, write_fields, write_line, write_table
from penstock.cli.targets import ArcName, From, To, find_arc, read_bound
from penstock.client import Client
from penstock.errors import Invalid
from penstock.schema.operations import Backfill, BackfillList, BackfillPlan

app = App(
    name="backfills",
    help_epilogue="""Examples:
  penstock backfills start shop/clean --from 2026-11-01 --to 2026-11-15 --dry-run
  penstock backfills start shop/letters --lot monday --lot tuesday --why repaired
  penstock backfills list
  penstock backfills pause 019a7f6c-8a00-7000-8000-000000000001 --why "too much load"

Engines (`penstock arcs start`) run the lots, after new lots.""",
)

BackfillId = Annotated[str, Parameter(help="the backfill")]
Watch = Annotated[bool, option("follow it until it ends")]
_LOOK_SECONDS = 1.0
_LINES_MAX = 50
_CUT = "more lots need it: when this backfill has ended, start another"
_ACTIONS = {
    "leave": "left alone",
    "wait": "waited for",
    "follow": "followed",
    "run": "run",
    "retry": "retried",
    "release": "released and retried",
    "rerun": "made again",
}


@app.command
def start(
    arc: ArcName,
    /,
    *,
    first: From = None,
    last: To = None,
    lot: Annotated[tuple[str, ...] | None, Parameter(help="only this lot; repeatable")] = None,
    failed_and_missing: Annotated[bool, option("only failed and missing lots")] = False,
    all_lots: Annotated[bool, option("good lots too", "--all")] = False,
    stale: Annotated[bool, option("lots with newer inputs too")] = False,
    newest_first: Annotated[bool, option("begin with the newest lot")] = False,
    max_running: Annotated[int, Parameter(help="how many lots at a time")] = 4,
    dry_run: Annotated[bool, option("only show what it would do")] = False,
    watch: Watch = False,
    why: OptionalReason = "",
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> int:
    """Make failed and missing lots of an arc; good lots stay as they are.

    Name a range with --from and --to, or lots with --lot. An arc whose lots are
    not intervals needs neither: the backfill then takes all its failed and
    missing lots, 10,000 at most.

    --failed-and-missing is the default; --stale and --all add other lots. The
    exit code is 3 if a dry run finds a lot that is not good, or if such lots
    are left when --watch ends.
    """
    with options.connect() as client:
        result = client.backfill(
            *find_arc(client, arc, namespace),
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
        if result.plan is not None:
            options.write(result.plan, _write_plan)
            is_good = all(not n or k in ("good", "stale") for k, n in result.plan.totals.items())
            return exit_codes.DONE if is_good else exit_codes.GAPS
        if result.backfill is None:
            raise Invalid("the server has neither started nor planned a backfill")
        backfill = result.backfill
        if not options.json:
            write_line(backfill.id)
            note(f"`penstock backfills show {backfill.id}` shows its progress; engines do the work")
            if backfill.is_cut:
                note(_CUT)
        if watch:
            backfill = _follow(client, backfill.id)
    options.write(backfill, lambda _: None)
    left = backfill.failed + backfill.waiting + backfill.held
    return exit_codes.GAPS if watch and left else exit_codes.DONE


def _write_plan(plan: BackfillPlan) -> None:
    lots = _lots(plan.count, plan.interval, plan.first, plan.last)
    write_line(f"arc {plan.namespace}/{plan.arc}, {lots}: {_numbers(plan.totals)}")
    write_line(f"it would: {_numbers(plan.actions)}")
    if plan.lines:
        write_line()
        write_table(
            (Column("lot", whole=True), Column("is", whole=True), "would be", "because"),
            (
                (line.lot, line.now, _ACTIONS.get(line.action, line.action), line.cause)
                for line in plan.lines[:_LINES_MAX]
            ),
        )
    if len(plan.lines) > _LINES_MAX or plan.is_cut:
        note(f"the first {_LINES_MAX} lots are shown; --json shows more")


def _lots(number: int, interval: str | None, first: str, last: str) -> str:
    """Describe the lots of a backfill: a range of intervals, or a list."""
    if interval is not None:
        return f"{number:,} lots of {interval} from {first} to {last}"
    if number < 2:
        return f"lot {first}" if number else "no lots"
    return f"{number:,} lots, {first} to {last}"


def _numbers(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in counts.items() if number) or "nothing"


def _follow(client: Client, backfill_id: str) -> Backfill:
    """Write each change to stderr until the backfill ends or is paused."""
    last_line = ""
    while True:
        backfill = client.get_backfill(backfill_id)
        line = f"{backfill.state}: {_progress(backfill)}"
        if line != last_line:
            note(line)
            last_line = line
        if backfill.state in ("done", "cancelled", "paused"):
            return backfill
        time.sleep(_LOOK_SECONDS)


def _progress(backfill: Backfill) -> str:
    seen = f"looked at {backfill.looked_at:,} of {backfill.count:,} lots"
    return f"{seen}; {_counts(backfill)}"


def _counts(backfill: Backfill) -> str:
    names = ("going", "done", "failed", "waiting", "held", "good")
    counts = {name: getattr(backfill, name) for name in names}
    return _numbers(counts) if any(counts.values()) else "none"


@app.command(name="list")
def list_backfills(*, limit: Limit = 20, options: Options = OPTIONS) -> None:
    """List the last backfills."""
    with options.connect() as client:
        page = client.backfills(limit)
    options.write(page, _write_list)


def _write_list(page: BackfillList) -> None:
    if not page.backfills:
        note("there are no backfills; start one with `penstock backfills start ARC`")
        return
    write_table(
        (
            "id",
            "arc",
            Column("state", whole=True),
            "lots",
            "so far",
            Column("since", whole=True),
        ),
        (
            (
                each.id,
                f"{each.namespace}/{each.arc}",
                each.state,
                f"{each.first} to {each.last}" if each.count > 1 else each.first,
                _counts(each),
                show_time(each.since),
            )
            for each in page.backfills
        ),
    )


@app.command
def show(backfill_id: BackfillId, /, *, watch: Watch = False, options: Options = OPTIONS) -> None:
    """Show the progress of a backfill, and the lots that failed."""
    with options.connect() as client:
        backfill = _follow(client, backfill_id) if watch else client.get_backfill(backfill_id)
    options.write(backfill, _write_backfill)


@app.command
def pause(backfill_id: BackfillId, /, *, why: Reason, options: Options = OPTIONS) -> None:
    """Pause a backfill: running lots end, no more lots start."""
    with options.connect() as client:
        options.write(client.pause_backfill(backfill_id, why), _write_backfill)


@app.command
def resume(backfill_id: BackfillId, /, *, why: Reason, options: Options = OPTIONS) -> None:
    """Resume a paused backfill."""
    with options.connect() as client:
        options.write(client.resume_backfill(backfill_id, why), _write_backfill)


@app.command
def cancel(backfill_id: BackfillId, /, *, why: Reason, options: Options = OPTIONS) -> None:
    """Cancel a backfill: running lots end, the others are not made."""
    with options.connect() as client:
        options.write(client.cancel_backfill(backfill_id, why), _write_backfill)


def _write_backfill(backfill: Backfill) -> None:
    rate = backfill.lots_per_hour
    order = "newest" if backfill.newest_first else "oldest"
    write_fields(
        [
            ("backfill", backfill.id),
            ("arc", f"{backfill.namespace}/{backfill.arc}"),
            ("state", backfill.state),
            ("lots", _lots(backfill.count, backfill.interval, backfill.first, backfill.last)),
            ("more lots", _CUT if backfill.is_cut else None),
            ("for lots", backfill.scope),
            ("at a time", f"{backfill.max_running}, {order} first"),
            ("so far", _progress(backfill)),
            ("running for", show_duration(round(backfill.seconds * 1000))),
            ("rate", f"{rate:,.0f} lots an hour" if rate is not None else None),
            ("started by", f"{backfill.who}{': ' if backfill.why else ''}{backfill.why}"),
        ]
    )
    if backfill.failures:
        write_line()
        write_table(
            (Column("failed again", whole=True), "error"),
            ((each.lot, each.error) for each in backfill.failures),
        )
