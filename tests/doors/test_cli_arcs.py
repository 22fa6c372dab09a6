"""`penstock arcs`: declaring in files and modules, running, showing and repairing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.arcs.arrivals.watcher import Watcher
from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors.local import LocalThreads
from penstock.operations.steppers import operation_steppers
from tests.doors.commands import Outcome, Terminal, environment, go_home, program
from tests.doors.serving import Running, running
from tests.doors.waiting import until

LOTS = [f"20261115PT1H0{hour}" for hour in range(4)]
BAD = LOTS[1]
RANGE = ("--from", LOTS[0], "--to", LOTS[-1])
# The shell sorts what was written, and Python adds up; one lot fails until somebody repairs it.
SORT = """
in=$(sed -n 's/.*"path": "\\(.*\\)".*/\\1/p' "$PENSTOCK_TASK")
test "$PENSTOCK_LOT" != 20261115PT1H01 || test -e repaired || { echo no luck >&2; exit 3; }
sort "$in" > "$PENSTOCK_OUTPUT/sorted.txt"
"""
FILE = f"""
namespace = "shop"
project = "lake"

[arcs.write]
inputs = ["tick"]
outputs = [{{ dataset = "raw", interval = "PT1H" }}]
workload = "loads:write"

[arcs.sort]
inputs = ["raw"]
outputs = [{{ dataset = "sorted", interval = "PT1H" }}]
workload = ["sh", "-c", {json.dumps(SORT)}]
retry = {{ tries = 1 }}
"""
LOADS = '''
import penstock

def write(context):
    """Numbers that are not in order."""
    context.write("numbers.txt", f"3\\n1\\n{context.lot}\\n".encode())

@penstock.arc(namespace="shop", inputs=["sorted"], outputs=["totals"], retry={"tries": 1})
def total(context):
    """Adds up."""
    if context.lot.endswith("03"):
        raise ValueError("a bad day")
    lines = b"".join(context.read(uri) for uri in context.uris).split()
    context.write("total.txt", str(len(lines)).encode())
'''


@dataclass(frozen=True)
class Here:
    """A server, a folder with declarations, and engines in processes of their own."""

    server: Running
    folder: Path
    penstock: Terminal

    @property
    def variables(self) -> dict[str, str]:
        settings = self.server.plane.settings
        return {
            "PENSTOCK_DATABASE": settings.database,
            "PENSTOCK_OBJECTS": settings.objects,
            "PENSTOCK_QUEUE": "zookeeper://127.0.0.1:1/away",  # an engine needs none
        }

    def engine(self, *arguments: str) -> Outcome:
        """Run a command of the engine as a program."""
        return program(self.folder, "arcs", *arguments, variables=self.variables)

    def counts(self, arc: str) -> dict[str, int]:
        """How many lots of an arc stand where, but for those of which there are none."""
        listed = self.penstock("arcs", "list", "--json").document["arcs"]
        (found,) = [each["counts"] for each in listed if each["name"] == arc]
        return {state: number for state, number in found.items() if number}

    @contextmanager
    def station(self) -> Iterator[None]:
        """An engine in this process, while the block lasts."""
        plane = self.server.plane
        with LocalThreads(4) as executor:
            at = (plane.catalog, plane.database, plane.objects, executor, plane.clock)
            steppers = operation_steppers(plane.catalog, plane.clock)
            with ArcWorker(*at, owner="here", concurrency=4, steppers=steppers):
                yield


@pytest.fixture
def here(
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Here]:
    (tmp_path / "arcs.toml").write_text(FILE)
    (tmp_path / "loads.py").write_text(LOADS)
    go_home(monkeypatch, tmp_path, columns=200)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "loads", raising=False)
    monkeypatch.setattr("penstock.cli.arcs.backfills._LOOK_SECONDS", 0.05)
    with running(database_url) as server:
        monkeypatch.setenv("PENSTOCK_URL", server.server.url)
        yield Here(server, tmp_path, Terminal(capsys))


@pytest.fixture
def applied(here: Here) -> Here:
    """Two arcs, and four lots for the first of them."""
    assert "arc shop/sort is created" in here.penstock("arcs", "apply", "arcs.toml").text
    assert here.penstock("lots", "register", "shop/tick", *LOTS).code == 0
    return here


only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def test_a_shell_and_a_python_workload_run_in_an_engine_of_their_own(applied: Here) -> None:
    penstock = applied.penstock
    idle = penstock("arcs", "status")
    assert "start an engine: `penstock arcs start`" in idle.err
    assert [words.split()[0] for words in idle.text.splitlines()[1:3]] == [
        "shop/sort",
        "shop/write",
    ]
    done = applied.engine("start", "--once", "--concurrency", "2")
    assert done.code == 0, done.err
    assert "runs all arcs, 2 lots at a time; executor local" in done.err
    assert f"lot {BAD} of sort failed: CommandFailed: no luck" in done.err
    assert "no work is left" in done.err
    assert "Traceback" not in done.err
    assert applied.counts("write") == {"complete": 4}
    assert applied.counts("sort") == {"complete": 3, "partial": 1, "held": 1}
    shown = penstock("lots", "show", "shop/sorted", LOTS[0], "--json").document
    (item,) = shown["manifest"]["uris"]
    assert Path(item["uri"].removeprefix("file://")).read_text() == f"1\n{LOTS[0]}\n3\n"
    text = penstock("lots", "show", "shop/sorted", LOTS[0]).text
    assert "1 object, 19 B" in text
    assert item["digest"] in text
    failed = penstock("arcs", "show", "sort", BAD)
    assert "CommandFailed: no luck" in failed.text
    assert f"penstock arcs clean shop/sort {BAD}" in failed.err
    gaps = penstock("lots", "gaps", "shop/sorted", *RANGE)
    assert gaps.code == 3
    assert "4 lots of PT1H" in gaps.out
    assert f"{BAD}: held" in gaps.out
    assert f"root: lot {BAD} of shop/sorted" in gaps.out
    assert penstock("lots", "gaps", "shop/raw", *RANGE, "--json").document["there"] == 4


def test_arrivals_are_listed_shown_and_deleted(here: Here) -> None:
    penstock = here.penstock
    assert "penstock arcs apply FILE" in penstock("arrivals", "list").err
    landing = here.folder / "landing"
    arrival = f'namespace = "shop"\n[arrivals.landed]\nlocation = "{landing}"\ninterval = "PT1H"\n'
    (here.folder / "in.toml").write_text(arrival)
    assert penstock("arcs", "apply", "in.toml").code == 0
    plane = here.server.plane
    Watcher(plane.catalog, plane.objects, plane.clock).go_round(plane.clock())
    listed = penstock("arrivals", "list").text
    assert "shop/landed" in listed
    assert "there is no folder" in listed
    shown = penstock("arrivals", "show", "landed").text
    assert f"there is no folder {landing}" in shown
    assert penstock("arrivals", "show", "shop/landed", "--json").document["failed"]["since"]
    refused = penstock("arrivals", "delete", "shop/land")
    assert refused.code == 1
    assert "shop/landed" in refused.err, "it is suggested, and not taken for what was meant"
    assert f"{landing} is no longer watched" in penstock("arrivals", "delete", "landed").text
    assert penstock("arrivals", "list").text == ""


def test_hints_quote_unusual_lot_names(here: Here) -> None:
    assert here.penstock("arcs", "apply", "arcs.toml").code == 0
    told = here.penstock("arcs", "show", "sort", "L 1 $x").err
    assert "`penstock why shop/sort 'L 1 $x'`" in told


def test_arcs_of_a_file_are_applied_atomically(here: Here) -> None:
    text = """
