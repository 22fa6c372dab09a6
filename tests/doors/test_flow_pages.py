"""The pages on what flows and what is stopped: their commands are run, and do what they say."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import sqlite_database
from tests.doors.serving import Running, running
from tests.doors.test_arc_pages import DOCS, run_page


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(sqlite_database(tmp_path / "penstock.db")) as found:
        yield found


def test_staleness(server: Running, tmp_path: Path) -> None:
    said = run_page("staleness.md", server, tmp_path)
    assert "shop/clean  2026-11-15  READY" in said
    assert "is held by 'penstock' since" in said
    assert "an input has a newer version of lot 2026-11-15" in said
    assert "shop/sum  2026-11-15  DONE" in said


def test_holds(server: Running, tmp_path: Path) -> None:
    said = run_page("holds.md", server, tmp_path)
    assert "lot 2026-11-15 of shop/raw, which it was made from, is held: wrong currency" in said
    assert "refused: release raw" in said
    assert "dataset shop/raw, which its inputs are made from, is held: the disk is swapped" in said


def test_quality_gates(server: Running, tmp_path: Path) -> None:
    said = run_page("quality-gates.md", server, tmp_path)
    assert "1 empty rows" in said
    assert "failed: has_no_gaps: 1 empty rows" in said
    assert "lot 20261115PT1H09 of shop/orders is accepted: READY" in said
    assert "total.txt" in said


def test_deposits(server: Running, tmp_path: Path) -> None:
    said = run_page("deposits-become-lots.md", server, tmp_path)
    assert "announced, and not complete yet" in said
    assert "count.txt" in said
    assert "ark:/99999/fk4" in said


def test_locks(server: Running, tmp_path: Path) -> None:
    said = run_page("locks.md", server, tmp_path)
    assert "cleaning 2026-11-14" in said
    assert "could not be made by job shop/clean" in said
    assert "lot 2026-11-14 of job shop/clean is resubmitted: READY" in said
    assert "raw (local), orders (read and write)" in said
    assert '"versions":[{"namespace":"shop","name":"orders"' in said
    assert "refused: 2026-11-14 is done" in said
    assert "2026-11-16  shop/clean  airflow" in said


def test_ingest(server: Running, tmp_path: Path) -> None:
    said = run_page("ingest.md", server, tmp_path)
    assert "1 completed, 1 failed." in said
    assert "version 2, 1,175 bytes, local id n1" in said
    assert "jid0000000003  downloading" in said
    assert "Since the report before: 1 more completed, 0 open." in said
    assert "there are no faults" in said


def test_lineage(server: Running, tmp_path: Path) -> None:
    said = run_page("lineage.md", server, tmp_path)
    assert said.count("4 events received, 0 refused") == 2
    assert "8 events received, 0 refused" in said
    assert "public.orders.amount  NUMERIC" in said
    assert "read s3://lake/raw/orders, made by no known run" in said
    assert "dataset s3://lake/raw/orders is restored" in said


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path = link.partition("#")[0]
            assert "://" in link or (page.parent / path).exists(), f"{page}: {link}"
