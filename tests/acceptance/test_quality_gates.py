"""A lot that fails a check is partial and held, with all that would read it, until a person accepts
it or it is made again.
"""

import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from penstock.access import audit
from penstock.arcs.outputs.state_keys import Sync, follow_maker
from penstock.arcs.overview import count_lots, list_arc_lots
from penstock.arcs.queries import find_arc
from penstock.arcs.spec import Parts, Workload
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.errors import Conflict
from penstock.locks.acceptance import accept
from penstock.locks.commands import HoldLot, ResubmitLots
from penstock.locks.commands.admin import AcceptLot
from penstock.locks.explain.why import explain_work
from penstock.locks.queries.lots import get_work, list_lot_checks, show_lot
from penstock.lots.manifests import QualityCheck
from penstock.lots.outbox import events_after
from penstock.schema.locks import Stale
from penstock.schema.lots import CheckResult, Lot
from penstock.states import ArcState, WorkState
from tests.acceptance import arc_workloads
from tests.acceptance.arc_site import NS, ArcSite
from tests.acceptance.flow_site import Flow

LOT = "20261115PT1H09"
CHECK = f"{arc_workloads.__name__}:nothing_bad"
NOT_EMPTY = f"{arc_workloads.__name__}:is_not_empty"
EACH = Parts(function=f"{arc_workloads.__name__}:one_part_each")
GOOD, BAD = {"a.txt": b"good"}, {"a.txt": b"bad"}
PASS, FAIL = (
    QualityCheck("is sorted", True),
    QualityCheck("is sorted", False, detail="row 7 is not"),
)


def lot_of(arcs: ArcSite, dataset: str) -> Lot:
    with arcs.catalog.read() as tx:
        return show_lot(tx, NS, dataset, LOT)


def checks_of(arcs: ArcSite, dataset: str = "clean") -> list[CheckResult]:
    with arcs.catalog.read() as tx:
        return list(list_lot_checks(tx, NS, dataset, LOT).checks)


def listed(arcs: ArcSite) -> dict[str, list[str]]:
    """The lots of the arc in front of the gate, by its states; they are counted so as well."""
    with arcs.catalog.read() as tx:
        pages = {
            str(state): [each.lot for each in list_arc_lots(tx, NS, "clean_it", state, "", 9)]
            for state in (ArcState.PARTIAL, ArcState.COMPLETE)
        }
        row = find_arc(tx, NS, "clean_it")
        counts = count_lots(tx, [row])[row.job_id]
    assert (counts.partial, counts.complete) == tuple(map(len, pages.values()))
    return pages


def why_not(arcs: ArcSite, job: str) -> str:
    with arcs.catalog.read() as tx:
        return explain_work(tx, NS, job, LOT, arcs.plane.clock()).sentence


def states(arcs: ArcSite, dataset: str) -> list[str]:
    """What the keys say that everybody looks at."""
    keys = arcs.manifests(dataset, LOT)
    return [key.split("/")[0] for key in keys if "attempt=" not in key]


def make_chain(arcs: ArcSite, workload: str | Workload = "shout", **how: object) -> None:
    arcs.arc("clean_it", "raw", "clean", workload, **how)
    arcs.arc("mart_it", "clean", "mart")


def run_to_the_gate(
    arcs: ArcSite, content: dict[str, bytes], rules: CommandRules = DEFAULT_RULES
) -> None:
    """The lot is made, and held for its checks; what would read it waits."""
    arcs.feed("raw", LOT, content)
    with arcs.engine(rules=rules):
        arcs.until(lambda: lot_of(arcs, "clean").status == "HOLD" and states(arcs, "clean"))
    assert states(arcs, "clean") == ["state=partial"]
    assert arcs.state("clean_it", LOT) is ArcState.PARTIAL
    assert arcs.shown("clean_it", LOT) == ["partial.arc"]
    assert arcs.state("mart_it", LOT) is None
    assert [event.kind for event in arcs.events()] == ["published", "announced"]


