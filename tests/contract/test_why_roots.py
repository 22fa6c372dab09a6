"""Where the chains of causes end: in diamonds, in rings, in chains too long to be followed."""

from collections.abc import Iterator

import pytest

from penstock.clock import SECOND
from penstock.locks.commands import HoldDataset, HoldJob, HoldLot, HoldWork
from penstock.locks.explain.causes import DEPTH_MAX, DESCRIBED_MAX
from penstock.locks.explain.why import explain_work
from penstock.locks.gaps.gaps import load_gaps
from penstock.schema.locks import Why
from penstock.schema.lot_ids import Interval
from tests.contract.test_reading_cost import CountingTransaction
from tests.contract.why_site import NOON, Site, open_site

pytestmark = pytest.mark.one_database


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with open_site(database_url) as opened:
        yield opened


def make_diamond(site: Site) -> None:
    """D reads b and c, which are made of a; a is made of r, which A0 makes of raw."""
    site.wire("A0", ["raw"], ["r"])
    site.wire("A", ["r"], ["a"])
    site.wire("B", ["a"], ["b"])
    site.wire("C", ["a"], ["c"])
    site.wire("D", ["b", "c"], ["d"])


def make_chain(site: Site, length: int) -> str:
    """step 0 can work; returned is the last one, which waits for all of them."""
    for number in range(length):
        site.wire(f"step {number}", [f"t{number}"], [f"t{number + 1}"])
    site.register("t0")
    return f"step {length - 1}"


def told(found: Why) -> Iterator[Why]:
    yield found
    for cause in found.causes:
        yield from told(cause)


def roots(found: Why) -> str:
    return found.sentence.partition(" Root cause: ")[2]


def test_in_a_diamond_only_the_last_job_is_the_root_cause(site: Site) -> None:
    make_diamond(site)
    site.register("raw")
    found = site.why("D")
    assert roots(found).startswith("Job ns/A0 can work on lot 9: it is READY")
    assert roots(found).count("Job ns/") == 1


def test_both_sides_of_a_diamond_have_their_cause_and_one_follows_it(site: Site) -> None:
    make_diamond(site)
    site.register("raw")
    left, right = site.why("D").causes
    [of_left], [of_right] = left.causes, right.causes
    assert (of_left.job, of_left.followed, [c.job for c in of_left.causes]) == ("A", True, ["A0"])
    assert (of_right.job, of_right.followed, of_right.causes) == ("A", False, [])
    assert of_right.reasons == of_left.reasons
    assert of_right.sentence == f"{of_left.sentence} Its causes are shown elsewhere in this answer."


def test_a_root_cause_is_told_wherever_it_is_one(site: Site) -> None:
    site.wire("A", ["raw"], ["a"])
    site.wire("B", ["a"], ["b"])
    site.wire("C", ["a"], ["c"])
    site.wire("D", ["b", "c"], ["d"])
    left, right = site.why("D").causes
    assert left.causes == right.causes
    assert left.causes[0].followed


def test_diamonds_on_diamonds_are_not_told_over_and_over(site: Site) -> None:
    for number in range(20):
        for side in ("left", "right"):
            reads = [f"left {number}", f"right {number}"]
            site.wire(f"{side} of {number}", reads, [f"{side} {number + 1}"])
    found = site.why("left of 19")
    assert len(list(told(found))) < 100


def test_gaps_have_the_root_of_a_diamond_once(site: Site) -> None:
    make_diamond(site)
    lot = "20261115PT1H09"
    site.register("raw", lot)
    with site.catalog.read() as tx:
        found = load_gaps(tx, "ns", "d", lot, lot, NOON, interval=Interval.HOUR)
    cause = found.ranges[0].cause
    assert cause is not None
    assert [(root.dataset, root.job.name if root.job else None) for root in cause.roots] == [
        ("r", "A0")
    ]


def test_jobs_that_wait_for_each_other_are_the_root_cause_together(site: Site) -> None:
    site.wire("ring 1", ["z", "raw"], ["y"])
    site.wire("ring 2", ["y", "raw"], ["z"])
    site.wire("after", ["y", "raw"], [])
    site.register("raw")
    found = site.why("after")
    assert roots(found) == (
        "Job ns/ring 1 and job ns/ring 2 wait for each other with lot 9; change the wiring of "
        "one of them, or register its output."
    )
    (cause,) = site.why("ring 1").causes
    assert [(again.job, again.followed) for again in cause.causes] == [("ring 1", False)]


def test_a_chain_that_is_too_long_says_whom_to_ask_next(site: Site) -> None:
    last = make_chain(site, DEPTH_MAX + 10)
    found = site.why(last)
    *_, end = told(found)
    assert (end.job, end.followed, end.causes) == ("step 10", False, [])
    assert roots(found) == ""
    assert found.sentence.endswith(
        f"The chain has more than {DEPTH_MAX} jobs: ask why job ns/step 10 cannot run for the rest."
    )
    assert roots(site.why("step 10")).startswith("Job ns/step 0 can work on lot 9")


