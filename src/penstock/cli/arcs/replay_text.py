"""Replays as text: the plan as a tree, steps as a table, and progress."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.drawing import Label, Tree, symbols_for
from penstock.cli.formats import show_duration, show_time
from penstock.cli.output import (
    Column,
    counted,
    line_width,
    note,
    out,
    plain,
    write_fields,
    write_line,
    write_table,
)
from penstock.schema.operations import PlannedStep, Replay, ReplayPlan, ReplayStep

_LINES_MAX = 200
_BAR_WIDTH = 40
_TOP = ""
_STYLES = {
    "rerun": "green",
    "follow": "cyan",
    "leave": "bold red",
    "blocked": "magenta",
    "pending": "dim",
    "going": "cyan",
    "done": "green",
    "failed": "bold red",
    "running": "cyan",
    "paused": "yellow",
    "cancelled": "magenta",
}


def write_plan(plan: ReplayPlan) -> None:
    """Draw the plan of a replay, with its expected cost."""
    write_line(f"replay of {plan.target}")
    if not plan.steps:
        write_line("no job has read these lots, so there is nothing to do")
        return
    for line in islice(_tree(plan.steps), _LINES_MAX):
        write_line(line)
    if len(plan.steps) > _LINES_MAX:
        note(f"the first {_LINES_MAX} of {len(plan.steps):,} steps are drawn; --json has them all")
    write_line()
    write_table(
        ("job", Column("steps", numbers=True), Column("took", whole=True)),
        ((f"{t.namespace}/{t.job}", t.steps, seconds(t.seconds)) for t in plan.totals.jobs),
    )
    write_line()
    write_line(_totals(plan))


def _totals(plan: ReplayPlan) -> str:
    totals = plan.totals
    words = {"leave": "skip because they are held", "blocked": "skip because of an earlier step"}
    actions = ", ".join(
        f"{number:,} to {words.get(action, action)}" for action, number in totals.actions.items()
    )
    return (
        f"{counted(totals.steps, 'step')}: {actions}; by past runs "
        f"{seconds(totals.cost_seconds)} of work, {seconds(totals.critical_path_seconds)} on the "
        f"longest path, about {seconds(totals.wall_seconds)} with {totals.at_once} at a time"
    )


def _tree(steps: Sequence[PlannedStep]) -> Iterator[Text]:
    """Draw each step once, below the last step that it waits for."""
    by_key = {_key(step.number): step for step in steps}
    below: dict[str, list[str]] = defaultdict(list)
    for step in steps:
        below[_key(max(step.before)) if step.before else _TOP].append(_key(step.number))
    console = out()
    symbols = symbols_for(console.encoding)

    def label(key: str) -> Label:
        step = by_key[key]
        name = f"{step.number}. {step.namespace}/{step.job}  {step.lot}"
        return Label(symbols.job, name, tuple(_details(step)), _STYLES.get(step.action, ""))

    return Tree(label, lambda key: below.get(key, ()), symbols, line_width(console)).draw(_TOP)


def _key(number: int) -> str:
    return f"{number:09d}"


def _details(step: PlannedStep) -> Iterator[Text]:
    yield Text(step.action, _STYLES.get(step.action, ""))
    if step.run is not None:
        yield Text(seconds(step.seconds), "dim")
    if len(step.before) > 1:
        yield Text(f"after {', '.join(map(str, step.before))}", "dim")
    if step.note:
        yield Text(plain(step.note), "dim")


def write_replays(replays: Sequence[Replay]) -> None:
    """Write a table of replays."""
    if not replays:
        note("there are no replays; `penstock replays start --dataset D --lot L` plans one")
        return
    write_table(
        ("id", Column("state", whole=True), "of", "so far", Column("since", whole=True)),
        (
            (each.id, state_of(each.state), each.target, progress(each), show_time(each.since))
            for each in replays
        ),
    )


def write_replay(replay: Replay) -> None:
    """Write the progress of a replay."""
    write_fields(
        [
            ("replay", replay.id),
            ("of", replay.target),
            ("bad versions", ", ".join(replay.versions)),
            ("state", state_of(replay.state)),
            ("steps", f"{replay.steps:,}, {replay.max_running} at a time"),
            ("so far", progress(replay)),
            ("not started", unstarted(replay)),
            ("running for", seconds(replay.seconds)),
            ("past runs took", seconds(replay.cost_seconds)),
            ("started by", f"{replay.who}{': ' if replay.why else ''}{replay.why}"),
        ]
    )


def write_steps(steps: Iterable[ReplayStep]) -> None:
    """Write a table of steps."""
    write_table(
        (
            Column("step", numbers=True),
            "job",
            "lot",
            Column("is", whole=True),
            "run",
            "note",
        ),
        (
            (
                step.number,
                f"{step.namespace}/{step.job}",
                step.lot,
                state_of(step.state),
                step.run,
                step.note,
            )
            for step in steps
        ),
    )


def progress(replay: Replay) -> str:
    """Count the steps by state, in words."""
    counts = {
        "done": replay.done,
        "going": replay.going,
        "pending": replay.pending,
        "failed": replay.failed,
        "blocked": replay.blocked,
    }
    return ", ".join(f"{n:,} {state}" for state, n in counts.items() if n) or "nothing to do"


def unstarted(replay: Replay) -> str:
    """Describe the rule that applies to steps that were not started."""
    if not replay.stale:
        return ""
    were = "was" if replay.stale == 1 else "were"
    return (
        f"{replay.stale:,} of the steps not started {were} stale at its end: the rule of their "
        "job (rerun or hold) applies"
    )


def progress_bar(replay: Replay) -> RenderableType:
    """Draw a running replay for a terminal."""
    title = Text.assemble("replay of ", plain(replay.target), ": ", state_of(replay.state))
    ended = replay.done + replay.failed + replay.blocked
    bar = ProgressBar(total=max(replay.steps, 1), completed=ended, width=_BAR_WIDTH)
    lines = Table.grid(padding=(0, 2))
    for step in replay.under_way[: replay.max_running]:
        name = f"{step.number}. {plain(step.namespace)}/{plain(step.job)}  {plain(step.lot)}"
        lines.add_row(Text("  going", "cyan"), Text(name), Text((step.now or "").lower(), "dim"))
    for step in replay.failures[:_LINES_MAX]:
        name = f"{step.number}. {plain(step.namespace)}/{plain(step.job)}  {plain(step.lot)}"
        lines.add_row(Text("  failed", "bold red"), Text(name), Text(plain(step.note), "dim"))
    return Group(title, bar, Text(progress(replay)), lines)


def state_of(state: str) -> Text:
    """Color a state."""
    return Text(state, _STYLES.get(state, ""))


def seconds(number: float) -> str:
    """Format a duration."""
    return show_duration(round(number * 1000))
