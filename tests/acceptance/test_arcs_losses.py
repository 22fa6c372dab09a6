"""Dead or sleeping engines are replaced, and their later acts have no effect."""

import logging
from contextlib import closing, suppress

import psutil
import pytest

from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors.local import LocalProcesses
from penstock.arcs.spec import Retry, Workload
from penstock.arcs.workload.shell import CommandRules
from penstock.db import open_database
from penstock.errors import Unavailable
from penstock.locks.commands.admin import EndClaim
from penstock.states import ArcState
from tests.acceptance.arc_site import NS, ArcSite
from tests.acceptance.arc_workloads import ran
from tests.patience import HANG_SECONDS
from tests.simulation.arc_workforce import EngineProcess

LOT = "20230227PT5M287"
LEASE_SECONDS = 60  # no machine is so slow that one who works loses it
RETRY = Retry(tries=3, back_off_seconds=0, lease_seconds=LEASE_SECONDS)


def start(arcs: ArcSite, owner: str) -> EngineProcess:
    engine = EngineProcess(
        arcs.folder,
        owner,
        database=arcs.plane.settings.database,
        objects=arcs.plane.settings.objects,
    )
    engine.wait_until_ready()
    return engine


def fall_asleep(arcs: ArcSite, engine: EngineProcess) -> None:
    """Stop a process at a moment when it does not write."""
    with closing(open_database(arcs.plane.settings.database, wait_seconds=0.5)) as database:
        while True:
            engine.stand_still()
            with suppress(Unavailable), database.write():
                return
            engine.go_on()


def let_leases_run_out(arcs: ArcSite) -> None:
    """Advance the clock of all other processes beyond the leases."""
    arcs.clock.pass_seconds(LEASE_SECONDS + 1)


def test_engine_that_slept_publishes_nothing(arcs: ArcSite) -> None:
    """It wakes up after its lease has expired, and continues."""
    arcs.arc("shout", "raw", "loud", retry=RETRY)
    arcs.order(LOT, "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    sleeper = start(arcs, "sleeper")
    try:
        arcs.until(lambda: arcs.ran() and arcs.state("shout", LOT) == ArcState.RUNNING)
        first = arcs.lot("shout", LOT)
        fall_asleep(arcs, sleeper)
        let_leases_run_out(arcs)
        with arcs.engine(owner="other"):
            arcs.until_state("shout", LOT, ArcState.COMPLETE)
        published = arcs.lot("shout", LOT)
        assert published.run != first.run
        arcs.go()
        sleeper.go_on()
        arcs.until(lambda: f"lot {LOT} of shout: " in sleeper.log())
        sleeper.stop()
    finally:
        sleeper.kill()
    assert arcs.lot("shout", LOT) == published
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}
    assert arcs.shown("shout", LOT) == ["complete.arc"]
    assert [event.dataset.name for event in arcs.events()] == ["raw", "loud"]


def test_publication_without_lease_is_refused(
    arcs: ArcSite, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first engine notices the lost lease only when it publishes."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(Engine, "_beat_seconds", lambda engine: 3600.0)
    arcs.arc("shout", "raw", "loud", retry=RETRY)
    arcs.order(LOT, "wait")
    with arcs.engine(owner="deaf"):
        arcs.feed("raw", LOT, {"a.txt": b"hello"})
        arcs.until(arcs.ran)
        first = arcs.lot("shout", LOT)
        let_leases_run_out(arcs)
        with arcs.engine(owner="other"):
            arcs.until_state("shout", LOT, ArcState.COMPLETE)
        published = arcs.lot("shout", LOT)
        arcs.go()
        arcs.until(lambda: f"claim {first.run} with token 1 is over" in caplog.text)
    assert published.run != first.run
    assert arcs.lot("shout", LOT) == published
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}


