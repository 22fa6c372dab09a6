"""Why a job does not work on a lot: every kind of reason, down to the root cause."""

from collections.abc import Iterator

import pytest

from penstock.catalog.commands import DatasetName
from penstock.clock import HOUR, SECOND, format_time, say_time
from penstock.errors import Invalid, NotFound
from penstock.locks.commands import (
    ClaimRef,
    CompleteClaims,
    HoldDataset,
    HoldJob,
    HoldLot,
    HoldWork,
    ResubmitLots,
    Sweep,
    WireJob,
)
from penstock.states import WorkState
from tests.contract.why_site import NOON, Site, kinds, only_reason, open_site

pytestmark = pytest.mark.one_database


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean; b: clean and dim → mart."""
    with open_site(database_url) as opened:
        opened.wire("a", ["raw"], ["clean"], tries_max=2, back_off_seconds=10)
        opened.wire("b", ["clean", "dim"], ["mart"])
        yield opened


def test_a_lot_that_can_be_claimed_has_nothing_against_it(site: Site) -> None:
    site.register("raw")
    found = site.why("a")
    assert (found.state, found.runnable, kinds(found), found.causes) == ("READY", True, [], [])
    assert (
        found.sentence
        == f"Job ns/a can work on lot 9: it is READY since {say_time(NOON)}, claim it."
    )


def test_a_lot_that_nobody_has_is_to_be_registered(site: Site) -> None:
    found = site.why("a")
    assert (found.state, found.runnable, found.causes) == (None, False, [])
    assert kinds(found) == ["unknown_lot", "input_missing"]
    assert (found.reasons[1].namespace, found.reasons[1].name) == ("ns", "raw")
    assert "register it" in found.sentence


def test_a_job_that_reads_nothing_works_on_lots_by_name(site: Site) -> None:
    site.wire("source", [], ["raw"])
    found = site.why("source")
    assert kinds(found) == ["unknown_lot"]
    assert "must claim the lot by name" in found.sentence
    site.complete("source")
    assert kinds(site.why("source")) == ["done"]
    assert site.why("a").runnable


def test_a_missing_input_leads_to_the_job_that_makes_it(site: Site) -> None:
    site.register("dim")
    found = site.why("b")
    assert (found.state, kinds(found)) == (WorkState.WAITING, ["input_missing"])
    assert "job ns/a has to make it" in found.sentence
    (cause,) = found.causes
    assert (cause.job, kinds(cause)) == ("a", ["unknown_lot", "input_missing"])
    assert found.sentence.endswith(f"Root cause: {cause.sentence}")


def test_a_running_claim_is_told_with_its_holder(site: Site) -> None:
    site.register("raw")
    claim = site.claim("a", owner="etl-7")
    reason = only_reason(site.why("a"))
    assert (reason.kind, reason.who, reason.claim) == ("running", "etl-7", claim.id)
    assert (reason.attempt, reason.attempts_max) == (1, 2)
    assert (reason.since, reason.until) == (format_time(NOON), format_time(NOON + 60 * SECOND))
    waits = site.why("b")
    assert kinds(waits) == ["input_running", "input_missing"]
    assert "is being made by job ns/a, held by 'etl-7' since" in waits.sentence
    assert [kinds(cause) for cause in waits.causes] == [["running"]]
    site.now += 61 * SECOND
    assert "the claim is about to end" in site.why("a").sentence


def test_a_lot_that_is_done_says_so_and_names_what_came_since(site: Site) -> None:
    site.register("raw")
    site.complete("a")
    found = site.why("a")
    assert (found.state, found.runnable, kinds(found)) == ("DONE", False, ["done"])
    assert found.sentence == f"Job ns/a has done lot 9: DONE since {say_time(NOON)}."
    site.now += SECOND
    site.register("raw")
    assert "ns/raw got a newer version" in site.why("a").sentence


def test_a_failure_says_which_try_it_was_and_when_the_next_is(site: Site) -> None:
    site.register("raw")
    site.register("dim")
    site.fail("a")
    reason = only_reason(site.why("a"))
    assert (reason.kind, reason.why, reason.attempt, reason.attempts_max) == (
        *("later", "disk full", 1, 2),
    )
    assert reason.until == format_time(NOON + 10 * SECOND)
    waits = site.why("b")
    assert kinds(waits) == ["input_error"]
    assert "could not be made by job ns/a" in waits.sentence
    assert "disk full" in waits.sentence
    assert [kinds(cause) for cause in waits.causes] == [["later"]]
    site.now += 10 * SECOND
    found = site.why("a")
    assert (found.state, found.runnable, kinds(found)) == ("RETRYABLE", False, ["later"])
    assert "It is retried any moment: its backoff ended at" in found.sentence


def test_a_lot_that_is_out_of_tries_waits_for_a_person(site: Site) -> None:
    site.register("raw")
    site.register("dim")
    site.fail("a")
    site.now += 11 * SECOND
    site.do(Sweep())
    site.fail("a", error="disk still full")
    found = site.why("a")
    reason = only_reason(found)
    assert (found.state, reason.kind, reason.attempt) == ("HELD", "out_of_tries", 2)
    assert (reason.why, reason.since) == ("disk still full", format_time(site.now))
    waits = site.why("b")
    assert kinds(waits) == ["input_held"]
    assert "job ns/a is out of tries" in waits.reasons[0].sentence
    assert [kinds(cause) for cause in waits.causes] == [["out_of_tries"]]
    assert "Root cause: Job ns/a is out of tries with lot 9" in waits.sentence


def test_holds_say_who_and_why(site: Site) -> None:
    site.register("raw")
    site.do(HoldWork("boss", "look at it first", "ns", "a", "9"))
    found = only_reason(site.why("a"))
    assert (found.kind, found.who, found.why) == ("held_lot", "boss", "look at it first")
    site.do(HoldWork("boss", "fine", "ns", "a", "9", hold=False))
    site.do(HoldJob("boss", "migration", "ns", "a"))
    held = site.why("a")
    assert (held.state, held.runnable, kinds(held)) == ("READY", False, ["held_job"])
    site.do(HoldDataset("eve", "leaking", "ns", "clean"))
    assert kinds(site.why("a")) == ["held_job", "held_dataset"]
    assert "Dataset ns/clean is held by 'eve'" in site.why("a").sentence
    site.do(HoldJob("boss", "over", "ns", "a", hold=False))
    assert kinds(site.why("a")) == ["held_dataset"]


def test_a_lot_that_is_to_be_made_again_leads_to_its_job(site: Site) -> None:
    site.register("raw")
    site.register("dim")
    site.complete("a")
    site.do(ResubmitLots("boss", "bug", "ns", "a", ("9",)))
    found = site.why("b")
    assert kinds(found) == ["input_missing"]
    assert "is to be made again by job ns/a" in found.sentence
    (cause,) = found.causes
    assert (cause.runnable, cause.state) == (True, "READY")


def test_an_output_that_another_job_makes_is_locked(site: Site) -> None:
    site.wire("rival", ["raw"], ["clean"])
    site.register("raw")
    claim = site.claim("a", owner="etl-7")
    found = site.why("rival")
    reason = only_reason(found)
    assert (reason.kind, reason.status, reason.who) == ("output_locked", "RUNNING", "etl-7")
    assert (reason.name, reason.claim) == ("clean", claim.id)
    assert [cause.job for cause in found.causes] == ["a"]
    site.do(CompleteClaims((ClaimRef(claim.id, claim.token),)))
    done = site.why("rival")
    assert (kinds(done), done.reasons[0].status, done.causes) == (["output_locked"], "READY", [])
    assert "is READY, made by job ns/a" in done.sentence


def test_a_clock_says_when_it_strikes(site: Site) -> None:
    site.wire("hourly", ["clock:PT1H"], ["report"])
    coming = site.why("hourly", "20261115PT1H12")
    assert coming.reasons[-1].until == format_time(NOON + HOUR)
    assert "its interval ends at 2026-11-15 13:00:00 UTC" in coming.sentence
    assert "never comes" in site.why("hourly", "9").sentence
    assert "never comes" in site.why("hourly", "20261115PT24H").sentence
    assert "before the clock was in use" in site.why("hourly", "20261115PT1H03").sentence
    site.now += HOUR
    site.do(Sweep())
    assert site.why("hourly", "20261115PT1H12").runnable


def test_causes_go_all_the_way_and_each_is_followed_once(site: Site) -> None:
    site.wire("left", ["mart"], ["l"])
    site.wire("right", ["mart"], ["r"])
    site.wire("last", ["l", "r"], ["end"])
    site.register("dim")
    site.register("raw")
    site.fail("a")
    found = site.why("last")
    told: list[str] = []
    waiting = [found]
    while waiting:
        told.append(waiting[0].job)
        waiting += waiting.pop(0).causes
    assert told == ["last", "left", "right", "b", "b", "a"]
    assert "Root cause: " in found.sentence
    assert "Job ns/a failed with lot 9 (try 1 of 2): disk full." in found.sentence


def test_causes_stop_where_a_key_may_not_look(site: Site) -> None:
    site.do(WireJob("theirs", "x", (DatasetName("theirs", "x"),), (DatasetName("ns", "shared"),)))
    site.wire("mine", ["shared"], [])
    assert [cause.job for cause in site.why("mine").causes] == ["x"]
    narrowed = site.why("mine", only="ns")
    assert (narrowed.causes, kinds(narrowed)) == ([], ["unknown_lot", "input_missing"])
    assert "ns/shared has no lot 9: a job in a namespace that is not shown has" in narrowed.sentence


def test_what_is_not_there_is_refused(site: Site) -> None:
    with pytest.raises(NotFound, match="wire it"):
        site.why("nobody")
    with pytest.raises(Invalid, match="slash"):
        site.why("a", "x/y")


def test_a_worker_that_finds_nothing_learns_why(site: Site) -> None:
    assert "has nothing to do" in site.nothing("a").summary
    for lot in ("1", "2", "3", "4"):
        site.register("raw", lot)
    site.claim("a", "1")
    site.fail("a", "2")
    site.do(HoldWork("boss", "odd", "ns", "a", "3"))
    site.complete("a", "4")
    found = site.nothing("a")
    assert (found.waiting, found.running, found.retryable, found.held_lots) == (0, 1, 1, 1)
    assert (found.held, found.next_at) == (None, format_time(NOON + 10 * SECOND))
    assert "1 lot is being worked on" in found.summary
    assert site.nothing("b").waiting == 2
    site.do(HoldDataset("eve", "leaking", "ns", "clean"))
    assert f"held by 'eve' since {say_time(NOON)}: leaking" in site.nothing("a").summary
    held = site.nothing("a").held
    assert held is not None
    assert (held.kind, held.namespace, held.name, held.who, held.why) == (
        *("DATASET", "ns", "clean", "eve", "leaking"),
    )


def test_a_failure_that_waits_for_an_input_is_tried_again_when_that_is_there(site: Site) -> None:
    site.register("raw")
    site.fail("a")
    site.do(HoldLot("boss", "wrong numbers", "ns", "raw", "9"))
    found = site.why("a")
    assert (found.state, kinds(found)) == ("WAITING", ["later", "input_held"])
    assert (
        "It is retried when its inputs are READY, not before 2026-11-15 12:00:10 UTC."
        in found.sentence
    )
    assert "retried at" not in found.sentence


def test_a_failure_whose_output_is_locked_is_tried_again_when_that_is_free(site: Site) -> None:
    site.wire("rival", ["raw"], ["clean"])
    site.register("raw")
    site.fail("a")
    site.claim("rival")
    found = site.why("a")
    assert (found.state, kinds(found)) == ("WAITING", ["later", "output_locked"])
    assert "retried when its outputs are free, not before" in found.sentence


def test_a_clock_that_nobody_has_started_does_not_strike(site: Site) -> None:
    coming, gone = "20261115PT1H12", "20261115PT1H03"
    for lot in (coming, gone):
        run = site.report("START", "told", "clock:PT1H", "report", lot)
        site.report("FAIL", "told", "clock:PT1H", "report", lot, run)
    site.now += 30 * SECOND
    found = site.why("told", coming)
    assert found.state == WorkState.WAITING
    assert (
        "has no lot 20261115PT1H12: the clock is not in use; wire a job to it before 2026-11-15 "
        "13:00:00 UTC, when the interval ends, for it to be READY then." in found.sentence
    )
    assert found.reasons[-1].until is None
    assert "its interval ended at 2026-11-15 04:00:00 UTC, and the clock was not in use" in (
        site.why("told", gone).sentence
    )
    site.wire("hourly", ["clock:PT1H"], ["hours"])
    assert "and then it is READY" in site.why("told", coming).sentence


def test_a_clock_that_is_behind_is_about_to_strike(site: Site) -> None:
    site.wire("hourly", ["clock:PT1H"], ["report"])
    site.now += HOUR + SECOND
    assert "and it is about to be READY" in site.why("hourly", "20261115PT1H12").sentence


def test_a_clock_of_no_known_interval_does_not_strike(site: Site) -> None:
    run = site.report("START", "told", "clock:PT7M", "report")
    site.report("FAIL", "told", "clock:PT7M", "report", run=run)
    assert (
        "that is a clock of no known interval, so the lot never comes" in site.why("told").sentence
    )
