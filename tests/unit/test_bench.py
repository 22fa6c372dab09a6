"""The benchmarks measure what they claim: the load, the peers, the graph and the report."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.arcs import Arcs
from bench.arcs_backfill import Refilling, measure_refilling
from bench.arcs_engine import Passing, passing_lots
from bench.arcs_gaps import ODD_EVERY, GapTimes, find_gaps, scan, whole_days, write_lots
from bench.arcs_schedule import ARC as SCHEDULED_ARC
from bench.arcs_schedule import Scheduling, schedule
from bench.ceiling import answering_server
from bench.claims import Cell as ClaimCell
from bench.claims import Claims
from bench.events import DATASETS, JOBS, EventPool, body_of
from bench.flat import Flat
from bench.graph import FOLDER as GRAPH_FOLDER
from bench.graph import JOBS as DOMAIN_JOBS
from bench.graph import Graph, dataset_name, random_places
from bench.history import write_history
from bench.load import send
from bench.ours import FIRST_LOT, JOB, NAMESPACE, WHO, InProcess, OverHttp
from bench.peers.pgqueuer_peer import Pgqueuer, PgqueuerCalls
from bench.peers.procrastinate_peer import Procrastinate
from bench.peers.skip_locked import SkipLocked
from bench.processes import Bench
from bench.reading import Timing, lineage_targets, list_targets
from bench.report import Report, new_report, print_report, write_report
from bench.throughput import Ceiling, Memory, Ratio, Throughput, throughput_targets
from bench.turns import Queue
from penstock import ids
from penstock.arcs.commands import ApplyArc
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.lineage.graph import lineage
from penstock.catalog.lineage.nodes import dataset_node
from penstock.clock import parse_time
from penstock.db import open_database
from penstock.locks.commands import ClaimLots
from penstock.locks.rows import WorkRow
from penstock.schema.gaps import GapKind
from penstock.states import WorkState
from tests.servers import PostgresServer

BEGIN = parse_time("2026-11-15T09:30:00Z")


@pytest.fixture(scope="module")
def requests() -> list[bytes]:
    return EventPool(BEGIN).take(4 * JOBS)


def test_every_request_is_complete(requests: list[bytes]) -> None:
    for request in requests:
        (length,) = re.findall(rb"content-length: (\d+)", request)
        assert int(length) == len(body_of(request))


def test_events_match_their_description_in_the_report(requests: list[bytes]) -> None:
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
    types: dict[str | None, list[str]] = {}
    times = []
    for request in requests:
        event = read_event(body_of(request), Limits())
        types.setdefault(event.run_id, []).append(event.event_type)
        times.append(event.at)
    assert len(types) == 2 * JOBS
    assert set(map(tuple, types.values())) == {("START", "COMPLETE")}
    assert times == sorted(set(times))


def test_the_load_sends_each_request_once_and_counts_the_answers(requests: list[bytes]) -> None:
    with answering_server() as port:
        counts = send(port, requests[:200], clients=4, seconds=60)
        refused = send(port, requests[:10], clients=2, seconds=60, status=200)
    assert (counts.answered, counts.refused, counts.ran_out) == (200, {}, True)
    assert counts.rate > 0
    assert 0 < counts.p50_ms <= counts.p99_ms
    assert (refused.answered, refused.refused) == (0, {"201": 10})


def test_the_graph_has_its_stated_size(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'graph.db'}", extra=[GRAPH_FOLDER])
    database.migrate()
    Graph(domains=1).save(database)
    with database.read() as tx:
        assert sum(row[1] for row in tx.fetch("read_tallies", kind="DATASET")) == DOMAIN_JOBS
        assert sum(row[1] for row in tx.fetch("read_tallies", kind="JOB")) == DOMAIN_JOBS
        (start,) = random_places(1, domains=1)
        near = lineage(tx, dataset_node(*dataset_name(start)), hops=2).graph
        whole = lineage(tx, dataset_node(*dataset_name(start)), hops=200).graph
    database.close()
    assert 2 < len(near) < len(whole) <= 2 * DOMAIN_JOBS
    edges = sum(len(node.in_edges) for node in whole)
    assert edges == sum(len(node.out_edges) for node in whole) > 2 * DOMAIN_JOBS


@pytest.mark.parametrize(
    ("make", "at_once"),
    [
        (InProcess, 10),
        (SkipLocked, 10),
        (Procrastinate, 1),
        (Pgqueuer, 10),
        (PgqueuerCalls, 10),
    ],
)
def test_a_queue_hands_out_each_job_once(
    postgres: PostgresServer, make: Callable[[str], Queue], at_once: int
) -> None:
    url = postgres.create_database()
    queue = make(url)
    try:
        queue.fill(25)
        turn = queue.work(workers=2, at_once=at_once, seconds=600)
        again = queue.work(workers=1, at_once=at_once, seconds=600)
    finally:
        queue.close()
        postgres.drop_database(url)
    assert (turn.claims, turn.ran_out) == (25, True)
    assert (again.claims, again.ran_out) == (0, True)
    assert turn.rate > 0 == again.rate
    assert queue.cpu_seconds() > 0


def test_claims_go_through_http(tmp_path: Path) -> None:
    with Bench() as bench:
        queue = OverHttp(bench, f"sqlite:///{tmp_path / 'penstock.db'}")
        queue.fill(25)
        turn = queue.work(workers=2, at_once=10, seconds=600)
        assert queue.cpu_seconds() > 0
        queue.close()
    assert (turn.claims, turn.ran_out) == (25, True)


def test_a_generated_history_equals_one_written_by_the_plane(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    write_history(url, finished=30)
    ours = InProcess(url)
    job = ids.job_id(NAMESPACE, JOB)
    lots = [f"part-{1_000_000 + number}" for number in range(30)]
    with ours.plane.database.read() as tx:
        work = tx.rows(WorkRow, "lot_work_by_lots", job_id=job, lots=lots)
        first, *_, last = sorted(work, key=lambda row: row.lot_key)
        claims = ours.plane.catalog.submit(ClaimLots(NAMESPACE, JOB, "me")).result()
    assert [row.state for row in work] == [WorkState.DONE] * 30
    assert len({row.run_id for row in work}) == 30
    assert (first.lot, last.lot) == (lots[0], lots[-1])
    assert first.since < last.since < ours.plane.clock()
    assert claims == []
    ours.fill(1)
    (claim,) = ours.plane.catalog.submit(ClaimLots(NAMESPACE, JOB, "me")).result()
    assert (claim.lot, claim.token) == (f"part-{FIRST_LOT}", 1)
    ours.close()
    postgres.drop_database(url)


def test_an_arc_processes_lots_after_a_long_history(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    write_history(url, finished=30)
    ours = InProcess(url)
    job = ids.job_id(NAMESPACE, JOB)
    ours.plane.catalog.submit(ApplyArc(WHO, SCHEDULED_ARC)).result()
    ours.fill(5)
    schedule(ours, 1)
    schedule(ours, 4)
    lots = [f"part-{FIRST_LOT + number}" for number in range(5)]
    with ours.plane.database.read() as tx:
        work = tx.rows(WorkRow, "lot_work_by_lots", job_id=job, lots=lots)
        events = tx.fetch("lot_events_after", after=0, most=1000)
    ours.close()
    postgres.drop_database(url)
    assert [row.state for row in work] == [WorkState.DONE] * 5
    assert len(events) == 2 * (30 + 5)  # each lot arrived and was refined


def test_the_engine_processes_every_waiting_lot() -> None:
    with Bench() as bench, passing_lots(bench, "sqlite") as (lots, _):
        lots.fill(12)
        assert lots.left() == 12
        turn = lots.work()
        assert (turn.claims, lots.left()) == (12, 0)
        lots.fill(3)
        assert lots.work().claims == 3


def test_fresh_lots_and_a_backfill_are_measured_on_one_engine() -> None:
    with Bench() as bench:
        measured = measure_refilling(bench, "sqlite", 10, 1, lambda text: None)

    assert measured.lots == 10
    assert measured.ratio == measured.backfill_per_second / measured.fresh_per_second


def test_the_gaps_found_are_the_ones_left_out(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gaps.db'}"
    span = whole_days(2 * ODD_EVERY)
    write_lots(url, span)
    database = open_database(url, extra=[GRAPH_FOLDER])
    gaps = find_gaps(database, span, with_causes=True)
    rows = scan(database)
    database.close()
    assert gaps.totals == {GapKind.MISSING: 2, GapKind.EMPTY: 2}
    assert (gaps.count, len(gaps.ranges)) == (span.count, 4)
    assert rows == span.count - 2 >= 2 * ODD_EVERY - 2


def test_the_report_is_printed_and_saved(tmp_path: Path) -> None:
    report = new_report(quick=True)
    report.ceilings = [Ceiling(32, 50_000, 10_000)]
    ratios = [Ratio(32, "raw", 0.5, 0.4), Ratio(32, "single", 4.0, 6.0)]
    memory = [Memory("ours", 50, 60, 60, 61)]
    report.events = [Throughput("postgresql", [], ratios, memory, 100, 100)]
    report.lineage = [Timing("sqlite", "lineage, depth 5", 10, 2.0, 3.0, 90, 71)]
    report.lists = [Timing("sqlite", "jobs", 10, 25.0, 30.0, 300)]
    claimed = ClaimCell("ours", 1, 8, 900.0, 8.0, 500.0, 300.0, [900.0])
    report.claims = [Claims("postgresql", [claimed], [])]
    report.flat = [Flat("finding 1", 1_000_000, 1000.0, 990.0, 0.99)]
    report.arcs = Arcs(
        [Passing("sqlite", 400, 250.0, 2000.0, 0.0, 800.0, 500.0, 0.3, [250.0])],
        [Scheduling(1, 1_000, 1_000_000, 900.0, 1000.0, 0.9)],
        [GapTimes("sqlite", 1_000_000, 4, 900.0, 800.0, 300.0)],
        [Refilling("sqlite", 168, 100.0, 95.0, 0.95)],
    )
    report.targets = throughput_targets(report.events)
    report.targets += lineage_targets(report.lineage) + list_targets(report.lists)
    assert [target.met for target in report.targets] == [True, False, True, False]
    write_report(report, tmp_path / "results" / "report.json")
    content = (tmp_path / "results" / "report.json").read_bytes()
    assert msgspec.json.decode(content, type=Report) == report
    output = io.StringIO()
    print_report(report, Console(file=output, width=120))
    for words in (
        "slowest first page (jobs)", "ours, in process", "1,000,000 finished lots",
        "through an arc that does nothing", "1,000,000 lots done", "Gaps among 1,000,000 lots",
        "Lots per second of a backfill",
    ):  # fmt: skip
        assert words in output.getvalue()
