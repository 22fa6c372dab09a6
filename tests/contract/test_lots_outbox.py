"""The outbox: what happened to lots, in the order of commits, for as long as somebody needs it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.clock import DAY, HOUR
from penstock.errors import Conflict, Invalid
from penstock.lots.outbox import check_not_pruned, events_after, last_id, pruned_upto
from penstock.subscribers import pruning
from penstock.subscribers.pruning import prune_outbox
from tests.contract.outbox_desk import IngestService, desk

__all__ = ["desk"]


def ids(desk: IngestService, after: int = 0, most: int = 1000) -> list[int]:
    with desk.catalog.read() as tx:
        return [event.id for event in events_after(tx, after, most)]


def pruned(desk: IngestService, older_than: int = HOUR, *, dry_run: bool = False) -> int:
    return prune_outbox(
        desk.database, lambda: desk.now, older_than, dry_run=dry_run, pause=lambda _: None
    )


def test_events_come_in_pages_and_in_order(desk: IngestService) -> None:
    with desk.catalog.read() as tx:
        assert events_after(tx, 0, 10) == []
        assert last_id(tx) == 0
    desk.publish("1", "2")
    run = desk.work()
    with desk.catalog.read() as tx:
        first, second, third = events_after(tx, 0, 10)
        assert events_after(tx, 1, 1) == [second]
        assert last_id(tx) == third.id
        assert last_id(tx, "runs") == 1
    assert (first.lot, first.job, first.run) == ("1", None, None)
    assert (third.dataset.name, third.lot, third.run) == ("clean", "1", run)
    assert third.job is not None
    assert third.version is not None


def test_whoever_reads_while_others_write_misses_nothing(desk: IngestService) -> None:
    seen: list[int] = []

    def follow() -> None:
        with desk.database.listen("penstock_lots") as listener:
            while len(seen) < 100:
                found = ids(desk, seen[-1] if seen else 0, 7)
                seen.extend(found)
                if not found:
                    listener.wait(60)

    with ThreadPoolExecutor(5) as threads:
        following = threads.submit(follow)
        writing = [
            threads.submit(desk.publish_each, *(f"{n}-{i}" for i in range(25))) for n in range(4)
        ]
        for each in writing:
            each.result()
        following.result()
    assert seen == sorted(seen)
    assert seen == ids(desk)


def test_old_events_are_forgotten_and_new_ones_stay(desk: IngestService) -> None:
    desk.publish("1", "2")
    desk.work()
    desk.pass_seconds(2 * 3600)
    desk.publish("3")
    assert pruned(desk, dry_run=True) == 4  # three events, and the end of a run
    assert len(ids(desk)) == 4
    assert pruned(desk) == 4
    assert pruned(desk) == 0
    assert ids(desk) == [4]
    desk.pass_seconds(2 * 3600)
    assert pruned(desk) == 1
    with desk.catalog.read() as tx:
        assert last_id(tx) == pruned_upto(tx) == 4
        assert last_id(tx, "runs") == 1
    desk.publish("4")
    assert ids(desk) == [5]


def test_what_a_subscriber_has_not_had_stays(desk: IngestService) -> None:
    desk.publish("1", "2", "3")
    desk.work()
    desk.subscribe("https://example.org/", after=2)
    desk.pass_seconds(DAY / 1e6)
    assert pruned(desk, dry_run=True) == 3
    assert pruned(desk) == 3  # two events, and the end of a run that no subscriber waits for
    assert ids(desk) == [3, 4]
    desk.subscribe("https://example.org/", after=4)
    desk.subscribe("https://example.org/", "other", "openlineage")
    assert pruned(desk) == 2


def test_many_are_forgotten_in_batches(
    desk: IngestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH_ROWS", 7)
    desk.publish(*map(str, range(50)))
    desk.pass_seconds(7200)
    desk.publish("new")
    assert pruned(desk, dry_run=True) == 50
    assert pruned(desk) == 50
    assert ids(desk) == [51]


def test_a_subscriber_that_is_set_back_meanwhile_is_not_cheated(
    desk: IngestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH_ROWS", 5)
    desk.publish(*map(str, range(20)))
    desk.subscribe("https://example.org/")
    desk.pass_seconds(7200)

    def set_back(_: float) -> None:
        desk.subscribe("https://example.org/", after=6)

    count = prune_outbox(desk.database, lambda: desk.now, HOUR, dry_run=False, pause=set_back)
    assert ids(desk)[0] == count + 1 <= 7


def test_whoever_goes_on_after_a_gap_is_told_so(desk: IngestService) -> None:
    desk.publish("1", "2", "3")
    desk.pass_seconds(7200)
    assert pruned(desk) == 3
    with desk.catalog.read() as tx:
        check_not_pruned(tx, 0)
        check_not_pruned(tx, 3)
        with pytest.raises(Conflict, match="continue after 3"):
            check_not_pruned(tx, 2)


def test_whoever_goes_on_after_an_event_that_never_was_is_told_so(desk: IngestService) -> None:
    desk.publish("1", "2", "3")
    with desk.catalog.read() as tx:
        check_not_pruned(tx, 3)
        with pytest.raises(Conflict, match="no event 999: the last one is 3"):
            check_not_pruned(tx, 999)


def test_everything_cannot_be_pruned(desk: IngestService) -> None:
    with pytest.raises(Invalid, match="90d"):
        pruned(desk, 0)
