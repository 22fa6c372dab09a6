"""`penstock replay`: makes again what was made from a bad lot, in order, and nothing else."""

import time
from collections.abc import Callable
from typing import Annotated, Any

from cyclopts import App, Group, Parameter
from rich.live import Live

from penstock import ids
from penstock.cli import exit_codes
from penstock.cli.arcs.replay_plan import (
    drawn,
    left,
    so_far,
    write_plan,
    write_replay,
    write_replays,
    write_steps,
)
from penstock.cli.options import REMOTE, Json, Limit, Namespace, RemoteFlags, Why, switch
from penstock.cli.output import note, out, write_json, write_line
from penstock.cli.targets import exact_dataset, exact_job
from penstock.cli.times import read_moment
from penstock.client import Client, Unreachable
from penstock.errors import Invalid
from penstock.schema.operations import BadLots, Replay
from penstock.states import StepState

_LOOK = Group("Look", sort_key=2)
_CHANGE = Group("Change", sort_key=3)

app = App(
    name="replay",
    help_epilogue="""Examples:
  penstock replay --dataset shop/clean --lot 20261115PT1H09
  penstock replay --dataset shop/clean --lot 20261115PT1H09 --yes --why stale
  penstock replay --job shop/clean --job-version 0a51…
  penstock replay --dataset shop/raw --from 2d --to 1d
  penstock replay --batch bid0000000001 --downstream-only

Without --yes it only shows what would be done. In it is each lot of a job
whose last good run read what is bad, or anything made from it. If a job of
ours made the bad lot, that is run again first. Engines (`penstock arcs work`)
do the work, and each step begins when those before it are done.

The exit code of --watch and `watch` is 0 if all is done, and 3 if steps failed
or it was paused or cancelled.""",
)

ReplayId = Annotated[str, Parameter(help="the replay")]
_LOOK_SECONDS = 1.0
_MAX_RUNNING_MOST = 10_000


def _flag(text: str, **more: Any) -> Parameter:
    return Parameter(help=text, show_default=False, **more)


