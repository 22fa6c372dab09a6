"""Who can make a lot that is waited for: not a job that was deleted, or wired to something else."""

from collections.abc import Iterator

import pytest

from penstock.catalog.commands import DeleteJob
from penstock.clock import SECOND
from penstock.locks.commands import HoldLot, HoldWork, ResubmitLots, Sweep
from penstock.locks.queries.lots import list_log_of_job, list_log_of_lot, list_work
from penstock.schema.locks import Why
from penstock.states import WorkState
from tests.contract.why_site import Site, kinds, open_site

pytestmark = pytest.mark.one_database


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean, with one try; use reads clean and dim. Lot 9 of raw and of dim are there."""
    with open_site(database_url) as opened:
        opened.wire("a", ["raw"], ["clean"], tries_max=1)
        opened.wire("use", ["clean", "dim"], ["mart"])
        opened.register("raw")
        opened.register("dim")
        yield opened


def delete(site: Site, job: str) -> None:
    site.do(DeleteJob("ns", job, "ann"))


def causes(found: Why) -> list[tuple[str, bool]]:
    return [(cause.job, cause.runnable) for cause in found.causes]


def test_a_deleted_job_does_not_make_what_is_missing(site: Site) -> None:
    delete(site, "a")
    found = site.why("use")
    assert (kinds(found), found.causes) == (["input_missing"], [])
    assert (
        "has no lot 9: job ns/a, which made such lots, was deleted; wire it again, wire another "
        "job to make them, or register the lot when it exists." in found.sentence
    )
    site.wire("a", ["raw"], ["clean"], tries_max=1)
    assert causes(site.why("use")) == [("a", True)]


def test_who_is_left_makes_what_a_deleted_job_does_not(site: Site) -> None:
    site.wire("other", ["raw"], ["clean"])
    delete(site, "a")
    found = site.why("use")
    assert causes(found) == [("other", True)]
    assert "job ns/other has to make it" in found.sentence
    assert "ns/a" not in found.sentence


def test_a_deleted_job_that_was_out_of_tries_holds_its_lot_until_that_is_let_go(site: Site) -> None:
    site.fail("a")
    delete(site, "a")
    found = site.why("use")
    assert found.causes == []
    assert "job ns/a, which was deleted, ran out of tries with it" in found.sentence
    assert "release this lot of the dataset" in found.sentence
    site.do(HoldLot("ann", "over", "ns", "clean", "9", hold=False))
    assert "could not be made by job ns/a" in site.why("use").sentence
    assert "wire another job to make them" in site.why("use").sentence


def test_a_lot_that_one_job_failed_with_can_be_made_by_another(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], tries_max=2)
    site.wire("other", ["raw"], ["clean"])
    site.fail("a")
    found = site.why("use")
    assert causes(found) == [("a", False), ("other", True)]
    assert "could not be made by job ns/a" in found.reasons[0].sentence
    assert "job ns/other can make it as well" in found.reasons[0].sentence
    assert "Job ns/other can work on lot 9" in found.sentence


def test_a_lot_that_was_let_go_can_be_made_by_another(site: Site) -> None:
    site.wire("other", ["raw"], ["clean"])
    site.fail("a")
    assert causes(site.why("use")) == [("a", False)]
    advice = "is out of tries with it; release this lot of the dataset for job ns/other to make it."
    assert advice in site.why("use").sentence
    assert advice in site.why("other").sentence
    site.do(HoldLot("ann", "let others try", "ns", "clean", "9", hold=False))
    assert causes(site.why("use")) == [("a", False), ("other", True)]


def test_a_job_that_is_wired_to_something_else_is_waited_for_no_longer(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], tries_max=2)
    site.fail("a")
    site.wire("a", ["raw"], ["elsewhere"])
    alone = site.why("use")
    assert alone.causes == []
    assert "no job here makes it; register it when it exists" in alone.sentence
    site.wire("other", ["raw"], ["clean"])
    found = site.why("use")
    assert causes(found) == [("other", True)]
    assert "job ns/other has to make it" in found.reasons[0].sentence


def test_what_a_job_left_behind_out_of_tries_is_let_go_by_hand(site: Site) -> None:
    site.wire("a", ["raw"], ["clean", "rest"], tries_max=1)
    site.fail("a")
    site.wire("a", ["raw"], ["clean"])
    site.now += SECOND
    site.do(HoldWork("ann", "again", "ns", "a", "9", hold=False))
    site.wire("heir", ["raw"], ["rest"])
    found = site.why("heir")
    assert (kinds(found), found.causes) == (["output_locked"], [])
    assert (
        "job ns/a, which does not make such lots any more, ran out of tries with it; release this "
        "lot of the dataset to continue." in found.sentence
    )
    site.do(HoldLot("ann", "let others try", "ns", "rest", "9", hold=False))
    assert site.why("heir").runnable


def test_a_job_that_was_done_before_it_was_wired_to_make_a_lot_is_to_be_resubmitted(
    site: Site,
) -> None:
    site.complete("a")
    site.wire("a", ["raw"], ["clean", "late"])
    site.wire("reader", ["late", "dim"], [])
    found = site.why("reader")
    assert causes(found) == [("a", False)]
    assert "Job ns/a has done lot 9" in found.sentence
    assert "ns/late has no such lot: resubmit it to make that." in found.sentence
    site.do(ResubmitLots("ann", "for late", "ns", "a", ("9",)))
    site.complete("a")
    assert site.why("reader").runnable


def test_a_run_may_read_what_only_a_deleted_job_made(site: Site) -> None:
    site.report("START", "reader", "clean", "copy")
    [refused] = conflicts(site)
    assert "it is made by job ns/a" in refused
    delete(site, "a")
    site.report("START", "reader", "clean", "copy")
    assert conflicts(site) == [refused]


def conflicts(site: Site) -> list[str]:
    with site.catalog.read() as tx:
        log = list_log_of_job(tx, "ns", "reader", None, 10, 0)
    return [entry.why for entry in log if entry.action == "conflict"]


def test_a_job_that_has_done_a_lot_says_what_it_would_read_today(site: Site) -> None:
    site.complete("a")
    site.wire("a", ["raw", "extra"], ["clean"])
    assert "has done lot 9" in site.why("a").sentence
    assert (
        "It did not read ns/extra, as it would today, where the lot cannot be read yet: resubmit "
        "it when it can." in site.why("a").sentence
    )
    site.register("extra")
    assert (
        "It did not read ns/extra, as it would today: resubmit the lot to use it."
        in site.why("a").sentence
    )
    site.do(ResubmitLots("ann", "for extra", "ns", "a", ("9",)))
    site.complete("a")
    assert "did not read" not in site.why("a").sentence


def test_a_job_that_is_wired_to_read_and_write_something_else_waits_for_that(site: Site) -> None:
    site.complete("a")
    site.wire("a", ["extra"], ["late"])
    found = site.why("a")
    assert (found.state, kinds(found)) == (WorkState.WAITING, ["input_missing"])
    with site.catalog.read() as tx:
        (work,) = list_work(tx, "ns", "a", None, 10, 0).items
    assert (work.state, work.attempts) == (WorkState.WAITING, 0)
    site.wire("reader", ["late"], [])
    assert causes(site.why("reader")) == [("a", False)]
    site.register("extra")
    assert site.why("a").runnable
    site.complete("a")
    assert site.why("reader").runnable


def test_the_log_of_a_lot_tells_nothing_of_what_its_jobs_did_with_other_datasets(
    site: Site,
) -> None:
    def told(dataset: str) -> list[tuple[str, str]]:
        with site.catalog.read() as tx:
            log = list_log_of_lot(tx, "ns", dataset, "9", 50, 0)
        return [(row.action, row.job or row.dataset or "") for row in reversed(log)]

    site.wire("a", ["raw"], ["clean"], tries_max=2)
    site.fail("a")
    site.now += 60 * SECOND
    site.do(Sweep())
    site.complete("a")
    worked = [("claim", "a"), ("fail", "a"), ("claim", "a"), ("complete", "a")]
    assert told("clean") == worked
    site.wire("a", ["dim"], ["late"])
    assert told("dim") == [("register", "dim")]
    assert told("late") == []
    site.complete("a")
    again = [("claim", "a"), ("complete", "a")]
    assert told("dim") == [("register", "dim"), *again]
    assert told("late") == again
    assert told("clean") == worked
    assert told("raw") == [("register", "raw"), *worked]
