"""The rows that pruning deletes, and those that it must keep."""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from penstock.access import audit
from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.retention import Pruned, prune
from penstock.catalog.writes import open_write_queue
from penstock.clock import DAY, HOUR, Micros, format_time, parse_time
from penstock.db import Database, open_database
from penstock.errors import Invalid
from tests.simulation.tables import STATEMENTS, EventCount, Seen, visible

NOW: Micros = parse_time("2026-11-15T09:30:00Z")
Document = dict[str, Any]


class Shop:
    """A catalog that receives runs of the past."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.catalog = open_write_queue(
            database, clock=lambda: NOW, batch_events_max=256, queue_length_max=4096
        )
        self.catalog.start()
        self._sent: list[Future[None]] = []

    def receive(self, *events: Document) -> None:
        for event in events:
            body = msgspec.json.encode(event)
            self._sent.append(self.catalog.submit(ReceiveEvent(read_event(body, Limits()))))

    def flush(self) -> None:
        """Wait until every sent event is committed."""
        while self._sent:
            self._sent.pop().result()

    def run(self, job: str, day: float, *, reads: str = "", writes: str = "", **more: Any) -> str:
        """Send a run of a job this many days ago. A True in `going` leaves that run unfinished."""
        run_id = f"{job} {day}"
        unfinished = more.pop("going", False)
        end = "FAIL" if more.pop("fails", False) else "COMPLETE"
        event = {
            "run": {"runId": run_id, "facets": more.pop("facets", {})},
            "job": {"namespace": "shop", "name": job},
            "inputs": [_dataset(name) for name in reads.split()],
            "outputs": [_dataset(name, **more) for name in writes.split()],
        }
        began = round(NOW - day * DAY)
        self.receive({**event, "eventType": "START", "eventTime": format_time(began)})
        if not unfinished:
            ended = format_time(began + HOUR // 60)
            self.receive({**event, "eventType": end, "eventTime": ended})
        return run_id

    def declare(self, name: str, day: float, *fields: str, **more: Any) -> None:
        at = format_time(round(NOW - day * DAY))
        self.receive({"eventTime": at, "dataset": _dataset(name, schema=fields, **more)})

    def prune(self, days: float, **more: Any) -> Pruned:
        """Count first, then prune, and require the same counts."""
        before = self.rows()
        counted = self._prune(days, dry_run=True)
        assert before == self.rows()
        deleted = self._prune(days, dry_run=False, **more)
        assert deleted == counted
        assert self._prune(days, dry_run=True) == Pruned()
        return deleted

    def _prune(self, days: float, **more: Any) -> Pruned:
        return prune(
            self.database,
            lambda: NOW,
            round(days * DAY),
            **{"who": "ann", "pause": lambda seconds: None, **more},
        )

    def rows(self) -> Seen:
        self.flush()
        with self.database.read() as tx:
            return visible(tx)

    def runs(self) -> set[str]:
        return {row["external_id"] for row in self.rows()["run"]}

    def versions(self, name: str) -> list[int]:
        rows = self.rows()
        ids = [row["id"] for row in rows["dataset"] if row["name"] == name]
        return sorted(row["number"] for row in rows["version"] if row["dataset_id"] in ids)


def _dataset(name: str, **facets: Any) -> Document:
    content: Document = {}
    if "schema" in facets:
        content["schema"] = {"fields": [{"name": field} for field in facets["schema"]]}
    if "columns" in facets:
        source = {"namespace": "tables", "name": "raw", "field": facets["columns"]}
        content["columnLineage"] = {"fields": {"id": {"inputFields": [source]}}}
    return {"namespace": "tables", "name": name, "facets": content}


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    database = open_database(database_url, extra=[STATEMENTS])
    database.migrate()
    shop = Shop(database)
    yield shop
    shop.catalog.stop()
    database.close()


def check_counts(shop: Shop) -> None:
    """Check that every stored count is right and that no reference dangles."""
    rows = shop.rows()
    runs, versions = rows["run"], rows["version"]
    run_ids, version_ids = {row["id"] for row in runs}, {row["id"] for row in versions}
    run_counts = Counter(row["job_id"] for row in runs)
    shape_counts = Counter(row["job_id"] for row in rows["job_version"])
    version_counts = Counter(row["dataset_id"] for row in versions)
    for job in rows["job"]:
        assert job["run_count"] == run_counts[job["id"]]
        assert job["version_count"] == shape_counts[job["id"]]
        assert job["latest_run_id"] in {None, *run_ids}
        assert job["current_version_id"] in {None, *(row["id"] for row in rows["job_version"])}
    for dataset in rows["dataset"]:
        assert dataset["version_count"] == version_counts[dataset["id"]]
        assert dataset["current_version_id"] in {None, *version_ids}
        assert dataset["latest_version_id"] in {None, *version_ids}
    assert {row["version_id"] for row in rows["run_dataset"]} <= version_ids
    for report in rows["quality_report"]:
        assert (report["version_id"] in version_ids, report["run_id"] in run_ids) == (True, True)
    assert {row["run_id"] for row in rows["run_dataset"]} <= run_ids
    assert {row["run_id"] for row in versions} <= {None, *run_ids}
    assert {row["parent_run_id"] for row in runs} <= {None, *run_ids}
    shapes = {row["id"] for row in rows["job_version"]}
    assert {row["job_version_id"] for row in runs} <= {None, *shapes}
    sets = {row["set_id"] for row in rows["column_edge"]}
    assert {row["column_set_id"] for row in versions} - {None} <= sets
    assert {row["declared_column_set_id"] for row in rows["dataset"]} - {None} <= sets
    inherited = {row["inherited_set_id"] for row in versions} - {None}
    assert inherited == {row["id"] for row in rows["facet_set"]}
    check_event_counts(shop)


def check_event_counts(shop: Shop) -> None:
    with shop.database.read() as tx:
        events = tx.fetch("every_event")
        counts = tx.rows(EventCount, "every_event_count")
    counted = [
        (at - at % HOUR, name if kind == "RUN" else kind) for at, _, kind, _, name, *_ in events
    ]
    real = Counter(counted)
    assert {(count.hour, count.event_type): count.total for count in counts} == real


def test_events_before_the_cutoff_are_deleted_with_their_counts(shop: Shop) -> None:
    shop.run("load", 100)
    shop.run("load", 50)
    shop.run("load", 1)
    assert shop.prune(90) == Pruned(events=2, runs=1)
    check_counts(shop)
    with shop.database.read() as tx:
        times = [row[0] for row in tx.fetch("every_event")]
    assert len(times) == 4
    assert min(times) >= NOW - 90 * DAY


def test_a_cutoff_within_an_hour_splits_its_count(shop: Shop) -> None:
    for minute in range(60):
        shop.run("tick", 10 + minute / 1440)
    pruned = shop.prune(10 + 30 / 1440)
    assert 0 < pruned.events < 120
    check_counts(shop)


def test_old_runs_are_deleted_with_their_versions(shop: Shop) -> None:
    for day in (120, 110, 100, 2, 1):
        shop.run("load", day, writes="raw")
    pruned = shop.prune(90)
    assert (pruned.runs, pruned.versions) == (3, 3)
    assert shop.versions("raw") == [4, 5]
    assert shop.runs() == {"load 2", "load 1"}
    check_counts(shop)


def test_the_newest_run_and_current_versions_stay_at_any_age(shop: Shop) -> None:
    shop.run("load", 300, writes="raw")
    shop.run("load", 200, writes="raw", fails=True)
    shop.run("report", 250, reads="raw")
    assert shop.prune(90) == Pruned(events=6)
    assert shop.versions("raw") == [1, 2]
    assert shop.runs() == {"load 300", "load 200", "report 250"}
    check_counts(shop)


def test_a_child_run_stays_after_its_parent_is_deleted(shop: Shop) -> None:
    shop.run("flow", 120)
    shop.run("flow", 1)
    parent = {"run": {"runId": "flow 120"}, "job": {"namespace": "shop", "name": "flow"}}
    shop.run("flow.step", 120, writes="raw", facets={"parent": parent})
    assert shop.prune(90).runs == 1
    assert shop.runs() == {"flow 1", "flow.step 120"}
    check_counts(shop)


def test_unused_declared_versions_are_deleted(shop: Shop) -> None:
    shop.declare("raw", 130, "a")
    shop.declare("raw", 120, "a", "b")
    shop.run("report", 119, reads="raw")
    shop.declare("raw", 110, "a", "b", "c")
    shop.declare("raw", 100, "a", "b", "c", "d")
    assert shop.prune(90).versions == 2
    assert shop.versions("raw") == [2, 4]
    check_counts(shop)


def test_the_last_declared_column_lineage_stays(shop: Shop) -> None:
    shop.declare("clean", 130, "id", columns="x")
    shop.declare("clean", 120, "id", "sum", columns="y")
    shop.run("load", 1, writes="clean")
    pruned = shop.prune(90)
    assert (pruned.versions, pruned.column_sets) == (2, 1)
    assert [row["input_field"] for row in shop.rows()["column_edge"]] == ["y"]
    check_counts(shop)


def test_inherited_facets_are_deleted_with_their_last_version(shop: Shop) -> None:
    shop.run("load", 130, writes="clean", schema=["id"], columns="x")
    shop.run("load", 120, writes="clean")
    shop.run("load", 110, writes="clean", columns="y")
    shop.run("load", 2, writes="clean")
    shop.run("load", 1, writes="clean")

    pruned = shop.prune(90)

    assert (pruned.versions, pruned.facet_sets) == (3, 2)
    [facet_set] = shop.rows()["facet_set"]
    assert facet_set["facets"].keys() == {"schema", "columnLineage"}
    check_counts(shop)


def test_job_shapes_are_deleted_with_their_last_run(shop: Shop) -> None:
    shop.run("report", 120, reads="a")
    shop.run("report", 110, reads="b")
    shop.run("report", 1, reads="c")
    pruned = shop.prune(90)
    assert (pruned.runs, pruned.job_versions) == (2, 2)
    check_counts(shop)


def test_column_lineage_is_deleted_with_its_last_version(shop: Shop) -> None:
    shop.run("load", 120, writes="clean", columns="x")
    shop.run("load", 110, writes="clean", columns="y")
    shop.run("load", 1, writes="clean", columns="y")
    pruned = shop.prune(90)
    assert (pruned.versions, pruned.column_sets) == (2, 1)
    assert [row["input_field"] for row in shop.rows()["column_edge"]] == ["y"]
    check_counts(shop)


def test_a_running_server_notices_pruned_rows(shop: Shop) -> None:
    for day in (120, 110, 1):
        shop.run("load", day, reads="raw", writes="clean")
    shop.prune(90)
    shop.run("load", 0.5, reads="raw", writes="clean")
    shop.run("load", 110, reads="raw", writes="clean")
    assert shop.versions("clean") == [3, 4, 5]
    check_counts(shop)


def test_pruning_is_audited_and_a_dry_run_is_not(shop: Shop) -> None:
    shop.run("load", 100)
    assert shop.prune(90).events == 2
    with shop.database.read() as tx:
        entries = audit.entries(tx, 10)
    assert [(entry.who, entry.action) for entry in entries] == [("ann", "prune")] * 2
    assert entries[0].detail.startswith("events 2, runs 0")
    assert entries[1].detail == "begun"


def test_pruning_reports_progress_and_pauses_after_each_batch(shop: Shop) -> None:
    shop.run("load", 120, writes="raw")
    shop.run("load", 1, writes="raw")
    reports: list[Pruned] = []
    pauses: list[float] = []
    pruned = shop.prune(90, progress=reports.append, pause=pauses.append)
    assert reports[-1] == pruned
    assert len(pauses) >= 2
    assert all(seconds > 0 for seconds in pauses)


def test_a_cutoff_in_the_future_is_refused(shop: Shop) -> None:
    with pytest.raises(Invalid, match="more than zero"):
        shop.prune(0)


def _run_days(shop: Shop, choices: random.Random) -> None:
    """Run a few jobs that read and write a few tables for a hundred days."""
    tables = ["raw", "clean", "totals", "report", "lookup"]
    days = sorted((choices.uniform(0, 100) for _ in range(60)), reverse=True)
    for day in days:
        if choices.random() < 0.15:
            shop.declare(choices.choice(tables), day, *choices.sample("abcd", 2))
            continue
        shop.run(
            f"job_{choices.randrange(5)}",
            day,
            reads=" ".join(choices.sample(tables, choices.randrange(3))),
            writes=" ".join(choices.sample(tables, choices.randrange(3))),
            fails=choices.random() < 0.2,
            going=choices.random() < 0.05,
            schema=choices.sample("abcd", 2),
            columns=choices.choice("xy"),
        )


def _deletable_runs(rows: Seen, cutoff: Micros) -> set[str]:
    """Compute the runs that the rule deletes with a slow and simple search."""
    shown_versions = {
        row[version]
        for row in rows["dataset"]
        for version in ("current_version_id", "latest_version_id")
    }
    maker = {row["id"]: row["run_id"] for row in rows["version"]}
    worth = {row["latest_run_id"] for row in rows["job"]} | {maker.get(v) for v in shown_versions}
    worth |= {
        row["id"] for row in rows["run"] if row["ended_at"] is None or row["ended_at"] >= cutoff
    }
    read = {
        maker[row["version_id"]]
        for row in rows["run_dataset"]
        if row["role"] == "INPUT" and row["run_id"] in worth
    }
    return {row["id"] for row in rows["run"]} - worth - read


@pytest.mark.parametrize("story", range(12))
def test_the_remaining_catalog_is_consistent_after_any_history(shop: Shop, story: int) -> None:
    choices = random.Random(story)
    _run_days(shop, choices)
    before = shop.rows()
    days = choices.uniform(5, 90)
    needless = _deletable_runs(before, NOW - round(days * DAY))
    pruned = shop.prune(days)
    after = shop.rows()
    assert {row["id"] for row in after["run"]} == {row["id"] for row in before["run"]} - needless
    assert pruned.runs == len(needless)
    for table in ("dataset", "job", "edge", "search_doc", "tally"):
        assert len(after[table]) == len(before[table])
    current = {row["id"]: row["current_version_id"] for row in before["dataset"]}
    assert {row["id"]: row["current_version_id"] for row in after["dataset"]} == current
    check_counts(shop)
