"""The measurements measure what they say: the load, the peers, the graph and the report."""

import io
import re
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.ceiling import answering_server
from bench.events import DATASETS, JOBS, EventPool, body_of
from bench.graph import FOLDER as GRAPH_FOLDER
from bench.graph import JOBS as DOMAIN_JOBS
from bench.graph import Graph, dataset_name, random_places
from bench.load import percentile, send
from bench.peers import single
from bench.reading import Timing, lineage_targets, list_targets
from bench.report import Report, new_report, print_report, write_report
from bench.throughput import Ceiling, Memory, Ratio, Throughput, throughput_targets
from penstock.catalog.lineage import lineage
from penstock.catalog.nodes import dataset_node
from penstock.catalog.openlineage import Limits, read_event
from penstock.clock import parse_time
from penstock.db import open_database

BEGIN = parse_time("2026-11-15T09:30:00Z")


@pytest.fixture(scope="module")
def requests() -> list[bytes]:
    return EventPool(BEGIN).take(4 * JOBS)


def test_every_request_is_whole(requests: list[bytes]) -> None:
    for request in requests:
        (length,) = re.findall(rb"content-length: (\d+)", request)
        assert int(length) == len(body_of(request))


def test_events_are_what_the_report_says_of_them(requests: list[bytes]) -> None:
    events = [read_event(body_of(request), Limits()) for request in requests]
    assert {len(event.inputs) for event in events} == {2}
    assert {len(event.outputs) for event in events} == {1}
    mentions = [mention for event in events for mention in event.inputs + event.outputs]
    assert all("schema" in mention.facets for mention in mentions)
    schemas = {(mention.id, bytes(mention.facets["schema"])) for mention in mentions}
    assert len(schemas) == len({mention.id for mention in mentions}) <= DATASETS
    assert len({event.job_id for event in events}) == JOBS
    assert all(1900 < len(event.payload) < 2300 for event in events)


def test_each_run_starts_and_then_completes(requests: list[bytes]) -> None:
    told: dict[str | None, list[str]] = {}
    times = []
    for request in requests:
        event = read_event(body_of(request), Limits())
        told.setdefault(event.run_id, []).append(event.event_type)
        times.append(event.at)
    assert len(told) == 2 * JOBS
    assert set(map(tuple, told.values())) == {("START", "COMPLETE")}
    assert times == sorted(set(times))


def test_the_load_sends_each_request_once_and_counts_the_answers(requests: list[bytes]) -> None:
    with answering_server() as port:
        found = send(port, requests[:200], clients=4, seconds=60)
        refused = send(port, requests[:10], clients=2, seconds=60, status=200)
    assert (found.answered, found.refused, found.ran_out) == (200, {}, True)
    assert found.rate > 0
    assert 0 < found.p50_ms <= found.p99_ms
    assert (refused.answered, refused.refused) == (0, {"201": 10})


def test_percentiles() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 50) == 50.5
    assert percentile(values, 95) == 96.0
    assert percentile([], 99) == 0.0


class CountingSession(single.SqliteSession):
    """Counts the statements that one event takes."""

    count = 0

    def run(self, name: str, /, **params: object) -> single.Row | None:
        """Run and count."""
        self.count += 1
        return super().run(name, **params)


def test_the_single_statements_are_33(tmp_path: Path, requests: list[bytes]) -> None:
    url = f"sqlite:///{tmp_path / 'single.db'}"
    database = open_database(url, extra=[single.FOLDER])
    database.migrate()
    database.close()
    session = CountingSession(url)
    for request in (requests[0], requests[JOBS]):  # the start of a run and its end
        session.count = 0
        single.write_event(session, read_event(body_of(request), Limits()))
        assert session.count == 33


def test_the_graph_has_the_size_that_it_says(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'graph.db'}", extra=[GRAPH_FOLDER])
    database.migrate()
    Graph(domains=1).save(database)
    with database.read() as tx:
        assert sum(row[1] for row in tx.fetch("read_tallies", kind="DATASET")) == DOMAIN_JOBS
        assert sum(row[1] for row in tx.fetch("read_tallies", kind="JOB")) == DOMAIN_JOBS
        (place,) = random_places(1, domains=1)
        near = lineage(tx, dataset_node(*dataset_name(place)), depth=2).graph
        whole = lineage(tx, dataset_node(*dataset_name(place)), depth=200).graph
    database.close()
    assert 2 < len(near) < len(whole) <= 2 * DOMAIN_JOBS
    edges = sum(len(node.in_edges) for node in whole)
    assert edges == sum(len(node.out_edges) for node in whole) > 2 * DOMAIN_JOBS


def test_the_report_is_a_table_and_a_file(tmp_path: Path) -> None:
    report = new_report(quick=True)
    report.ceilings = [Ceiling(32, 50_000, 10_000)]
    ratios = [Ratio(32, "raw", 0.5, 0.4), Ratio(32, "single", 4.0, 6.0)]
    memory = [Memory("ours", 50, 60, 60, 61)]
    report.events = [Throughput("postgresql", [], ratios, memory, 100, 100)]
    report.lineage = [Timing("sqlite", "lineage, depth 5", 10, 2.0, 3.0, 90, 71)]
    report.lists = [Timing("sqlite", "jobs", 10, 25.0, 30.0, 300)]
    report.targets = throughput_targets(report.events)
    report.targets += lineage_targets(report.lineage) + list_targets(report.lists)
    assert [target.met for target in report.targets] == [True, False, True, False]
    write_report(report, tmp_path / "results" / "report.json")
    written = (tmp_path / "results" / "report.json").read_bytes()
    assert msgspec.json.decode(written, type=Report) == report
    shown = io.StringIO()
    print_report(report, Console(file=shown, width=120))
    assert "slowest first page (jobs)" in shown.getvalue()
