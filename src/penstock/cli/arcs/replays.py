"""`penstock replays`: make again everything made from bad lots, in order."""

import time
from collections.abc import Callable
from typing import Annotated

from cyclopts import App, Group, Parameter
from rich.live import Live

from penstock import ids
from penstock.cli import exit_codes
from penstock.cli.arcs.replay_text import (
    progress,
    progress_bar,
    unstarted,
    write_plan,
    write_replay,
    write_replays,
    write_steps,
)
from penstock.cli.formats import read_moment
from penstock.cli.options import OPTIONS, Limit, Namespace, OptionalReason, Options, Reason, option
from penstock.cli.output import note, out, write_json, write_line
from penstock.cli.targets import exact_dataset, exact_job
from penstock.client import Client, Unreachable
from penstock.errors import Invalid
from penstock.schema.operations import BadLots, Replay
from penstock.states import StepState

_LOOK = Group("Look", sort_key=2)
_CHANGE = Group("Change", sort_key=3)

app = App(
    name="replays",
    help_epilogue="""Examples:
  penstock replays start --dataset shop/clean --lot 20261115PT1H09
  penstock replays start --dataset shop/clean --lot 20261115PT1H09 --yes --why bad
  penstock replays start --job shop/clean --job-version 0a51…
  penstock replays start --dataset shop/raw --from 2d --to 1d
  penstock replays start --batch bid0000000001 --downstream-only
  penstock replays watch 019a7f6c-8a00-7000-8000-000000000001""",
)

ReplayId = Annotated[str, Parameter(help="the replay")]
_LOOK_SECONDS = 1.0
_MAX_RUNNING_MOST = 10_000


