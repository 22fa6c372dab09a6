"""How everything stands: jobs by state, open lots, what is stuck, what is late."""

from collections.abc import Iterator

import pytest

from penstock.catalog.commands import DatasetName
from penstock.clock import HOUR
from penstock.ids import dataset_id
from penstock.locks.commands import HoldWork, WireJob
from penstock.locks.queries.overview import get_overview
from penstock.lots.rows import LotDatasetRow
from penstock.schema.admin import JobStanding, SystemOverview
from penstock.states import RunState
from tests.contract.lot_site import NOON, Site, open_site

pytestmark = pytest.mark.one_database

DATASETS = ("raw", "clean")
LOTS = [f"20261115PT1H{hour:02}" for hour in range(6)]


@pytest.fixture
def shop(database_url: str) -> Iterator[Site]:
    """One job that is through with a lot, works on one, failed with one and waits for others."""
    with open_site(database_url) as opened:
        opened.wire("clean", ["raw"], ["clean"])
        opened.wire("mart", ["clean", "rates"], ["mart"])
        opened.wire("idle", ["nothing"], ["never"])
        opened.register("raw", LOTS)
        opened.complete("clean", LOTS[:1])
        opened.claim("clean", LOTS[1])
        opened.fail("clean", LOTS[2])
        opened.do(HoldWork("ann", "look at it", "ns", "clean", LOTS[3]))
        yield opened


def now(shop: Site, namespace: str | None = None) -> SystemOverview:
    with shop.database.read() as tx:
        return get_overview(tx, namespace, shop.now)


def test_only_jobs_with_open_lots_are_told_of_the_busiest_first(shop: Site) -> None:
    clean = JobStanding("ns", "clean", ready=2, waiting=0, retryable=1, held=1, running=1)
    mart = JobStanding("ns", "mart", ready=0, waiting=2, retryable=0, held=0, running=0)
    assert now(shop).work == [clean, mart]
    assert not now(shop).at_least


def test_it_says_when_there_may_be_more_than_was_looked_at(
    shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_cut(namespace: str | None = None, **most: int) -> bool:
        with monkeypatch.context() as patch:
            for name, limit in most.items():
                patch.setattr(f"penstock.locks.queries.overview.{name}", limit)
            return now(shop, namespace).at_least

    # Two jobs have open lots: one has lots that are READY, both some that wait or are stuck.
    assert [is_cut(JOBS_READ_MAX=most) for most in (1, 2, 3)] == [True, True, False]
    assert [is_cut(JOBS_MAX=most) for most in (1, 2, 3)] == [True, True, False]
    assert [is_cut(COUNTED_MAX=most) for most in (1, 2, 3)] == [True, True, False]
    # Who is told of none is told so as well: those that were not looked at may be theirs.
    assert now(shop, "elsewhere").work == []
    assert [is_cut("elsewhere", JOBS_READ_MAX=most) for most in (2, 3)] == [True, False]


def test_jobs_are_counted_by_the_state_of_their_latest_run(shop: Site) -> None:
    assert sum(now(shop).jobs.values()) == 1
    shop.complete("clean", LOTS[4:5])
    assert now(shop).jobs == {RunState.COMPLETED: 1}
    assert now(shop, "ns").jobs == {RunState.COMPLETED: 1}
    assert now(shop, "elsewhere").jobs == {}


def test_lots_that_wait_for_a_try_or_a_person_are_stuck(shop: Site) -> None:
    assert {(each.job, each.lot, each.error, each.held) for each in now(shop).stuck} == {
        ("clean", LOTS[2], "disk full", None),
        ("clean", LOTS[3], "", "ann: look at it"),
    }


def test_a_namespace_shows_its_own(shop: Site) -> None:
    other = (DatasetName("other", "in"),), (DatasetName("other", "out"),)
    shop.do(WireJob("other", "copy", *other))
    assert now(shop, "ns").work == now(shop).work
    assert (now(shop, "other").work, now(shop, "other").stuck) == ([], [])


def test_a_dataset_is_late_after_its_newest_lot_that_is_there(shop: Site) -> None:
    assert now(shop).late == []
    hourly = [LotDatasetRow(dataset_id("ns", name), "PT1H", "1", 0, NOON) for name in DATASETS]
    with shop.database.write() as tx:
        tx.write("put_lot_datasets", hourly)
    assert [each.dataset for each in now(shop).late] == ["raw", "clean"]
    raw = now(shop).late[0]
    assert (raw.first, raw.count) == ("20261115PT1H06", 5)
    shop.now += HOUR
    assert now(shop).late[0].count == 6
    assert now(shop, "elsewhere").late == []
