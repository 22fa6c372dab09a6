"""The states of an arc: running, complete, partial, missing; and their effects."""

import os
import sys

import pytest

from penstock.arcs.commands import ApplyArc
from penstock.arcs.executors.local import LocalProcesses, LocalThreads
from penstock.arcs.outputs.cleaning import clean_lot
from penstock.arcs.outputs.state_keys import Sync
from penstock.arcs.overview import count_lots, list_arc_lots
from penstock.arcs.queries import find_arc
from penstock.arcs.spec import Arc, Input, Workload
from penstock.arcs.workload.shell import CommandRules
from penstock.catalog.rows import replace
from penstock.locks.commands import RegisterLots
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.commands.holds import HoldWork
from penstock.lots.manifests import arc_key
from penstock.schema.arcs import ArcCounts
from penstock.schema.locks import Stale
from penstock.states import ArcState, WorkState
from tests.acceptance.arc_site import NS, ONCE, ArcSite

LOT = "20230227PT5M287"


def test_running_lot_cannot_be_claimed(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.order(LOT, "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine(owner="one") as one, arcs.engine(owner="two") as two:
        arcs.until_state("shout", LOT, ArcState.RUNNING)
        arcs.until(arcs.ran)
        assert one.running + two.running == 1
        assert one.look() + two.look() == 0
        assert arcs.content("shout", LOT) == {}
        arcs.go()
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.ran() == [(LOT, "")]


def test_running_to_complete_publishes_the_output(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello", "b.txt": b"world"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO", "b.txt": b"WORLD"}
    assert "state=complete/manifest.json" in arcs.manifests("loud", LOT)
    told = [(event.kind, event.dataset.name, event.state) for event in arcs.events()]
    assert told == [("published", "raw", "complete"), ("published", "loud", "complete")]


def test_complete_prevents_duplicate_executions(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine() as engine:
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        made = arcs.lot("shout", LOT)
        assert arcs.do(RegisterLots(NS, "raw", (LOT,), "ann")) == 0
        arcs.do(RegisterLots(NS, "raw", ("other",), "ann"))
        arcs.until_state("shout", "other", ArcState.COMPLETE)
        assert engine.look() == 0
    assert arcs.ran() == [(LOT, ""), ("other", "")]
    assert arcs.lot("shout", LOT) == made


def test_running_to_partial_lists_data_and_shows_none(
    arcs: ArcSite,
) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "fail")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    found = arcs.lot("shout", LOT)
    assert found.work is WorkState.HELD
    assert "no luck" in str(found.error)
    assert found.manifests == []
    assert arcs.data("loud", LOT) == ["junk.txt"]
    [attempt] = found.failed_attempts
    assert arcs.manifests("loud", LOT) == [f"state=partial/attempt={attempt.run}/manifest.json"]
    assert b"junk.txt" in arcs.objects.get(attempt.keys[0])
    assert [event.dataset.name for event in arcs.events()] == ["raw"]


def test_partial_to_complete_removes_old_data(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.order(LOT, "fail", "fail")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.ran() == [(LOT, "")] * 3
    assert arcs.data("loud", LOT) == ["a.txt"]
    attempts = arcs.lot("shout", LOT).failed_attempts
    assert [attempt.state for attempt in attempts] == ["removed", "removed"]
    assert not [key for key in arcs.manifests("loud", LOT) if key.startswith("state=partial")]


def test_partial_to_missing_to_running(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "fail", "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
        clean_lot(arcs.catalog, arcs.objects, "ann", "to try again", NS, "shout", LOT)
        assert (arcs.state("shout", LOT), arcs.shown("shout", LOT)) == (
            ArcState.MISSING,
            ["missing.arc"],
        )
        assert arcs.data("loud", LOT) == []
        arcs.do(ResubmitLots("ann", "the disk is mended", NS, "shout", (LOT,)))
        arcs.until_state("shout", LOT, ArcState.RUNNING)
        arcs.go()
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}


def test_cleaning_a_held_complete_lot_adds_no_failure(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.do(HoldWork("ann", "to look at it", NS, "shout", LOT))
        clean_lot(arcs.catalog, arcs.objects, "ann", "in doubt", NS, "shout", LOT)
        assert arcs.lot("shout", LOT).failed_attempts == []
        arcs.do(HoldWork("ann", "it is good", NS, "shout", LOT, hold=False))
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}
    arcs.do(HoldWork("ann", "is it?", NS, "shout", LOT))
    assert (arcs.state("shout", LOT), counts(arcs, "shout").complete) == (ArcState.COMPLETE, 1)


def test_new_output_lacks_earlier_lots(arcs: ArcSite) -> None:
    """The arc has done these lots, but they are missing, as their gaps show."""
    arcs.arc("shout", "raw", "loud")
    for lot in ("1", "2"):
        arcs.feed("raw", lot, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until(lambda: counts(arcs, "shout").complete == 2)
    arcs.arc("shout", "raw", "louder")
    assert arcs.state("shout", "1") == ArcState.MISSING
    assert (counts(arcs, "shout").complete, counts(arcs, "shout").missing) == (0, 2)
    assert listed(arcs, "shout", ArcState.MISSING) == ["1", "2"]
    assert listed(arcs, "shout", ArcState.COMPLETE) == []
    arcs.do(ResubmitLots("ann", "wanted there, too", NS, "shout", ("1",)))
    with arcs.engine():
        arcs.until_state("shout", "1", ArcState.COMPLETE)
    assert (counts(arcs, "shout").complete, counts(arcs, "shout").missing) == (1, 1)
    arcs.arc("shout", "raw", "loud")
    assert listed(arcs, "shout", ArcState.COMPLETE) == ["1", "2"]
    assert (counts(arcs, "shout").complete, counts(arcs, "shout").missing) == (2, 0)


def test_lot_held_for_a_newer_input_keeps_its_state(arcs: ArcSite) -> None:
    """It failed once and was then made: the hold does not make it partial."""
    arcs.arc("shout", "raw", "loud", stale=Stale.HOLD)
    arcs.order(LOT, "fail")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.feed("raw", LOT, {"a.txt": b"hello again"})
        assert arcs.lot("shout", LOT).work is WorkState.HELD
        assert arcs.state("shout", LOT) == ArcState.COMPLETE
    found = counts(arcs, "shout")
    assert (found.complete, found.partial, found.missing, found.held) == (1, 0, 0, 1)
    assert listed(arcs, "shout", ArcState.COMPLETE) == [LOT]
    assert listed(arcs, "shout", ArcState.PARTIAL) == []
    assert Sync(arcs.catalog, arcs.objects, NS, "shout").run().changed == 0


def test_resubmitted_lot_has_no_attempts(arcs: ArcSite) -> None:
    """In the views of the lot, of totals and of lists."""
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "fail")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    assert (counts(arcs, "shout").partial, listed(arcs, "shout", ArcState.PARTIAL)) == (1, [LOT])
    arcs.do(ResubmitLots("ann", "the disk is mended", NS, "shout", (LOT,)))
    assert (counts(arcs, "shout").partial, listed(arcs, "shout", ArcState.PARTIAL)) == (0, [])
    assert (arcs.state("shout", LOT), arcs.lot("shout", LOT).work) == (None, WorkState.READY)


def counts(arcs: ArcSite, arc: str) -> ArcCounts:
    """Count the lots of an arc by state."""
    with arcs.catalog.read() as tx:
        row = find_arc(tx, NS, arc)
        return count_lots(tx, [row])[row.job_id]


def listed(arcs: ArcSite, arc: str, state: ArcState) -> list[str]:
    """Return the lots of an arc in a state."""
    with arcs.catalog.read() as tx:
        return [each.lot for each in list_arc_lots(tx, NS, arc, state, "", 10)]


def test_state_keys_show_the_state_and_are_rebuilt(arcs: ArcSite) -> None:
    arc = arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order("2", "fail")
    for lot in ("1", "2", "3"):
        arcs.feed("raw", lot, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", "1", ArcState.COMPLETE)
        arcs.until_state("shout", "2", ArcState.PARTIAL)
        arcs.until_state("shout", "3", ArcState.COMPLETE)
    right = _listed(arcs)
    _spoil(arcs, arc)
    assert _listed(arcs) != right
    synced = Sync(arcs.catalog, arcs.objects, NS, "shout").run()
    assert (synced.lots, synced.changed, synced.lost, synced.next) == (3, 3, 0, None)
    assert _listed(arcs) == right
    assert Sync(arcs.catalog, arcs.objects, NS, "shout").run().changed == 0


def test_arcs_of_two_namespaces_have_distinct_keys(arcs: ArcSite) -> None:
    """A sync of one does not change the keys of the other."""
    first = arcs.arc("shout", "raw", "loud")
    other = replace(first, namespace="other", inputs=(Input(dataset="nothing"),))
    arcs.do(ApplyArc("ann", other))
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    before = _listed(arcs)
    assert Sync(arcs.catalog, arcs.objects, "other", "shout").run().removed == 0
    assert _listed(arcs) == before


def test_keys_of_former_declarations_are_removed(arcs: ArcSite) -> None:
    arc = arcs.arc("shout", "raw", "loud", project="lake")
    arcs.arc("whisper", "raw", "soft", project="lake")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until(lambda: all(arcs.state(a, LOT) == "complete" for a in ("shout", "whisper")))
    old = "arcs/project=default/version=1/arc=shout/lot=1/running.arc"
    arcs.objects.put(old, b"{}")
    now = replace(arc, project="sea", version="2")
    arcs.do(ApplyArc("ann", now))
    assert Sync(arcs.catalog, arcs.objects, NS, "shout").run().removed == 2
    keys = [entry.key for entry in arcs.objects.list("arcs")]
    whisper = f"arcs/namespace={NS}/project=lake/version=1/arc=whisper/lot={LOT}/complete.arc"
    assert sorted(keys) == [whisper, arc_key(now.ref, LOT, ArcState.COMPLETE)]


def _listed(arcs: ArcSite) -> dict[str, bytes]:
    """Return everything that a listing of the store shows."""
    found = (*arcs.objects.list("arcs"), *arcs.objects.list("datasets"))
    return {entry.key: arcs.objects.get(entry.key) for entry in found}


def _spoil(arcs: ArcSite, arc: Arc) -> None:
    """Change keys as an engine that dies after a commit does, and as people do."""
    states = {"1": ArcState.RUNNING, "2": ArcState.COMPLETE, "unknown": ArcState.PARTIAL}
    for lot, state in states.items():
        arcs.objects.put(arc_key(arc.ref, lot, state), b"{}")
    arcs.objects.delete(arc_key(arc.ref, "1", ArcState.COMPLETE))
    folder = f"datasets/namespace={NS}/name=loud/version=1/lot=3"
    arcs.objects.delete(f"{folder}/state=complete/manifest.json")


@pytest.mark.parametrize("language", ["shell", "python"])
def test_a_command_is_a_workload_in_any_language(arcs: ArcSite, language: str) -> None:
    """It gets the lot, its inputs with their manifests, and where to write: files or URLs.

    To use the store itself, it needs the credentials of the engine, which must allow that.
    """
    in_shell = language == "shell"
    script = ("sh", "-c", _SHELL, "name", "{lot}")
    command = script if in_shell else (sys.executable, "-c", _PYTHON)
    environment = {"GREETING": "sums"}
    names = tuple(name for name in os.environ if name.startswith("AWS_"))
    load = Workload(
        command=command, environment=environment, pass_environment=names, fetch=in_shell
    )
    arcs.arc("sum", "raw", "sums", load)
    arcs.feed("raw", LOT, {"a.txt": b"1\n2\n", "b.txt": b"3\n"})
    with arcs.engine(rules=CommandRules(allowed=names)):
        arcs.until_state("sum", LOT, ArcState.COMPLETE)
    assert arcs.content("sum", LOT) == {"sum.txt": f"sums of {LOT}: 3\n".encode()}


_SHELL = """
paths=$(grep '"path"' "$PENSTOCK_TASK" | sed 's/.*: "//; s/".*//')
echo "$GREETING of $1: $(cat $paths | wc -l)" > "$PENSTOCK_OUTPUT/sum.txt"
echo "this is not a result" > "$PENSTOCK_OUTPUT/scratch"
echo '{"uris": ["sum.txt"]}' > "$PENSTOCK_MANIFEST"
"""
_PYTHON = """
import json, os
from penstock.objects import Objects
task = json.load(open(os.environ["PENSTOCK_TASK"]))
def store(url):
    folder, _, name = url.rpartition("/")
    return Objects.open(folder), name
def read(url):
    objects, name = store(url)
    return objects.get(name)
lines = b"".join(read(item["uri"]) for lot in task["inputs"] for item in lot["uris"])
objects, _ = store(os.environ["PENSTOCK_OUTPUT_URL"])
text = f"{os.environ['GREETING']} of {os.environ['PENSTOCK_LOT']}: {lines.count(10)}\\n".encode()
objects.put("sum.txt", text)
objects.put("scratch", b"this is not a result")
json.dump({"uris": ["sum.txt"]}, open(os.environ["PENSTOCK_MANIFEST"], "w"))
"""


def test_failing_command_has_a_reason(arcs: ArcSite) -> None:
    command = ("sh", "-c", "echo the tape is broken >&2; exit 3")
    arcs.arc("sum", "raw", "sums", Workload(command=command), retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"1\n"})
    with arcs.engine():
        arcs.until_state("sum", LOT, ArcState.PARTIAL)
    assert "the tape is broken" in str(arcs.lot("sum", LOT).error)


def test_workload_over_its_timeout_is_ended(arcs: ArcSite) -> None:
    """A command with all its processes; a function in a process or on a thread."""
    arcs.arc(
        "slow", "raw", "slow", Workload(command=("sh", "-c", "sleep 600"), timeout_seconds=1),
        retry=ONCE,
    )  # fmt: skip
    function = "tests.acceptance.arc_workloads:shout"
    arcs.arc("hung", "raw", "hung", Workload(function=function, timeout_seconds=1), retry=ONCE)
    arcs.order(LOT, "hang", "hang")
    arcs.feed("raw", LOT, {"a.txt": b"1\n"})
    with LocalThreads(2) as threads, arcs.engine(threads):
        arcs.until_state("slow", LOT, ArcState.PARTIAL)
        arcs.until_state("hung", LOT, ArcState.PARTIAL)
    assert "longer than 1 seconds" in str(arcs.lot("slow", LOT).error)
    assert "longer than 1 seconds" in str(arcs.lot("hung", LOT).error)
    arcs.do(ResubmitLots("ann", "again", NS, "hung", (LOT,)))
    with LocalProcesses(1) as processes, arcs.engine(processes):
        arcs.until(lambda: arcs.lot("hung", LOT).attempts == 1)
        arcs.until_state("hung", LOT, ArcState.PARTIAL)
    assert "longer than 1 seconds" in str(arcs.lot("hung", LOT).error)
