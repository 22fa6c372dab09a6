"""One flow: from a deposit to the last derived lot, embedded and at scale, with one outcome."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.demo.story import NAMESPACE, READINGS, WEATHER_LOTS
from penstock.schema.operations import BadLots
from tests.dask_cluster import Cluster
from tests.databases import sqlite_database
from tests.flow_site import FlowSite, actual_outcome, expected_outcome


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[FlowSite]:
    """SQLite, local folders and processes: no server but ours."""
    site = FlowSite(tmp_path, sqlite_database(tmp_path / "penstock.db"))
    yield site
    site.close()


@pytest.fixture
def at_scale(
    tmp_path: Path,
    postgres_url: str,
    zookeeper_url: str,
    bucket_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[FlowSite]:
    """PostgreSQL, ZooKeeper, an S3 server and a Dask cluster of separate processes."""
    monkeypatch.setenv("PENSTOCK_DEMO_FOLDER", str(tmp_path))
    cluster = Cluster(tmp_path / "dask")
    try:
        cluster.wait_for_workers()
        site = FlowSite(
            tmp_path,
            postgres_url,
            queue=zookeeper_url,
            objects=f"{bucket_url}/flow",
            executor=f"dask://{cluster.address}",
        )
        yield site
        site.close()
    finally:
        cluster.stop()


def test_a_deposit_flows_to_the_last_lot_on_the_embedded_default(embedded: FlowSite) -> None:
    assert_the_story_ends_well(embedded)


def test_a_deposit_flows_to_the_last_lot_at_scale(at_scale: FlowSite) -> None:
    assert_the_story_ends_well(at_scale)


def assert_the_story_ends_well(site: FlowSite) -> None:
    lot = site.run_story()
    assert actual_outcome(site, lot) == expected_outcome()
    client = site.client
    # The flaky part was tried twice, the other once: its result stayed.
    parts = client.arc_lot(NAMESPACE, "clean", lot)
    assert parts.attempts == 2
    readings = client.manifest(NAMESPACE, READINGS, lot)
    assert (readings.state, readings.total_count) == ("complete", 12)
    assert {item.ark for item in readings.uris} == {
        each.ark for each in client.objects(collection="gauges").objects
    }
    gaps = client.gaps(NAMESPACE, "weather_smooth", first=WEATHER_LOTS[0], last=WEATHER_LOTS[-1])
    [gap] = gaps.ranges
    assert (gap.first, gap.kind) == ("20261114PT1H03", "missing")
    made_from = client.provenance(NAMESPACE, "bulletin", lot)
    [deposited] = [each for each in made_from.versions if each.dataset == READINGS]
    assert deposited.deposits[0].batch == lot
    assert deposited.deposits[0].depositor == "hydrology@example.org"
    plan = client.plan_replay(BadLots(namespace=NAMESPACE, dataset=READINGS, lot=lot))
    assert {step.job for step in plan.steps} == {"clean", "alerts", "totals", "bulletin"}
    assert site.broken_invariants() == []