@app.default
def replay(
    *,
    dataset: Annotated[str | None, _flag("the dataset that has bad lots")] = None,
    lot: Annotated[str | None, _flag("the lot of it that is bad")] = None,
    version: Annotated[str | None, _flag("the version of the lot; else the one it has")] = None,
    any_version: Annotated[bool, switch("every version that the lot has had is bad")] = False,
    job: Annotated[str | None, _flag("the job that made bad lots")] = None,
    job_version: Annotated[str | None, _flag("the version of the job that did")] = None,
    first: Annotated[
        str | None, _flag("lots published from then on; 2d is two days ago", name="--from")
    ] = None,
    last: Annotated[str | None, _flag("lots published before then", name="--to")] = None,
    batch: Annotated[str | None, _flag("the deposit that is bad")] = None,
    downstream_only: Annotated[bool, switch("leave the lot itself as it is")] = False,
    max_running: Annotated[int, Parameter(help="how many steps at a time")] = 4,
    dry_run: Annotated[bool, switch("only show what would be done, as without --yes")] = False,
    yes: Annotated[bool, switch("do it")] = False,
    why: Annotated[str, _flag("the reason, for the record")] = "",
    replay_id: Annotated[
        str | None, _flag("an id of your choice: the same again changes nothing", name="--id")
    ] = None,
    watch: Annotated[bool, switch("stay until it has ended")] = False,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Make again what was made from bad lots, in order; show what that would be."""
    if dry_run and yes:
        raise Invalid("--dry-run only shows it and --yes does it; leave one of them out")
    if not 1 <= max_running <= _MAX_RUNNING_MOST:
        raise Invalid(f"--max-running is a number from 1 to {_MAX_RUNNING_MOST:,}")
    if dataset is None and job is None and batch is None:
        raise Invalid("say what is bad: --dataset with --lot or a time, --job, or --batch")
    if yes and not why:
        raise Invalid("why replay it? Say so with --why, for the record")
    with remote.connect() as client:
        bad = BadLots(
            **_named(client, dataset, job, namespace),
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
            return _show(client, bad, max_running, as_json)
        chosen = replay_id or ids.new_id()
        found = client.start_replay(chosen, bad, why=why, max_running=max_running)
        if not as_json:
            write_line(found.id)
            note(f"`penstock replay watch {found.id}` follows it; engines do the work")
        if watch:
            found = _follow(client, found.id, as_json)
    if as_json:
        write_json(found)
    return _code(found) if watch else exit_codes.DONE


def _named(
    client: Client, dataset: str | None, job: str | None, namespace: str | None
) -> dict[str, str]:
    """The dataset or the job that is meant; exactly, also where it is only shown what would be."""
    if dataset is not None and job is not None:
        raise Invalid("either a dataset has bad lots, or a job has made them; name one of them")
    if dataset is not None:
        at, name = exact_dataset(client, dataset, namespace)
        return {"namespace": at, "dataset": name}
    if job is not None:
        at, name = exact_job(client, job, namespace)
        return {"namespace": at, "job": name}
    return {}


def _show(client: Client, bad: BadLots, at_once: int, as_json: bool) -> int:
    plan = client.plan_replay(bad, at_once=at_once)
    if as_json:
        write_json(plan)
        return exit_codes.DONE
    write_plan(plan)
    if plan.steps:
        note("nothing was done; --yes --why REASON does it")
    elif bad.lot and not bad.version and not bad.any_version:
        note("others may stand on an older version of the lot: --any-version looks for them")
    return exit_codes.DONE


def _code(found: Replay) -> int:
    return exit_codes.DONE if found.state == "done" else exit_codes.GAPS


@app.command(name="list", group=_LOOK)
def list_replays(*, limit: Limit = 20, remote: RemoteFlags = REMOTE, as_json: Json = False) -> None:
    """List the last replays, newest first."""
    with remote.connect() as client:
        listed = client.replays(limit)
    if as_json:
        write_json(listed)
    else:
        write_replays(listed.replays)


@app.command(group=_LOOK)
def show(
    replay_id: ReplayId,
    /,
    *,
    state: Annotated[StepState | None, _flag("only steps in this state")] = None,
    first: Annotated[int, Parameter(help="from which step on")] = 1,
    limit: Limit = 100,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show how far a replay is, and its steps."""
    with remote.connect() as client:
        found = client.replay(replay_id)
        steps = client.replay_steps(replay_id, state=state, first=first, limit=limit).steps
    if as_json:
        write_json({"replay": found, "steps": steps})
        return
    write_replay(found)
    if steps:
        write_line()
        write_steps(steps)
    if len(steps) == limit:
        note(f"steps {steps[0].number} to {steps[-1].number} are shown; --first shows others")


@app.command(group=_LOOK)
def watch(replay_id: ReplayId, /, *, remote: RemoteFlags = REMOTE, as_json: Json = False) -> int:
    """Follow a replay until it has ended, or somebody has paused it."""
    with remote.connect() as client:
        found = _follow(client, replay_id, as_json)
    if as_json:
        write_json(found)
    else:
        for step in found.failures:
            name = f"{step.namespace}/{step.job} lot {step.lot}"
            write_line(f"step {step.number} failed, {name}: {step.note}")
        _write_state(found)
    return _code(found)


def _follow(client: Client, replay_id: str, as_json: bool) -> Replay:
    """Show how a replay goes on: drawn on a terminal, else a line for each change, on stderr."""
    console = out()
    if as_json or not console.is_terminal:
        return _look(client, replay_id, _Lines().show)
    with Live(console=console, auto_refresh=False) as live:
        return _look(client, replay_id, lambda found: live.update(drawn(found), refresh=True))


def _look(client: Client, replay_id: str, show: Callable[[Replay], None]) -> Replay:
    """Look at a replay until it moves no more; a server that is away for a while may come back."""
    found = client.replay(replay_id)
    while True:
        show(found)
        if _is_still(found):
            return found
        time.sleep(_LOOK_SECONDS)
        try:
            found = client.replay(replay_id)
        except Unreachable as error:
            note(f"{error}; trying again")


class _Lines:
    """A line for each change, where nobody looks at a screen."""

    def __init__(self) -> None:
        self._told = ""

    def show(self, found: Replay) -> None:
        line = f"{found.state}: {so_far(found)}"
        if line != self._told:
            note(line)
            self._told = line


def _is_still(found: Replay) -> bool:
    """Whether it moves no more by itself."""
    return found.state == "paused" or (found.state != "running" and not found.going)


@app.command(group=_CHANGE)
def pause(
    replay_id: ReplayId, /, *, why: Why, remote: RemoteFlags = REMOTE, as_json: Json = False
) -> None:
    """Set no more steps going, until it is resumed; those that go end."""
    with remote.connect() as client:
        _write_moved(client.pause_replay(replay_id, why), as_json)


@app.command(group=_CHANGE)
def resume(
    replay_id: ReplayId, /, *, why: Why, remote: RemoteFlags = REMOTE, as_json: Json = False
) -> None:
    """Let a replay that was paused go on."""
    with remote.connect() as client:
        _write_moved(client.resume_replay(replay_id, why), as_json)


@app.command(group=_CHANGE)
def cancel(
    replay_id: ReplayId, /, *, why: Why, remote: RemoteFlags = REMOTE, as_json: Json = False
) -> None:
    """Stop a replay for good: what goes ends, the rest is left to its own rule."""
    with remote.connect() as client:
        _write_moved(client.cancel_replay(replay_id, why), as_json)


def _write_moved(found: Replay, as_json: bool) -> None:
    if as_json:
        write_json(found)
    else:
        _write_state(found)


def _write_state(found: Replay) -> None:
    write_line(f"replay {found.id} is {found.state}: {so_far(found)}")
    if said := left(found):
        write_line(said)
