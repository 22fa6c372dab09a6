"""Events by time and the counts of events, on both databases."""

import msgspec
import pytest

from penstock.catalog.queries.events import list_events
from penstock.catalog.queries.stats import (
    Period,
    dataset_stats,
    job_stats,
    lineage_event_stats,
    source_stats,
)
from penstock.catalog.rows import EventRow, SourceRow
from penstock.clock import DAY, HOUR, SECOND, Micros, format_time, parse_time
from penstock.db import Database
from penstock.errors import Invalid
from penstock.ids import derived_id, run_id
from penstock.schema.shape import stored_json
from tests.contract.catalog_rows import NAMESPACE, NOW, Tally, dataset, event, job, put_events

START = parse_time("2026-11-10T00:00:00Z")
MINUTES_15 = HOUR // 4
RUN = derived_id("run")


@pytest.fixture
def times(database: Database) -> list[Micros]:
    """One event every quarter of an hour for ten hours."""
    moments = [START + n * MINUTES_15 for n in range(40)]
    with database.write() as tx:
        put_events(tx, [event(at, run_id=RUN if n < 3 else None) for n, at in enumerate(moments)])
    return moments


def test_events_are_listed_and_counted_between_after_and_before(
    database: Database, times: list[Micros]
) -> None:
    ranges = [
        (START - DAY, START + DAY),
        (START, START + 10 * HOUR),
        (START + HOUR, START + 3 * HOUR),
        (START + 1, START + 3 * HOUR - 1),
        (START + MINUTES_15, START + 2 * MINUTES_15),
        (START + MINUTES_15, START + MINUTES_15),
        (START + MINUTES_15, START + HOUR),
        (START + HOUR - 1, START + HOUR + 1),
        (START + 3 * HOUR, START + HOUR),
        (START - DAY, START - HOUR),
    ]
    for after, before in ranges:
        times_in_range = [at for at in times if after <= at < before]
        with database.read() as tx:
            page = list_events(tx, before, after, descending=False, limit=100, offset=0)
        assert [
            msgspec.json.decode(stored_json(item))["at"] for item in page.items
        ] == times_in_range
        assert page.total_count == len(times_in_range)


def test_a_range_of_events_may_be_open_at_either_end(
    database: Database, times: list[Micros]
) -> None:
    middle = times[5] + 1
    with database.read() as tx:
        totals = [
            list_events(tx, before, after, limit=0, offset=0).total_count
            for before, after in ((None, None), (middle, None), (None, middle))
        ]
    assert totals == [40, 6, 34]


def test_events_come_newest_first_and_by_page(database: Database, times: list[Micros]) -> None:
    with database.read() as tx:
        page = list_events(tx, None, None, limit=3, offset=2)
    newest_first = [{"at": at} for at in reversed(times)]
    assert [msgspec.json.decode(stored_json(item)) for item in page.items] == newest_first[2:5]
    assert page.total_count == 40


def test_events_are_filtered_by_run(database: Database, times: list[Micros]) -> None:
    with database.read() as tx:
        newest = list_events(tx, None, None, limit=2, offset=0, run_id=RUN)
        oldest = list_events(tx, None, None, descending=False, limit=9, offset=1, run_id=RUN)
        none = list_events(tx, None, None, limit=9, offset=0, run_id="by another name")
    assert [msgspec.json.decode(stored_json(item))["at"] for item in newest.items] == [
        times[2],
        times[1],
    ]
    assert [msgspec.json.decode(stored_json(item))["at"] for item in oldest.items] == times[1:3]
    assert (newest.total_count, oldest.total_count, none.total_count) == (3, 3, 0)


def test_a_run_is_found_by_its_producers_id(database: Database) -> None:
    with database.write() as tx:
        put_events(tx, [event(NOW, run_id=run_id("nightly-7"))])
    with database.read() as tx:
        assert list_events(tx, None, None, limit=1, offset=0, run_id="nightly-7").total_count == 1


def test_an_event_is_returned_word_for_word(database: Database) -> None:
    payload = '{"b":1.0,  "a":"caf\\u00e9 é \\u0000","n":12345678901234567890}'
    with database.write() as tx:
        put_events(tx, [EventRow(NOW, NOW, "RUN", "food", "START", None, payload)])
    with database.read() as tx:
        [item] = list_events(tx, None, None, limit=1, offset=0).items
    assert stored_json(item).decode() == payload