def finish(arcs: ArcSite) -> dict[str, bytes]:
    with arcs.engine():
        arcs.until_state("mart_it", LOT, ArcState.COMPLETE)
    return arcs.content("mart_it", LOT)


def let(arcs: ArcSite, dataset: str = "clean") -> None:
    accept(arcs.catalog, arcs.objects, NS, dataset, LOT, who="ann", why="it is known")
    follow_maker(arcs.catalog, arcs.objects, NS, dataset, LOT)


def test_a_check_function_that_fails_holds_the_lot_until_it_is_accepted(arcs: ArcSite) -> None:
    make_chain(arcs, checks=(NOT_EMPTY, CHECK))
    run_to_the_gate(arcs, BAD)
    told = why_not(arcs, "mart_it")
    assert "lot 20261115PT1H09 is held by 'quality checks'" in told
    assert "failed: nothing_bad: a.txt has a bad word" in told
    assert {(c.name, c.success) for c in checks_of(arcs)} == {
        ("nothing_bad", False),
        ("is_not_empty", True),
    }
    with pytest.raises(Conflict, match="accept it, or resubmit it"):
        arcs.do(HoldLot("ann", "go", NS, "clean", LOT, hold=False))
    assert listed(arcs) == {"partial": [LOT], "complete": []}
    let(arcs)
    assert listed(arcs) == {"partial": [], "complete": [LOT]}
    assert arcs.shown("clean_it", LOT) == ["complete.arc"]
    assert states(arcs, "clean") == ["state=complete"]
    [line] = arcs.lot("clean_it", LOT).manifests
    assert hashlib.sha256(arcs.objects.get(line.key)).hexdigest() == line.digest
    assert b"accepted although checks failed" in arcs.objects.get(line.key)
    assert arcs.events()[-1].kind == "published"
    assert arcs.events()[-1].state == "complete"
    with arcs.catalog.read() as tx:
        [entry] = [e for e in audit.entries(tx, 100) if e.action == "lot accept"]
    assert (entry.who, entry.detail) == ("ann", "it is known")
    with pytest.raises(Conflict, match="there is nothing to accept"):
        let(arcs)
    assert finish(arcs) == {"a.txt": b"BAD"}
    assert Sync(arcs.catalog, arcs.objects, NS, "clean_it").run().changed == 0


def test_a_lot_that_two_people_accept_at_once_is_accepted_once(arcs: ArcSite) -> None:
    make_chain(arcs, checks=(CHECK,))
    run_to_the_gate(arcs, BAD)
    together = Barrier(2)

    def accept_as(who: str) -> str:
        together.wait()
        try:
            accept(arcs.catalog, arcs.objects, NS, "clean", LOT, who=who, why="it is known")
        except Conflict:
            return "refused"
        return who

    with ThreadPoolExecutor(2) as people:
        said = sorted(people.map(accept_as, ("Ann", "Ben")))
    assert said[1] == "refused"
    with arcs.catalog.read() as tx:
        entries = [e.who for e in audit.entries(tx, 100) if e.action == "lot accept"]
    assert entries == said[:1]
    assert states(arcs, "clean") == ["state=complete"]
    [line] = arcs.lot("clean_it", LOT).manifests
    assert hashlib.sha256(arcs.objects.get(line.key)).hexdigest() == line.digest
    assert [event.kind for event in arcs.events()].count("published") == 2
    assert finish(arcs) == {"a.txt": b"BAD"}


def test_what_the_workload_itself_says_counts_as_well(arcs: ArcSite) -> None:
    make_chain(arcs, "doubt")
    run_to_the_gate(arcs, {"a.txt": b"good", "b.txt": b"bad"})
    assert "failed: no bad words of b.txt: bad" in why_not(arcs, "mart_it")
    assert "; accept it, or resubmit it." in why_not(arcs, "mart_it")
    shown = {(c.field, c.success, c.detail) for c in checks_of(arcs)}
    assert shown == {("a.txt", True, None), ("b.txt", False, "bad")}
    assert Sync(arcs.catalog, arcs.objects, NS, "clean_it").run().changed == 0


