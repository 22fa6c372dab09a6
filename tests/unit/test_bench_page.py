"""The benchmarks of the web page measure what they claim."""

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.graph import FOLDER, JOBS
from bench.page import DOMAINS, PageTimes, Seen, fill
from bench.report import Report, new_report, print_report, write_report
from penstock.db import open_database


@pytest.fixture
def measured() -> PageTimes:
    views = [Seen("an empty page", 80.0, 90.0), Seen("overview", 400.0, 500.0)]
    views += [Seen("lineage of the graph", 1000.0, 1400.0)]
    answers = [Seen("a key on an empty page", 20.0, 21.0), Seen("choosing a node", 99.0, 120.0)]
    return PageTimes(100_000, 1_995, views, answers)


def test_the_measured_server_has_the_requested_number_of_lots(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    count = fill(url, 500)
    database = open_database(url, extra=[FOLDER])
    with database.read() as tx:
        jobs = sum(row[1] for row in tx.fetch("read_tallies", kind="JOB"))
    database.close()
    assert count >= 500
    assert jobs >= DOMAINS * JOBS


def test_the_report_shows_and_stores_every_measurement(measured: PageTimes, tmp_path: Path) -> None:
    report = new_report(quick=True)
    report.page = measured
    write_report(report, tmp_path / "report.json")
    content = (tmp_path / "report.json").read_bytes()
    assert msgspec.json.decode(content, type=Report) == report
    output = io.StringIO()
    print_report(report, Console(file=output, width=120))
    for words in ("100,000 lots and 1,995 nodes", "lineage of the graph", "5.0 ×", "choosing a"):
        assert words in output.getvalue()