namespace = "shop"
[arcs.first]
inputs = ["raw"]
outputs = ["one"]
workload = ["true"]
[arcs.second]
inputs = ["clock:PT7H"]
outputs = ["two"]
workload = ["true"]
"""
    (here.folder / "both.toml").write_text(text)
    for how in (["--dry-run"], []):
        refused = here.penstock("arcs", "apply", "both.toml", *how)
        assert refused.code != 0
        assert "arc shop/second cannot be so, and nothing was changed" in refused.err
        assert "clock:PT7H" in refused.err
        assert refused.out == ""
    assert here.penstock("arcs", "list").text == ""
    (here.folder / "both.toml").write_text(text.replace("PT7H", "PT1H"))
    assert here.penstock("arcs", "apply", "both.toml", "--dry-run").code == 0
    assert here.penstock("arcs", "list").text == ""
    assert "arc shop/second is created" in here.penstock("arcs", "apply", "both.toml").text
    assert "shop/first" in here.penstock("arcs", "list").text


def test_apply_shows_and_makes_the_changes(here: Here) -> None:
    penstock = here.penstock
    empty = penstock("arcs", "list")
    assert (empty.code, empty.out) == (0, "")
    assert "penstock arcs apply arcs.toml" in empty.err
    assert "penstock arcs apply" in penstock("arcs", "status").err
    dry = penstock("arcs", "apply", "arcs.toml", "--dry-run").text
    assert "arc shop/write would be created" in dry
    assert 'inputs: [{"dataset":"tick","subscribe":true}]' in dry
    assert here.penstock("arcs", "list", "--json").document == {"arcs": []}
    made = penstock("arcs", "apply", "arcs.toml", "--json").document
    assert [change["made"] for change in made["changes"]] == [True, True]
    assert "arc shop/sort is unchanged" in penstock("arcs", "apply", "arcs.toml").text
    file = Path("arcs.toml")
    arrival = '[arrivals.landed]\nlocation = "/data/in"\ninterval = "PT1H"\n'
    file.write_text(FILE.replace("tries = 1", "tries = 2") + arrival)
    changed = penstock("arcs", "apply", "arcs.toml").text
    assert "arc shop/sort is changed" in changed
    assert '"tries":1' in changed
    assert "arrival shop/landed is created" in changed
    assert "arrival shop/landed is unchanged" in penstock("arcs", "apply", "arcs.toml").text
    shown = penstock("arcs", "show", "sort").text
    assert "2, 10 s apart at first" in shown
    assert "lake, version 1" in shown
    assert "shop/sort is deleted" in penstock("arcs", "delete", "shop/sort").text
    assert "penstock arcs list" in penstock("arcs", "show", "shop/sort").complaint


@only_sqlite
def test_arcs_of_a_module_run_one_lot(applied: Here) -> None:
    penstock = applied.penstock
    assert "arc shop/total is created" in penstock("arcs", "apply", "loads").text
    assert "arc shop/total is unchanged" in penstock("arcs", "apply", "loads.py").text
    assert penstock("arcs", "show", "total", "--json").document["arc"]["description"] == "Adds up."
    for lot in (LOTS[0], LOTS[3]):
        done = applied.engine("run", "write", lot, "--json")
        assert json.loads(done.out)["state"] == "complete", done.err
    with applied.station():
        until(lambda: applied.counts("total") == {"complete": 2, "partial": 1, "held": 1})
    again = applied.engine("run", "shop/write", LOTS[0])
    assert again.code == 1
    assert f"lot {LOTS[0]} is DONE for job shop/write" in again.complaint
    assert penstock("work", "resubmit", "shop/total", LOTS[3], "--why", "again").code == 0
    failed = applied.engine("run", "total", LOTS[3], "--log-level", "error")
    assert failed.code == 1
    assert "is partial: ValueError: a bad day" in failed.complaint


@only_sqlite
def test_stopping_engine_finishes_running_lots(applied: Here) -> None:
    waits = 'while ! test -e go; do sleep 0.05; done; echo x > "$PENSTOCK_OUTPUT/x"'
    slow = (
        '[arcs.slow]\nnamespace = "shop"\ninputs = ["tick"]\noutputs = ["slow"]\n'
        f"running_max = 1\nworkload = ['sh', '-c', '''touch begun; {waits}''']\n"
    )
    Path("slow.toml").write_text(slow)
    assert applied.penstock("arcs", "apply", "slow.toml").code == 0
    log = applied.folder / "engine.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "arcs", "start", "--arc", "slow"],
            cwd=applied.folder,
            env=environment(applied.folder, **applied.variables),
            stderr=stream,
        )
    try:
        until(lambda: Path("begun").exists() or process.poll() is not None)
        running = applied.penstock("arcs", "status", "--json").document["running"]
        assert [(lot["arc"], lot["lot"]) for lot in running] == [("shop/slow", LOTS[0])]
        os.kill(process.pid, signal.SIGTERM)
        until(lambda: "stopping: claiming no more lots" in log.read_text())
        Path("go").touch()
        assert process.wait() == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert "stopped: running lots are finished or released" in log.read_text()
    assert "runs slow, 4 lots at a time" in log.read_text()
    assert applied.counts("slow") == {"complete": 1, "ready": 3}
    assert applied.counts("write") == {"ready": 4}


@only_sqlite
def test_failed_lots_are_cleaned_and_backfilled(applied: Here) -> None:
    penstock = applied.penstock
    with applied.station():
        until(lambda: applied.counts("sort") == {"complete": 3, "partial": 1, "held": 1})
        clean = ("arcs", "clean", "sort", BAD)
        assert "--why" in penstock(*clean).err
        told = penstock(*clean, "--why", "half a file").text
        assert f"lot {BAD} of arc shop/sort is missing; 1 failed attempt left nothing" in told
        assert applied.counts("sort")["missing"] == 1
        state = f"arcs/namespace=shop/project=lake/version=1/arc=sort/lot={BAD}/missing.arc"
        objects = applied.server.plane.objects
        assert objects.exists(state)
        objects.delete(state)
        assert "arc shop/sort: 4 lots, 1 corrected" in penstock("arcs", "sync", "sort").text
        assert objects.exists(state)
        assert "0 corrected" in penstock("arcs", "sync").text
        dry = penstock("backfills", "start", "sort", *RANGE, "--failed-and-missing", "--dry-run")
        assert dry.code == 3
        assert "it would: 3 leave, 1 release" in dry.out
        assert "released and retried" in dry.out
        again = penstock("backfills", "start", "sort", *RANGE, "--watch", "--why", "try")
        assert (again.code, "1 failed" in again.err) == (3, True)
        Path("repaired").touch()
        begun = penstock("backfills", "start", "sort", *RANGE, "--watch", "--json")
        assert begun.document["done"] == 1
    assert applied.counts("sort") == {"complete": 4}
    assert penstock("lots", "gaps", "shop/sorted", *RANGE).code == 0
    assert penstock("backfills", "start", "sort", *RANGE, "--dry-run").code == 0


@only_sqlite
def test_backfills_are_listed_paused_and_cancelled(applied: Here) -> None:
    penstock = applied.penstock
    assert "penstock backfills start ARC" in penstock("backfills", "list").err
    begun = penstock("backfills", "start", "write", *RANGE, "--max-running", "1", "--why", "late")
    backfill = begun.text.strip()
    assert f"penstock backfills show {backfill}" in begun.err
    shown = penstock("backfills", "show", backfill).text
    assert "1, oldest first" in shown
    assert "local: late" in shown
    assert "--why" in penstock("backfills", "pause", backfill).err
    why = ("--why", "lunch")
    assert "paused" in penstock("backfills", "pause", backfill, *why).text
    assert "running" in penstock("backfills", "resume", backfill, *why).text
    assert "cancelled" in penstock("backfills", "cancel", backfill, *why).text
    listed = penstock("backfills", "list", "--json").document["backfills"]
    assert [(each["id"], each["state"]) for each in listed] == [(backfill, "cancelled")]


@only_sqlite
def test_removing_a_lot_records_the_reason(applied: Here) -> None:
    penstock = applied.penstock
    with applied.station():
        until(lambda: applied.counts("sort") == {"complete": 3, "partial": 1, "held": 1})
    lot = ("lots", "remove", "shop/sorted", LOTS[0])
    assert "--why" in penstock(*lot).err
    assert "pass --yes" in penstock(*lot, "--why", "no room").complaint
    told = penstock(*lot, "--why", "no room", "--yes").text
    assert f"lot {LOTS[0]} of shop/sorted is removed: 1 object, 19 B" in told
    shown = penstock("lots", "show", "shop/sorted", LOTS[0], "--json").document
    assert (shown["status"], shown["manifest"]["state"]) == ("ERROR", "removed")
    gaps = penstock("lots", "gaps", "shop/sorted", "--from", LOTS[0], "--to", LOTS[0])
    assert (gaps.code, f"{LOTS[0]}: removed" in gaps.out) == (3, True)
    entries = penstock("audit", "--json").document["entries"]
    assert ("lot remove", "no room") in {(each["action"], each["detail"]) for each in entries}


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["arcs", "apply", "none.toml"], 2, "none.toml cannot be read"),
        (["arcs", "apply", "no_such_module"], 1, "there is no module no_such_module here"),
        (["arcs", "apply", "json"], 2, "put @penstock.arc"),
        (["arcs", "start", "--executor", "yarn"], 2, "local or dask://"),
        (["arcs", "start", "--concurrency", "0"], 2, "--concurrency is 0; write 1 or more"),
        (["arcs", "show", "nothing"], 1, "penstock arcs apply FILE"),
        (["backfills", "start", "nothing", "--from", "noon"], 1, "there are no arcs yet"),
        (["arcs", "run", "nothing", "1"], 1, "there are no arcs yet"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@only_sqlite
def test_what_is_wrong_is_told_in_one_line(
    here: Here, arguments: list[str], code: int, told: str
) -> None:
    is_engine = arguments[1] == "run"
    refused = here.engine(*arguments[1:]) if is_engine else here.penstock(*arguments)
    assert refused.code == code
    assert told in refused.complaint