def test_events_of_the_last_day_are_counted_by_hour(database: Database) -> None:
    kinds = ["START", "START", "COMPLETE", "FAIL", "ABORT", "RUNNING", ""]
    with database.write() as tx:
        put_events(tx, [event(NOW, kind) for kind in kinds])
        put_events(tx, [event(NOW - 23 * HOUR, "FAIL"), event(NOW - 24 * HOUR, "FAIL")])
    with database.read() as tx:
        hours = lineage_event_stats(tx, Period.DAY, "UTC", NOW)
    assert len(hours) == 24
    assert msgspec.to_builtins(hours[-1]) == {
        "startInterval": "2026-11-15T09:00:00.000Z",
        "endInterval": "2026-11-15T10:00:00.000Z",
        "count": 7,
        "fail": 1,
        "start": 2,
        "complete": 1,
        "abort": 1,
        "other": 2,
    }
    assert (hours[0].start_interval, hours[0].fail) == ("2026-11-14T10:00:00.000Z", 1)
    assert [hour.count for hour in hours[1:-1]] == [0] * 22


def test_days_begin_at_local_midnight_across_clock_changes(
    database: Database,
) -> None:
    now = parse_time("2026-10-27T12:00:00Z")
    just_before = parse_time("2026-10-25T21:59:00Z")  # still Sunday, one hour after the change
    with database.write() as tx:
        put_events(tx, [event(just_before, "START"), event(just_before + HOUR + 60 * SECOND)])
    with database.read() as tx:
        days = lineage_event_stats(tx, Period.WEEK, "Europe/Amsterdam", now)
    assert len(days) == 7
    sunday, monday = days[4:6]
    assert sunday.start_interval == "2026-10-24T22:00:00.000Z"
    assert sunday.end_interval == monday.start_interval == "2026-10-25T23:00:00.000Z"
    assert (sunday.start, monday.start) == (1, 1)


def test_datasets_jobs_and_sources_are_counted_up_to_each_end(database: Database) -> None:
    created = [NOW - 2 * DAY, NOW - 2 * HOUR, NOW, NOW + DAY]
    with database.write() as tx:
        tx.write("put_datasets", [dataset(f"d{at}", created_at=at) for at in created])
        tx.write("put_datasets", [dataset("gone", hidden=1)])
        tx.write("put_jobs", [job(f"j{at}", created_at=at) for at in created])
        tx.write("put_sources", [SourceRow(f"s{at}", "X", "x://", None, at, at) for at in created])
        tallies = [Tally("DATASET", NAMESPACE, "", 4), Tally("JOB", NAMESPACE, "FAILED", 4)]
        tx.write("add_tallies", tallies)
    with database.read() as tx:
        by_hour = [stats(tx, Period.DAY, "UTC", NOW) for stats in (dataset_stats, job_stats)]
        by_hour.append(source_stats(tx, Period.DAY, "UTC", NOW))
        by_day = dataset_stats(tx, Period.WEEK, "Asia/Kathmandu", NOW)
    for hours in by_hour:
        assert [hour.count for hour in hours] == [1] * 21 + [2, 2, 3]
    assert [day.count for day in by_day] == [0, 0, 0, 0, 1, 1, 3]
    assert by_day[-1].start_interval == "2026-11-14T18:15:00.000Z"
    assert by_hour[0][-1].end_interval == format_time(NOW - NOW % HOUR + HOUR)


def test_a_creation_at_an_intervals_end_belongs_to_the_next(database: Database) -> None:
    midnight = parse_time("2026-11-14T18:15:00Z")  # in Kathmandu
    created = [midnight - 1, midnight, midnight + 45 * 60 * SECOND]
    with database.write() as tx:
        tx.write("put_datasets", [dataset(f"d{at}", created_at=at) for at in created])
        tx.write("add_tallies", [Tally("DATASET", NAMESPACE, "", 3)])
    with database.read() as tx:
        days = dataset_stats(tx, Period.WEEK, "Asia/Kathmandu", NOW)
        hours = dataset_stats(tx, Period.DAY, "UTC", NOW)
    assert [day.count for day in days[-2:]] == [1, 3]
    by_end = {hour.end_interval: hour.count for hour in hours}
    assert by_end["2026-11-14T19:00:00.000Z"] == 2
    assert by_end["2026-11-14T20:00:00.000Z"] == 3


def test_an_unknown_time_zone_is_refused(database: Database) -> None:
    for zone in ("Nowhere", "", "../etc/passwd", "/etc/passwd", "Europe", "\x00"):
        with database.read() as tx, pytest.raises(Invalid, match="is not a time zone; write it"):
            job_stats(tx, Period.WEEK, zone, NOW)
