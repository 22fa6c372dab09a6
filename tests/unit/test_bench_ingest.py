"""The benchmarks of ingest measure what they claim."""

import io
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.claims import tuned_interpreter
from bench.ingest import Ingest
from bench.ingest_files import Files, ingest_files
from bench.ingest_queue import (
    AT_ONCE,
    ROUNDS,
    Passed,
    Place,
    Waiting,
    cost_of_waiting,
    pass_through,
)
from bench.peers.bare_stores import Bare
from bench.report import Report, new_report, print_report, write_report

MakePlace = Callable[[], Place]


@pytest.fixture(params=["sqlite", "postgresql", "zookeeper"])
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakePlace]:
    """A function that makes empty ingest folders. It leaves the interpreter's state unchanged."""
    numbers = count()
    folders: list[str] = []

    def make() -> Place:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        database, queue = f"sqlite:///{folder / 'penstock.db'}", "database"
        if request.param == "postgresql":
            database = request.getfixturevalue("postgres").create_database()
            folders.append(database)
        if request.param == "zookeeper":
            queue = f"{request.getfixturevalue('zookeeper_url')}-{folder.name}"
        return Place(request.param, database, queue, str(folder))

    with tuned_interpreter():
        yield make
    for url in folders:
        request.getfixturevalue("postgres").drop_database(url)


def test_jobs_go_through_every_stage(make_place: MakePlace) -> None:
    passed = pass_through(make_place(), jobs=130, seconds=0.1)
    assert passed.jobs == 130
    assert min(passed.per_second, passed.made_per_second, passed.cpu_us) > 0
    assert passed.memory_most_mb >= passed.memory_start_mb > 0
    assert len(passed.bare) == (2 if passed.store == "zookeeper" else 1)
    assert all(bare.per_second > 0 for bare in passed.bare)


@pytest.mark.parametrize("make_place", ["sqlite"], indirect=True)
def test_claims_are_measured_on_short_and_long_queues(make_place: MakePlace) -> None:
    least = (ROUNDS + 1) * AT_ONCE
    few, many = cost_of_waiting({least: make_place(), 2 * least: make_place()})
    assert (few.waiting, few.ratio, many.waiting) == (least, 1.0, 2 * least)
    assert min(few.job_us, many.job_us, many.ratio) > 0


def test_files_are_ingested_over_http(tmp_path: Path) -> None:
    result = ingest_files(f"sqlite:///{tmp_path / 'penstock.db'}", tmp_path, count=5)
    assert result.files == 5
    assert min(result.per_second, result.cpu_ms) > 0


@pytest.fixture
def measured() -> Ingest:
    bare = [Bare("one row in a transaction", 500.0)]
    passed = [Passed("sqlite", 10_000, 9e4, 400.0, 74.0, 67.0, 98.0, bare)]
    waiting = [Waiting("sqlite", 1_000, 100.0, 1.0), Waiting("sqlite", 100_000, 120.0, 0.83)]
    return Ingest(passed, waiting, Files(1_000, 10_000, 25.0, 40.0, 20.1))


def test_the_report_shows_and_stores_every_measurement(measured: Ingest, tmp_path: Path) -> None:
    report = new_report(quick=True)
    report.ingest = measured
    write_report(report, tmp_path / "report.json")
    content = (tmp_path / "report.json").read_bytes()
    assert msgspec.json.decode(content, type=Report) == report
    output = io.StringIO()
    print_report(report, Console(file=output, width=120))
    for words in ("10,000 ingest jobs", "one row in a transaction", "100,000", "40 jobs/s"):
        assert words in output.getvalue()