def test_a_command_says_what_its_checks_said_in_its_manifest(arcs: ArcSite) -> None:
    script = """
import json, os
from penstock.objects.uris import open_store
url = os.environ["PENSTOCK_OUTPUT_URL"]
store = open_store(url.rstrip("/"))
store.put("rows.txt", b"1")
said = {"name": "row_count", "success": False, "field": "id", "detail": "1 of 2"}
with open(os.environ["PENSTOCK_MANIFEST"], "w") as file:
    json.dump({"uris": ["rows.txt"], "checks": [said]}, file)
"""
    names = tuple(name for name in os.environ if name.startswith("AWS_"))
    command = (sys.executable, "-c", script)
    make_chain(arcs, Workload(command=command, pass_environment=names))
    run_to_the_gate(arcs, GOOD, rules=CommandRules(allowed=names))
    assert "failed: row_count of id: 1 of 2" in why_not(arcs, "mart_it")
    let(arcs)
    assert finish(arcs) == {"rows.txt": b"1"}


def test_a_check_that_cannot_be_made_fails_the_run(arcs: ArcSite) -> None:
    make_chain(arcs, checks=(f"{arc_workloads.__name__}:broken_check",))
    arcs.feed("raw", LOT, GOOD)
    with arcs.engine():
        arcs.until(lambda: arcs.lot("clean_it", LOT).work is WorkState.HELD)
    assert "no ruler at hand" in (arcs.lot("clean_it", LOT).error or "")
    assert checks_of(arcs) == []


def test_one_part_that_fails_a_check_holds_the_whole_lot(arcs: ArcSite) -> None:
    make_chain(arcs, parts=EACH, checks=(CHECK,))
    run_to_the_gate(arcs, {"a.txt": b"good", "b.txt": b"bad"})
    assert "failed: nothing_bad in part b.txt: b.txt has a bad word" in why_not(arcs, "mart_it")
    let(arcs)
    assert finish(arcs) == {"a.txt": b"GOOD", "b.txt": b"BAD"}


def test_a_part_that_failed_a_check_is_remembered_when_another_is_tried_again(
    arcs: ArcSite,
) -> None:
    make_chain(arcs, parts=EACH, checks=(CHECK,))
    arcs.order(LOT, "fail", part="a.txt")
    run_to_the_gate(arcs, {"a.txt": b"good", "b.txt": b"bad"})
    assert sorted(arcs.ran()) == [(LOT, "a.txt"), (LOT, "a.txt"), (LOT, "b.txt")]
    assert "nothing_bad in part b.txt: b.txt has a bad word" in why_not(arcs, "mart_it")
    assert {(c.name, c.success) for c in checks_of(arcs)} == {
        ("nothing_bad in part a.txt", True),
        ("nothing_bad in part b.txt", False),
    }


def test_a_lot_made_again_of_better_data_passes_and_downstream_goes_on(arcs: ArcSite) -> None:
    make_chain(arcs, checks=(CHECK,))
    run_to_the_gate(arcs, BAD)
    arcs.feed("raw", LOT, GOOD)  # the arc is one that makes again what is stale
    assert finish(arcs) == {"a.txt": b"GOOD"}
    assert states(arcs, "clean") == ["state=complete"]
    said = [(c.name, c.success) for c in checks_of(arcs)]
    assert said == [("nothing_bad", True), ("nothing_bad", False)]


