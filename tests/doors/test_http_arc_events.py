"""Events that name the lots of an arc: its engine makes them, and ends what it has begun."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.checked import assert_all_holds
from tests.doors.arc_site import HERE, ArcSite, arc, arc_site, dataset, while_it_works

LOT = "20261115PT1H00"
RUN = "0190c1f2-0000-7000-8000-000000000001"
WIRING = ("namespaces", "shop", "jobs", "make", "wiring")


@pytest.fixture
def site(database_url: str) -> Iterator[ArcSite]:
    with arc_site(database_url) as made:
        made.register("tick", LOT)
        made.declare(
            "make",
            inputs=[{"dataset": "tick"}],
            outputs=[{"dataset": "raw", "interval": "PT1H"}],
            workload={"function": f"{HERE}:watched"},
            retry={"tries": 1, "backOffSeconds": 0},
        )
        yield made
        assert_all_holds(made.server.plane.settings)


def event(run: str, kind: str, job: str = "make") -> dict[str, Any]:
    return {
        "eventType": kind,
        "eventTime": "2026-11-15T10:00:00Z",
        "producer": "spark",
        "run": {"runId": run, "facets": {"penstock_lot": {"lot": LOT}}},
        "job": {"namespace": "shop", "name": job},
        "inputs": [{"namespace": "shop", "name": "tick"}],
        "outputs": [{"namespace": "shop", "name": "raw"}],
    }


def log_of(site: ArcSite, action: str) -> list[str]:
    at = ("namespaces", "shop", "jobs", "make", "log")
    entries = site.call("GET", *at, params={"lot": LOT})["entries"]
    return [entry["why"] for entry in entries if entry["action"] == action]


def test_an_event_takes_no_lot_of_an_arc(site: ArcSite) -> None:
    for kind in ("START", "COMPLETE"):
        site.call("POST", "lineage", status=201, json=event(RUN, kind))
    assert len(log_of(site, "conflict")) == 2
    assert "an engine makes the lots of this job" in log_of(site, "conflict")[0]
    assert site.call("GET", *arc("make"))["counts"]["ready"] == 1
    assert site.run("make", LOT)
    assert site.call("GET", *dataset("raw", "lots", LOT, "manifest"))["state"] == "complete"


def test_an_event_that_would_take_one_is_refused_where_the_job_asks_for_that(site: ArcSite) -> None:
    site.call("PUT", *WIRING, json={"enforced": True})
    refusal = site.refused("POST", "lineage", status=409, **event(RUN, "START"))
    assert "an engine makes the lots of this job" in refusal
    assert site.run("make", LOT)


@pytest.mark.parametrize("kind", ["COMPLETE", "FAIL", "ABORT"])
def test_the_end_of_a_run_that_an_engine_has_begun_is_left_to_the_engine(
    site: ArcSite, kind: str
) -> None:
    seen: list[tuple[str, str]] = []

    def tell() -> None:
        [lock] = site.call("GET", "locks")["locks"]
        site.call("POST", "lineage", status=201, json=event(lock["claim"], kind))
        seen.append((lock["claim"], site.call("GET", "jobs", "runs", lock["claim"])["state"]))

    while_it_works.append(tell)
    assert site.run("make", LOT)
    [(run, state)] = seen
    assert state == "RUNNING"
    assert site.call("GET", "jobs", "runs", run)["state"] == "COMPLETED"
    assert site.call("GET", *dataset("raw", "lots", LOT, "manifest"))["state"] == "complete"
    assert log_of(site, "ignore") == [f"{kind} was reported; the engine tells when a lot is made"]
    kept = site.call("GET", "events", "lineage")["events"]
    assert kind in [one["eventType"] for one in kept]
