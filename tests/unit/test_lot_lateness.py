"""When the lots of a dataset are late, and how many of them."""

from penstock.clock import HOUR, Micros, parse_time
from penstock.locks.queries.overview import find_late_datasets
from penstock.schema.admin import LateDataset
from penstock.schema.lot_ids import Interval

NOON: Micros = parse_time("2026-11-15T12:00:00Z")


def found(
    ready: str | None, oldest: str | None = "20261101PT1H00", now: Micros = NOON
) -> list[LateDataset]:
    return find_late_datasets([("shop", "clean", "PT1H", ready, oldest)], now)


def test_a_lot_is_late_when_a_whole_interval_has_passed_since_its_own() -> None:
    assert found("20261115PT1H10") == []
    assert found("20261115PT1H10", now=NOON + HOUR - 1) == []
    (one,) = found("20261115PT1H10", now=NOON + HOUR)
    assert (one.first, one.count, one.interval) == ("20261115PT1H11", 1, Interval.HOUR)
    assert one.since == "2026-11-15T13:00:00.000Z"


def test_every_lot_after_the_newest_that_is_there_counts() -> None:
    (one,) = found("20261114PT1H23")
    assert (one.first, one.count) == ("20261115PT1H00", 11)


def test_where_none_is_there_the_oldest_that_was_looked_at_is_the_first() -> None:
    (one,) = found(None, "20261115PT1H05")
    assert (one.first, one.count) == ("20261115PT1H05", 6)


def test_a_dataset_without_lots_of_its_interval_is_not_late() -> None:
    assert found(None, None) == []
    assert found("north", "east") == []
    assert found("20261114PT24H") == []


def test_the_last_to_become_late_comes_first() -> None:
    rows = [
        ("shop", "old", "PT1H", "20261101PT1H00", None),
        ("shop", "new", "PT1H", "20261115PT1H08", None),
    ]
    assert [one.dataset for one in find_late_datasets(rows, NOON)] == ["new", "old"]