def test_a_lot_that_is_resubmitted_is_judged_anew(arcs: ArcSite) -> None:
    make_chain(arcs, checks=(CHECK,))
    run_to_the_gate(arcs, BAD)
    arcs.do(ResubmitLots("ann", "try again", NS, "clean_it", (LOT,)))
    with arcs.engine():
        arcs.until(lambda: len(arcs.ran()) == 2 and lot_of(arcs, "clean").status == "HOLD")
    with pytest.raises(Conflict, match="not held for failed checks"):
        let(arcs, "raw")
    with arcs.catalog.read() as tx:
        assert get_work(tx, NS, "mart_it", LOT).state is WorkState.WAITING


def test_an_empty_lot_that_fails_a_check_is_accepted_as_empty(arcs: ArcSite) -> None:
    make_chain(arcs, "be_empty", checks=(NOT_EMPTY,))
    run_to_the_gate(arcs, GOOD)
    let(arcs)
    assert states(arcs, "clean") == ["state=empty"]
    with arcs.catalog.read() as tx:
        assert [e.state for e in events_after(tx, 0, 100)][-1] == "empty"


# The same by plain claims, with holds and staleness.


def make_flow(flow: Flow) -> None:
    flow.wire("clean_it", ["raw"], ["clean"])
    flow.wire("mart_it", ["clean"], ["mart"])
    flow.register("raw")


def accept_in(flow: Flow, dataset: str) -> None:
    with flow.catalog.read() as tx:
        version = show_lot(tx, "ns", dataset, "2026-11-15").version
    assert version is not None
    flow.do(AcceptLot("ann", "known", "ns", dataset, "2026-11-15", version))


def test_a_lot_held_by_lineage_and_for_its_checks_waits_for_both(flow: Flow) -> None:
    make_flow(flow)
    claim = flow.claim("clean_it")
    flow.hold("raw")
    flow.publish(claim, FAIL)
    flow.release_hold("raw")
    assert flow.status("clean") == "HOLD"
    accept_in(flow, "clean")
    assert flow.status("clean") == "READY"
    assert flow.told("clean") == ["announced", "published"]
    flow.run("mart_it")


def test_a_lot_that_is_accepted_while_somebody_holds_it_stays_held(flow: Flow) -> None:
    make_flow(flow)
    flow.publish(flow.claim("clean_it"), FAIL)
    flow.hold("clean")
    accept_in(flow, "clean")
    assert (flow.status("clean"), flow.told("clean")) == ("HOLD", ["announced"])
    flow.release_hold("clean")
    assert (flow.status("clean"), flow.told("clean")[-1]) == ("READY", "published")


def test_checks_with_one_name_or_none_of_the_last_version_do_no_harm(flow: Flow) -> None:
    make_flow(flow)
    long = "x" * 300
    both = (
        QualityCheck(long + "1", False),
        QualityCheck(long + "2", True),
        QualityCheck("odd\0", True, "\0", "\0"),
    )
    flow.publish(flow.claim("clean_it"), *both)
    with flow.catalog.read() as tx:
        found = list_lot_checks(tx, "ns", "clean", "2026-11-15").checks
    assert sorted((c.name, c.success) for c in found) == [("odd", True), ("x" * 200, False)]
    flow.resubmit("clean_it")
    flow.publish(flow.claim("clean_it"), PASS)
    assert flow.status("clean") == "READY"
    flow.run("mart_it")


def test_a_lot_that_is_to_be_made_anew_is_so_when_its_checks_are_accepted(flow: Flow) -> None:
    flow.wire("clean_it", ["raw", "dim"], ["clean"], stale=Stale.RERUN)
    flow.register("raw")
    flow.register("dim")
    flow.publish(flow.claim("clean_it"), FAIL)
    flow.hold("raw")
    flow.register("dim")  # a newer one, for which it is to be made again
    flow.release_hold("raw")
    assert flow.status("clean") == "HOLD"
    accept_in(flow, "clean")
    assert (flow.status("clean"), flow.state("clean_it")) == ("RESUBMIT", WorkState.READY)
    flow.run("clean_it")
    assert flow.status("clean") == "READY"