@app.command(
    group=_CHANGE,
    help_epilogue="""Examples:
  penstock replays start --dataset shop/clean --lot 20261115PT1H09
  penstock replays start --dataset shop/clean --lot 20261115PT1H09 --yes --why bad

Without --yes it only shows the plan. A plan has each lot of a job whose last
good run read bad lots, or lots made from them. If a job of Penstock made the
bad lot, the plan begins with that job. Engines (`penstock arcs start`) do the
work. Each step starts when the steps before it are done.

With --watch the exit code is 0 if all steps are done, and 3 if steps failed or
the replay was paused or cancelled.""",
)
def start(
    *,
    dataset: Annotated[str | None, option("the dataset with bad lots")] = None,
    lot: Annotated[str | None, option("its bad lot")] = None,
    version: Annotated[str | None, option("the bad version; default: the current one")] = None,
    any_version: Annotated[bool, option("every version of the lot is bad")] = False,
    job: Annotated[str | None, option("the job that made bad lots")] = None,
    job_version: Annotated[str | None, option("the bad version of the job")] = None,
    first: Annotated[
        str | None, option("only lots published since then; 2d is two days ago", "--from")
    ] = None,
    last: Annotated[str | None, option("only lots published before then", "--to")] = None,
    batch: Annotated[str | None, option("the bad deposit")] = None,
    downstream_only: Annotated[bool, option("do not make the bad lot itself")] = False,
    max_running: Annotated[int, Parameter(help="how many steps at a time")] = 4,
    dry_run: Annotated[bool, option("only show the plan, as without --yes")] = False,
    yes: Annotated[bool, option("start it")] = False,
    why: OptionalReason = "",
    replay_id: Annotated[
        str | None, option("an id of your choice: repeating it changes nothing", "--id")
    ] = None,
    watch: Annotated[bool, option("follow it until it ends")] = False,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> int:
    """Make again everything made from bad lots, in order, or show the plan."""
    if dry_run and yes:
        raise Invalid("--dry-run shows the plan and --yes starts it; omit one of them")
    if not 1 <= max_running <= _MAX_RUNNING_MOST:
        raise Invalid(f"--max-running is a number from 1 to {_MAX_RUNNING_MOST:,}")
    if dataset is None and job is None and batch is None:
        raise Invalid("name the bad lots: --dataset with --lot or a time, --job, or --batch")
    if yes and not why:
        raise Invalid("give the reason with --why, for the audit log")
    with options.connect() as client:
        bad = BadLots(
            **_bad_entity(client, dataset, job, namespace),
            lot=lot,
            version=version,
            any_version=any_version,
            job_version=job_version,
            start=read_moment(first),
            end=read_moment(last),
            batch=batch,
            downstream_only=downstream_only,
        )
        if not yes:
            return _show_plan(client, bad, max_running, options)
        replay = client.start_replay(
            replay_id or ids.new_id(), bad, why=why, max_running=max_running
        )
        if not options.json:
            write_line(replay.id)
            note(f"`penstock replays watch {replay.id}` follows it; engines do the work")
        if watch:
            replay = _follow(client, replay.id, options)
    if options.json:
        write_json(replay)
    return _exit_code(replay) if watch else exit_codes.DONE


def _bad_entity(
    client: Client, dataset: str | None, job: str | None, namespace: str | None
) -> dict[str, str]:
    """Resolve the exact dataset or job, also for a plan."""
    if dataset is not None and job is not None:
        raise Invalid("name a dataset with bad lots or the job that made them, not both")
    if dataset is not None:
        at, name = exact_dataset(client, dataset, namespace)
        return {"namespace": at, "dataset": name}
    if job is not None:
        at, name = exact_job(client, job, namespace)
        return {"namespace": at, "job": name}
    return {}


def _show_plan(client: Client, bad: BadLots, max_running: int, options: Options) -> int:
    plan = client.plan_replay(bad, at_once=max_running)
    options.write(plan, write_plan)
    if options.json:
        return exit_codes.DONE
    if plan.steps:
        note("nothing was started; pass --yes --why REASON to start it")
    elif bad.lot and not bad.version and not bad.any_version:
        note("other lots may be made from an older version of the lot: pass --any-version")
    return exit_codes.DONE


def _exit_code(replay: Replay) -> int:
    return exit_codes.DONE if replay.state == "done" else exit_codes.GAPS


@app.command(name="list", group=_LOOK)
def list_replays(*, limit: Limit = 20, options: Options = OPTIONS) -> None:
    """List the last replays, newest first."""
    with options.connect() as client:
        page = client.replays(limit)
    options.write(page, lambda page: write_replays(page.replays))


@app.command(group=_LOOK)
def show(
    replay_id: ReplayId,
    /,
    *,
    state: Annotated[StepState | None, option("only steps in this state")] = None,
    first: Annotated[int, Parameter(help="the first step to show")] = 1,
    limit: Limit = 100,
    options: Options = OPTIONS,
) -> None:
    """Show the progress of a replay, and its steps."""
    with options.connect() as client:
        replay = client.replay(replay_id)
        steps = client.replay_steps(replay_id, state=state, first=first, limit=limit).steps
    if options.json:
        write_json({"replay": replay, "steps": steps})
        return
    write_replay(replay)
    if steps:
        write_line()
        write_steps(steps)
    if len(steps) == limit:
        note(f"steps {steps[0].number} to {steps[-1].number} are shown; --first shows others")


@app.command(group=_LOOK)
def watch(replay_id: ReplayId, /, *, options: Options = OPTIONS) -> int:
    """Follow a replay until it ends or is paused.

    The exit code is 0 if all steps are done, else 3.
    """
    with options.connect() as client:
        replay = _follow(client, replay_id, options)
    if not options.json:
        for step in replay.failures:
            name = f"{step.namespace}/{step.job} lot {step.lot}"
            write_line(f"step {step.number} failed, {name}: {step.note}")
    options.write(replay, _write_state)
    return _exit_code(replay)


def _follow(client: Client, replay_id: str, options: Options) -> Replay:
    """Draw a replay on a terminal until it ends, else write each change to stderr."""
    console = out()
    if options.json or not console.is_terminal:
        return _poll(client, replay_id, _ChangeLog().show)
    with Live(console=console, auto_refresh=False) as live:
        return _poll(client, replay_id, lambda r: live.update(progress_bar(r), refresh=True))


def _poll(client: Client, replay_id: str, show: Callable[[Replay], None]) -> Replay:
    """Fetch a replay until it ends or is paused; wait for a server that is away."""
    replay = client.replay(replay_id)
    while True:
        show(replay)
        is_ended = replay.state != "running" and not replay.going
        if replay.state == "paused" or is_ended:
            return replay
        time.sleep(_LOOK_SECONDS)
        try:
            replay = client.replay(replay_id)
        except Unreachable as error:
            note(f"{error}; trying again")


class _ChangeLog:
    """A line on stderr for each change."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, replay: Replay) -> None:
        line = f"{replay.state}: {progress(replay)}"
        if line != self._last:
            note(line)
            self._last = line


@app.command(group=_CHANGE)
def pause(replay_id: ReplayId, /, *, why: Reason, options: Options = OPTIONS) -> None:
    """Pause a replay: running steps end, no more steps start."""
    with options.connect() as client:
        options.write(client.pause_replay(replay_id, why), _write_state)


@app.command(group=_CHANGE)
def resume(replay_id: ReplayId, /, *, why: Reason, options: Options = OPTIONS) -> None:
    """Resume a paused replay."""
    with options.connect() as client:
        options.write(client.resume_replay(replay_id, why), _write_state)


@app.command(group=_CHANGE)
def cancel(replay_id: ReplayId, /, *, why: Reason, options: Options = OPTIONS) -> None:
    """Cancel a replay: running steps end, the rules of their jobs decide about the others."""
    with options.connect() as client:
        options.write(client.cancel_replay(replay_id, why), _write_state)


def _write_state(replay: Replay) -> None:
    write_line(f"replay {replay.id} is {replay.state}: {progress(replay)}")
    if text := unstarted(replay):
        write_line(text)
