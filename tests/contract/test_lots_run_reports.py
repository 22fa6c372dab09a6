"""Our own runs, told to another backend as OpenLineage events."""

import json
from typing import Any

import pytest

from penstock.arcs.commands import BeginParts, EndPart, PublishLot
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.events.parse import Limits, read_event
from penstock.locks.commands import ClaimLots, ClaimRef, CompleteClaims, Sweep
from penstock.lots.manifests import ManifestNote
from penstock.schema.arcs import PartState
from penstock.states import ManifestState
from tests.contract.outbox_desk import IngestService, deliveries, desk
from tests.web import Request, Web, status

pytestmark = pytest.mark.one_database

__all__ = ["desk"]

LINEAGE = "/api/v1/lineage"


def events(requests: list[Request]) -> list[dict[str, Any]]:
    for request in requests:
        read_event(request.body, Limits(name_length_max=4096, json_depth_max=64))
    return [json.loads(request.body) for request in requests]


def told(
    desk: IngestService, count: int, **asks: Any
) -> tuple[list[dict[str, Any]], list[Request]]:
    """What a backend gets that hears from the beginning, up to the end of so many runs."""
    with Web() as web:
        web.on(LINEAGE, status(201))
        desk.subscribe(web.url, "other", "openlineage", after=0, **asks)
        with desk.deliverer():
            desk.wait_for(count, "other")
        found = web.requests_to(LINEAGE, "POST")
    return events(found), found


def test_a_completed_run_is_told_with_what_it_read_and_wrote(desk: IngestService) -> None:
    desk.publish("7")
    run = desk.work()
    (start, end), requests = told(desk, 1, secret="key-of-theirs")
    assert deliveries(requests) == ["other-1-start", "other-1-end"]
    assert {r.headers["authorization"] for r in requests} == {"Bearer key-of-theirs"}
    assert all("penstock-signature" not in r.headers for r in requests)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"] == run
    assert end["job"] == {"namespace": "shop", "name": "tidy", "facets": {}}
    lot = end["run"]["facets"]["penstock_lot"]
    assert (lot["lot"], lot["attempt"]) == ("7", 1)
    assert lot["_producer"].startswith("urn:penstock:")
    [read], [written] = end["inputs"], end["outputs"]
    assert (read["namespace"], read["name"]) == ("shop", "raw")
    assert (written["namespace"], written["name"]) == ("shop", "clean")
    assert read["facets"]["version"]["datasetVersion"] != ""
    part = {"identifier": "7", "dimensions": {"lot": "7"}}
    assert read["inputFacets"]["subset"]["inputCondition"]["partitions"] == [part]
    assert written["outputFacets"]["subset"]["outputCondition"]["partitions"] == [part]


def test_runs_that_failed_or_whose_worker_died_are_told_too(desk: IngestService) -> None:
    desk.publish("1")
    failed = desk.work(fails=True)
    desk.pass_seconds(3600)
    desk.catalog.submit(Sweep()).result()
    [claim] = desk.catalog.submit(ClaimLots("shop", "tidy", "worker", 1)).result()
    desk.pass_seconds(3600)
    desk.catalog.submit(Sweep()).result()
    found, _ = told(desk, 2)
    ends = [(event["run"]["runId"], event["eventType"]) for event in found]
    assert ends == [(failed, "START"), (failed, "FAIL"), (claim.id, "START"), (claim.id, "FAIL")]
    assert all(event["outputs"] == [] for event in found)


def test_parts_are_told_below_the_run_of_their_lot(desk: IngestService) -> None:
    desk.publish("1")
    [claim] = desk.catalog.submit(ClaimLots("shop", "tidy", "worker", 1)).result()
    ref = ClaimRef(claim.id, claim.token)
    runs = desk.catalog.submit(BeginParts(ref, {"day=1": "", "day=2": ""})).result()
    desk.catalog.submit(EndPart(ref, "day=1", PartState.COMPLETE)).result()
    desk.catalog.submit(EndPart(ref, "day=2", PartState.FAILED, error="no")).result()
    desk.catalog.submit(CompleteClaims((ref,))).result()
    found, _ = told(desk, 3)
    ends = [(event["run"]["runId"], event["eventType"]) for event in found]
    assert ends == [
        (runs["day=1"], "START"),
        (runs["day=1"], "COMPLETE"),
        (runs["day=2"], "START"),
        (runs["day=2"], "FAIL"),
        (claim.id, "START"),
        (claim.id, "COMPLETE"),
    ]
    parent = found[0]["run"]["facets"]["parent"]
    assert parent["run"] == {"runId": claim.id}
    assert parent["job"] == {"namespace": "shop", "name": "tidy"}
    assert found[0]["run"]["facets"]["penstock_part"]["part"] == "day=1"


def test_only_runs_that_touch_a_dataset_are_told_to_those_who_ask_for_it(
    desk: IngestService,
) -> None:
    desk.publish("1")
    desk.work()
    assert len(told(desk, 1, dataset="raw")[0]) == 2
    assert len(told(desk, 1, namespace="shop", dataset="clean")[0]) == 2
    assert told(desk, 1, namespace="farm")[0] == []


def test_how_much_a_run_wrote_is_told_from_its_manifest(desk: IngestService) -> None:
    desk.publish("1")
    [claim] = desk.catalog.submit(ClaimLots("shop", "tidy", "worker", 1)).result()
    note = ManifestNote(ManifestState.COMPLETE, "key", 3, 1234, "0" * 64, claim.id)
    publish = PublishLot(ClaimRef(claim.id, claim.token), ((DatasetName("shop", "clean"), note),))
    desk.catalog.submit(publish).result()
    found, _ = told(desk, 1)
    statistics = found[-1]["outputs"][0]["outputFacets"]["outputStatistics"]
    assert (statistics["size"], statistics["fileCount"]) == (1234, 3)


@pytest.mark.parametrize("path", ["", "/"])
def test_a_bare_url_is_called_where_backends_are(desk: IngestService, path: str) -> None:
    desk.publish("1")
    desk.work()
    with Web() as web:
        web.on(LINEAGE, status(201))
        own = web.on("/own/path", status(201))
        desk.subscribe(web.url + path, "bare", "openlineage", after=0)
        desk.subscribe(own, "own", "openlineage", after=0)
        with desk.deliverer():
            desk.wait_for(1, "bare", "own")
        assert (
            len(web.requests_to(LINEAGE, "POST")) == len(web.requests_to("/own/path", "POST")) == 2
        )