def test_lots_of_a_killed_engine_go_to_another(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", retry=RETRY)
    arcs.order(LOT, "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    engine = start(arcs, "killed")
    try:
        arcs.until(lambda: arcs.ran() and arcs.state("shout", LOT) == ArcState.RUNNING)
    finally:
        workers = engine.kill()
    assert workers
    let_leases_run_out(arcs)
    with arcs.engine(owner="other"):
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}
    assert len({line["pid"] for line in ran(arcs.folder)}) == 2
    assert psutil.wait_procs(workers, timeout=HANG_SECONDS)[1] == []


def test_commands_of_a_killed_engine_end(arcs: ArcSite) -> None:
    note = arcs.folder / "pid"
    command = ("sh", "-c", f'echo $$ > "{note}.new"; mv "{note}.new" "{note}"; sleep 600; true')
    arcs.arc("slow", "raw", "slow", Workload(command=command), retry=RETRY)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    engine = start(arcs, "killed")
    try:
        arcs.until(note.exists)
        shell = psutil.Process(int(note.read_text()))
        arcs.until(shell.children)
        commands = [shell, *shell.children()]
    finally:
        engine.kill()
    assert psutil.wait_procs(commands, timeout=HANG_SECONDS)[1] == []


def test_stopping_engine_finishes_running_lots_and_releases_others(
    arcs: ArcSite,
) -> None:
    arcs.arc("shout", "raw", "loud", running_max=4)
    lots = ("1", "2", "3", "4")
    for lot in lots:
        arcs.order(lot, "wait")
        arcs.feed("raw", lot, {"a.txt": lot.encode()})
    engine = start(arcs, "stopped")  # with two processes for four lots
    try:
        arcs.until(lambda: len(arcs.ran()) == 2)
        engine.stop_soon()
        arcs.until(lambda: [arcs.state("shout", lot) for lot in lots].count(None) == 2)
        arcs.go()
        engine.stop()
    finally:
        engine.kill()
    done = {lot for lot, _ in arcs.ran()}
    assert len(arcs.ran()) == 2
    for lot in lots:
        found = arcs.lot("shout", lot)
        assert found.state == (ArcState.COMPLETE if lot in done else None)
        assert found.attempts == (1 if lot in done else 0)
    with arcs.catalog.read() as tx:
        assert tx.fetch("running_lots") == []


HANGS_ONCE = """
echo $$ >> "$ARC_TEST_FOLDER/pids"
if mkdir "$ARC_TEST_FOLDER/once"; then sleep 100000; fi
echo made > "$PENSTOCK_OUTPUT/made.txt"
"""


@pytest.mark.parametrize(
    "workload",
    [
        "write_some",
        Workload(command=("sh", "-c", HANGS_ONCE), pass_environment=("ARC_TEST_FOLDER",)),
    ],
    ids=["function", "sh"],
)
def test_hanging_work_ends_with_its_claim(local_arcs: ArcSite, workload: str | Workload) -> None:
    """An administrator ends the claim; the lot then runs in the only process."""
    arcs = local_arcs
    retry = Retry(tries=2, back_off_seconds=0, lease_seconds=3)
    arcs.arc("shout", "raw", "loud", workload, retry=retry)
    arcs.order(LOT, "hang")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    pids = arcs.folder / "pids"
    rules = CommandRules(allowed=("ARC_TEST_FOLDER",))
    with LocalProcesses(1) as processes, arcs.engine(processes, concurrency=1, rules=rules):
        try:
            arcs.until(lambda: arcs.ran() or (arcs.folder / "once").exists())
            arcs.do(EndClaim("ann", "it hangs", NS, "shout", LOT))
            arcs.until_state("shout", LOT, ArcState.COMPLETE)
        finally:
            (arcs.folder / "never").touch()
            commands = [int(pid) for pid in pids.read_text().split()] if pids.exists() else []
            alive = [pid for pid in commands if psutil.pid_exists(pid)]
            for pid in alive:
                psutil.Process(pid).kill()
    assert alive == []
