"""Replays as people see them: the plan as a tree, steps as a table, progress as it goes on."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.drawing import Label, Tree, symbols_for
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
from penstock.cli.times import show_duration, show_time
from penstock.schema.operations import PlannedStep, Replay, ReplayAction, ReplayPlan, ReplayStep

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
    """Draw what a replay would do, and say what it costs."""
    write_line(f"replay of {plan.target}")
    if not plan.steps:
        write_line("no lot of a job stands on that, so there is nothing to do")
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
    found = plan.totals
    said = ", ".join(f"{number:,} to {what}" for what, number in _told(found.actions))
    return (
        f"{counted(found.steps, 'step')}: {said}; by past runs {seconds(found.cost_seconds)} of "
        f"work, {seconds(found.critical_path_seconds)} along the longest way, about "
        f"{seconds(found.wall_seconds)} with {found.at_once} at a time"
    )


def _told(actions: Mapping[ReplayAction, int]) -> Iterator[tuple[str, int]]:
    words = {"leave": "be left, for they are held", "blocked": "be left, for what is before them"}
    for action, number in actions.items():
        yield words.get(action, action), number


def _tree(steps: Sequence[PlannedStep]) -> Iterator[Text]:
    """Each step once, below the last of those that it waits for."""
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


def write_replays(found: Sequence[Replay]) -> None:
    """A table of replays."""
    if not found:
        note("there are no replays; `penstock replay --dataset D --lot L` plans one")
        return
    write_table(
        ("id", Column("state", whole=True), "of", "so far", Column("since", whole=True)),
        (
            (each.id, state_of(each.state), each.target, so_far(each), show_time(each.since))
            for each in found
        ),
    )


def write_replay(found: Replay) -> None:
    """How far a replay is."""
    write_fields(
        [
            ("replay", found.id),
            ("of", found.target),
            ("bad is", ", ".join(found.versions)),
            ("state", state_of(found.state)),
            ("steps", f"{found.steps:,}, {found.max_running} at a time"),
            ("so far", so_far(found)),
            ("left", left(found)),
            ("has run", seconds(found.seconds)),
            ("took before", seconds(found.cost_seconds)),
            ("begun by", f"{found.who}{': ' if found.why else ''}{found.why}"),
        ]
    )


def write_steps(found: Iterable[ReplayStep]) -> None:
    """A table of steps."""
    write_table(
        (Column("step", numbers=True), "job", "lot", Column("is", whole=True), "run", "note"),
        (
            (
                step.number,
                f"{step.namespace}/{step.job}",
                step.lot,
                state_of(step.state),
                step.run,
                step.note,
            )
            for step in found
        ),
    )


def so_far(found: Replay) -> str:
    """What has become of the steps, in words."""
    counts = {
        "done": found.done,
        "going": found.going,
        "pending": found.pending,
        "failed": found.failed,
        "blocked": found.blocked,
    }
    said = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    return said or "nothing to do"


def left(found: Replay) -> str:
    """What becomes of steps that were not begun, if something does."""
    if not found.stale:
        return ""
    were = "was" if found.stale == 1 else "were"
    return (
        f"{found.stale:,} of those not begun {were} stale when it ended: their jobs' own rule "
        "(rerun or hold) decides about them"
    )


def drawn(found: Replay) -> RenderableType:
    """A replay as it goes on, on a terminal."""
    title = Text.assemble("replay of ", plain(found.target), ": ", state_of(found.state))
    ended = found.done + found.failed + found.blocked
    bar = ProgressBar(total=max(found.steps, 1), completed=ended, width=_BAR_WIDTH)
    lines = Table.grid(padding=(0, 2))
    for step in found.under_way[: found.max_running]:
        name = f"{step.number}. {plain(step.namespace)}/{plain(step.job)}  {plain(step.lot)}"
        lines.add_row(Text("  going", "cyan"), Text(name), Text((step.now or "").lower(), "dim"))
    for step in found.failures[:_LINES_MAX]:
        name = f"{step.number}. {plain(step.namespace)}/{plain(step.job)}  {plain(step.lot)}"
        lines.add_row(Text("  failed", "bold red"), Text(name), Text(plain(step.note), "dim"))
    return Group(title, bar, Text(so_far(found)), lines)


def state_of(state: str) -> Text:
    """A state in its colour."""
    return Text(state, _STYLES.get(state, ""))


def seconds(number: float) -> str:
    """How long something takes."""
    return show_duration(round(number * 1000))