def test_a_chain_of_that_length_is_told_to_its_end(site: Site) -> None:
    found = site.why(make_chain(site, DEPTH_MAX))
    assert len(list(told(found))) == DEPTH_MAX
    assert roots(found).startswith("Job ns/step 0 can work on lot 9")


def test_many_jobs_beside_each_other_cost_no_more_statements(site: Site) -> None:
    def statements(job: str) -> int:
        with site.catalog.read() as tx:
            counted = CountingTransaction(tx)
            explain_work(counted, "ns", job, "9", site.now)
        return counted.statements

    for number in range(30):
        site.wire(f"maker {number}", ["raw"], [f"part {number}"])
    site.wire("few", ["part 0"], ["one"])
    site.wire("many", [f"part {number}" for number in range(30)], ["all"])
    assert statements("many") == statements("few")


def kinds_of_roots(found: Why) -> list[tuple[str, list[str]]]:
    return [(root.job, [reason.kind for reason in root.reasons]) for root in found.roots]


def make_join(site: Site) -> None:
    """a: raw → clean; join: clean and dim → mart; nobody makes raw or dim."""
    site.wire("a", ["raw"], ["clean"], tries_max=1)
    site.wire("join", ["clean", "dim"], ["mart"], tries_max=1)


def test_a_join_names_both_missing_inputs(site: Site) -> None:
    make_join(site)
    site.register("raw")
    site.fail("a")

    found = site.why("join")

    assert kinds_of_roots(found) == [("a", ["out_of_tries"]), ("join", ["input_missing"])]
    text = found.sentence.partition(" Root causes: ")[2]
    assert "Job ns/a is out of tries with lot 9" in text
    assert "Input ns/dim has no lot 9" in text


def test_a_join_whose_inputs_nobody_has_registered_names_both(site: Site) -> None:
    make_join(site)

    assert kinds_of_roots(site.why("join")) == [
        ("join", ["input_missing"]),
        ("a", ["input_missing"]),
    ]


@pytest.mark.parametrize(
    ("hold", "kind", "command"),
    [
        (HoldJob("ann", "wait", "ns", "join"), "held_job", "jobs release ns/join"),
        (HoldDataset("ann", "wait", "ns", "dim"), "held_dataset", "datasets release ns/dim"),
        (HoldWork("ann", "wait", "ns", "join", "9"), "held_lot", "work release ns/join 9"),
    ],
)
def test_a_hold_and_a_missing_input_are_both_roots(
    site: Site, hold: HoldJob, kind: str, command: str
) -> None:
    make_join(site)
    site.register("raw")
    site.register("dim")
    site.do(hold)

    found = site.why("join")

    assert kinds_of_roots(found) == [("join", [kind]), ("a", [])]
    assert found.roots[0].reasons[0].command == f"penstock {command} --why REASON"
    assert "Job ns/a can work on lot 9" in found.roots[1].sentence


def test_what_a_person_must_end_comes_before_what_is_missing(site: Site) -> None:
    make_join(site)
    site.do(HoldJob("ann", "wait", "ns", "a"))

    assert kinds_of_roots(site.why("join")) == [
        ("a", ["held_job", "input_missing"]),
        ("join", ["input_missing"]),
    ]


def test_a_held_input_is_a_root_with_the_command_that_ends_it(site: Site) -> None:
    make_join(site)
    site.register("raw")
    site.complete("a")
    site.do(HoldLot("ann", "wait", "ns", "raw", "9"))

    [root] = site.why("join").roots

    commands = [(reason.kind, reason.command) for reason in root.reasons]
    assert commands == [
        ("input_held", "penstock lots release ns/raw 9 --why REASON"),
        ("input_missing", None),
    ]


def test_out_of_tries_with_a_corrected_input_offers_the_retry(site: Site) -> None:
    make_join(site)
    site.register("raw")
    site.fail("a")
    assert "newer version" not in site.why("a").sentence
    site.now += SECOND
    site.register("raw")

    [reason] = site.why("a").reasons

    assert reason.kind == "out_of_tries"
    assert "Since then ns/raw got a newer version: resubmit the lot to use it." in reason.sentence
    assert reason.command == "penstock work retry ns/a 9 --why REASON"


def test_a_lot_that_is_done_has_no_root_cause(site: Site) -> None:
    make_join(site)
    site.register("raw")
    site.complete("a")

    assert site.why("a").roots == []


def test_a_sentence_names_a_few_roots_and_counts_the_rest(site: Site) -> None:
    parts = [f"part {number}" for number in range(DESCRIBED_MAX + 2)]
    for part in parts:
        site.wire(f"make {part}", [f"raw of {part}"], [part])
    site.wire("join", parts, ["all"])

    found = site.why("join")

    assert len(found.roots) == len(parts)
    assert found.sentence.endswith(" There are 2 more.")
