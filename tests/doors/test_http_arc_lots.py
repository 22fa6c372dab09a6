"""Lots of arcs over HTTP: only engines work on them, not other claims or events."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.arcs.commands import ClaimArcLots
from tests.doors.arc_site import MAKE, ArcSite, arc, arc_site, dataset, while_it_works
from tests.invariants import assert_all_holds

LOT = "20261115PT1H00"
RUN = "0190c1f2-0000-7000-8000-000000000001"
JOB = ("namespaces", "shop", "jobs", "make")


@pytest.fixture
def site(database_url: str) -> Iterator[ArcSite]:
    with arc_site(database_url) as made:
        made.register("tick", LOT)
        yield made
        assert_all_holds(made.server.plane.settings)


@pytest.mark.parametrize(
    "asked",
    [{}, {"lots": [LOT]}, {"inputs": [{"namespace": "shop", "name": "raw"}], "outputs": []}],
    ids=["any", "one", "wired"],
)
def test_only_the_engine_claims_lots_of_an_arc(site: ArcSite, asked: dict[str, Any]) -> None:
    refusal = site.refused("POST", *JOB, "claims", status=409, owner="ann", **asked)
    assert "penstock arcs run shop/make LOT" in refusal
    assert site.call("GET", *arc("make"))["counts"]["ready"] == 1
    assert site.run("make", LOT)


@pytest.mark.parametrize("at_once", [False, True], ids=["one", "several"])
def test_only_the_engine_publishes_lots_of_an_arc(site: ArcSite, at_once: bool) -> None:
    claiming = ClaimArcLots("shop", "make", "engine", 1)
    (claim,) = site.server.plane.catalog.submit(claiming).result().claims
    if at_once:
        refs = [{"id": claim.id, "token": claim.token}]
        (ended,) = site.call("POST", "claims", "complete", json={"claims": refs})["ended"]
        refusal = ended["error"]["message"]
    else:
        path = ("claims", claim.id, "complete")
        refusal = site.refused("POST", *path, status=409, token=claim.token)
    assert "whose engine publishes its lots" in refusal
    assert site.call("GET", *arc("make"))["counts"]["running"] == 1
    site.call("POST", "claims", claim.id, "release", json={"token": claim.token})
    assert site.run("make", LOT)


def test_job_of_a_deleted_arc_can_be_claimed(site: ArcSite) -> None:
    site.call("DELETE", *arc("make"))
    (claim,) = site.call("POST", *JOB, "claims", json={"owner": "ann"})["claims"]
    assert claim["lot"] == LOT


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
    entries = site.call("GET", *JOB, "log", params={"lot": LOT})["entries"]
    return [entry["why"] for entry in entries if entry["action"] == action]


def test_an_event_takes_no_lot_of_an_arc(site: ArcSite) -> None:
    for kind in ("START", "COMPLETE"):
        site.call("POST", "lineage", status=201, json=event(RUN, kind))
    assert len(log_of(site, "conflict")) == 2
    assert "an engine makes the lots of this job" in log_of(site, "conflict")[0]
    assert site.call("GET", *arc("make"))["counts"]["ready"] == 1
    assert site.run("make", LOT)
    assert site.call("GET", *dataset("raw", "lots", LOT, "manifest"))["state"] == "complete"


def test_strict_job_refuses_such_events(site: ArcSite) -> None:
    site.call("PUT", *JOB, "wiring", json={"enforced": True})
    refusal = site.refused("POST", "lineage", status=409, **event(RUN, "START"))
    assert "an engine makes the lots of this job" in refusal
    assert site.run("make", LOT)


@pytest.mark.parametrize("kind", ["COMPLETE", "FAIL", "ABORT"])
def test_events_do_not_end_runs_of_engines(site: ArcSite, kind: str) -> None:
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
    assert log_of(site, "ignore") == [f"{kind} was reported; the engine ends its own claims"]
    kept = site.call("GET", "events", "lineage")["events"]
    assert kind in [one["eventType"] for one in kept]


def test_job_without_running_lots_becomes_an_arc(site: ArcSite) -> None:
    site.call("DELETE", *arc("make"))
    site.call("POST", "lineage", status=201, json=event(RUN, "START"))
    refusal = site.refused("PUT", *arc("make"), status=409, **MAKE)
    assert f"lot {LOT} by 'spark'; it can become an arc when they are done" in refusal
    site.refused("GET", *arc("make"), status=404)
    site.call("POST", "lineage", status=201, json=event(RUN, "COMPLETE"))
    assert site.call("GET", "locks")["locks"] == []
    site.declare("make", **MAKE)
