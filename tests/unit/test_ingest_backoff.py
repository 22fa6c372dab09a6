"""What a daemon passes over, and when it comes back to it."""

import pytest

from penstock.ingest.models import Batch
from penstock.ingest.workers.backoff import Backoff, CollectionBackoff
from penstock.states import BatchState
from tests.ingest_stores import submission


class Seconds:
    """A clock that a test puts forward."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def batch(number: int, collection: str) -> Batch:
    return Batch(
        id=f"bid{number:010}",
        submission=submission(f"u{number}", collection=collection),
        status=BatchState.PENDING,
        last_modified=0,
    )


def test_backed_off_items_are_skipped() -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one, two, other = batch(1, "far"), batch(2, "far"), batch(3, "near")
    assert resting.select([one, two, other], 1) == [one]
    resting.record(one, Backoff(5, is_of_all=True))
    assert resting.next_after() is None
    assert resting.select([one, two, other], 2) == [other]
    assert resting.next_after() == two
    assert resting.has_backoffs


def test_after_a_backoff_one_item_is_tried_alone() -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one, two = batch(1, "far"), batch(2, "far")
    resting.record(one, Backoff(5, is_of_all=True))
    assert resting.select([one, two], 2) == []
    clock.now = 5
    assert resting.next_after() is None
    assert resting.select([one, two], 2) == [one]
    assert resting.next_after() == two
    resting.record(one, None)
    assert resting.next_after() is None
    assert resting.select([two], 2) == [two]
    assert not resting.has_backoffs


def test_an_item_backoff_does_not_affect_its_collection() -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one, two = batch(1, "maps"), batch(2, "maps")
    resting.record(one, Backoff(1))
    assert resting.select([one, two], 2) == [two]


def test_slow_scans_limit_returns_to_the_front() -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one = batch(1, "far")
    resting.record(one, Backoff(5, is_of_all=True))
    assert resting.select([one], 1) == []
    resting.record_scan(1.0)
    clock.now = 10
    assert resting.next_after() == one
    clock.now = 20
    assert resting.next_after() is None


def test_a_slow_store_does_not_delay_expired_backoffs() -> None:
    """A claim that waits for a store that was away takes as long as that was."""
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one = batch(1, "far")
    resting.record_scan(3600.0)
    resting.record(one, Backoff(5, is_of_all=True))
    assert resting.select([one], 1) == []
    clock.now = 20
    assert resting.next_after() is None
    assert resting.select([one], 1) == [one]


def test_trials_end_when_nothing_waits() -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one, two = batch(1, "far"), batch(2, "far")
    resting.record(one, Backoff(5, is_of_all=True))
    clock.now = 5
    assert resting.next_after() is None
    assert resting.select([], 1) == []
    assert resting.select([one, two], 2) == [one, two]


def test_claimed_items_are_skipped_except_the_trial() -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    one, two, other = batch(1, "far"), batch(2, "far"), batch(3, "near")
    assert resting.select([one, two, other], 3) == [one, two, other]
    resting.record(one, Backoff(0, is_of_all=True))
    assert resting.is_backed_off(two)
    assert not resting.is_backed_off(other)
    assert resting.next_after() is None
    assert resting.select([two], 3) == [two]
    assert not resting.is_backed_off(two)
    resting.record(two, None)
    assert not resting.is_backed_off(one)


@pytest.mark.parametrize("rest", [Backoff(1), Backoff(5, is_of_all=True)])
@pytest.mark.parametrize("took", [1.0, 60.0])
@pytest.mark.parametrize("stuck", [1, 2, 10])
def test_failed_tries_leave_time_for_items_behind(rest: Backoff, took: float, stuck: int) -> None:
    clock = Seconds()
    resting: CollectionBackoff[Batch] = CollectionBackoff(clock)
    queue = [batch(number, f"far{number}") for number in range(stuck)]
    queue += [batch(number, "near") for number in range(stuck, 200)]
    in_vain = 0
    while queue[stuck:]:
        last = resting.next_after()
        [one] = resting.select([each for each in queue if last is None or each.id > last.id], 1)
        clock.now += took
        if one in queue[:stuck]:
            in_vain += 1
            resting.record(one, rest, took)
        else:
            queue.remove(one)
            resting.record(one, None, took)
        assert in_vain < 400
