"""Where a key for one namespace may make lots: at home, and where its jobs were wired to."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from penstock.config import Settings
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from tests.doors.serving import API, Running, path, run_event, running

COOK = path("namespaces", "food", "jobs", "cook")
CELLAR = path("namespaces", "drink", "datasets", "cellar")
SOUP = path("namespaces", "food", "datasets", "soup")

Document = dict[str, Any]


@pytest.fixture
def shared(database_url: str) -> Iterator[Running]:
    """Job drink/press makes lots of drink/cellar, which is also called food/window."""
    with Plane.open(Settings(database=database_url)) as plane:
        plane.keys.create("first", KeyRole.ADMIN, who="test")
    with running(database_url, host="0.0.0.0") as server:
        server.client.headers.update(server.key("boss", KeyRole.ADMIN))
        second = {"identifiers": [{"namespace": "food", "name": "window", "type": "TABLE"}]}
        cellar = dataset("drink", "cellar", facets={"symlinks": second})
        report(server, "mix", None, namespace="drink", job="press", outputs=[cellar])
        wires = {"inputs": [dataset("drink", "grapes")], "outputs": [dataset("drink", "cellar")]}
        call(server, "PUT", path("namespaces", "drink", "jobs", "press", "wiring"), wires)
        grapes = path("namespaces", "drink", "datasets", "grapes", "lots")
        call(server, "POST", grapes, {"lots": ["1"]})
        yield server


@pytest.fixture
def food(shared: Running) -> Mapping[str, str]:
    return shared.key("food", KeyRole.WRITER, "food")


def dataset(namespace: str, name: str, **more: Any) -> Document:
    return {"namespace": namespace, "name": name, **more}


def call(
    server: Running,
    method: str,
    target: str,
    body: Document,
    *,
    key: Mapping[str, str] | None = None,
    status: int = 200,
) -> Document:
    answer = server.client.request(method, target, json=body, headers=key)
    assert answer.status_code == status, answer.text
    found: Document = answer.json()
    return found


def report(
    server: Running,
    run: str,
    key: Mapping[str, str] | None,
    *,
    namespace: str = "food",
    job: str = "cook",
    lot: str | None = None,
    **sides: list[Document],
) -> None:
    """A run as it is reported, from its start to its end."""
    for kind in ("START", "COMPLETE"):
        event = run_event(run, eventType=kind, **{"inputs": [], "outputs": [], **sides})
        event["job"] = dataset(namespace, job)
        event["run"]["facets"] = {} if lot is None else {"penstock_lot": {"lot": lot}}
        call(server, "POST", f"{API}/lineage", event, key=key, status=201)


def lots(server: Running, target: str) -> list[str]:
    found = server.client.get(f"{target}/lots").raise_for_status().json()["lots"]
    return [lot["lot"] for lot in found]


@pytest.mark.parametrize("output", [("drink", "cellar"), ("food", "window"), ("drink", "new")])
def test_a_job_is_wired_to_read_anywhere_and_to_write_at_home(
    shared: Running, food: Mapping[str, str], output: tuple[str, str]
) -> None:
    reads = {"inputs": [dataset("drink", "grapes")]}
    elsewhere = {**reads, "outputs": [dataset(*output)]}
    refused = call(shared, "PUT", f"{COOK}/wiring", elsewhere, key=food, status=403)
    assert "key for every namespace" in refused["message"]
    claim = {"owner": "w", "lots": ["1"], **elsewhere}
    call(shared, "POST", f"{COOK}/claims", claim, key=food, status=403)
    assert shared.client.get(f"{COOK}/wiring").status_code == 404
    assert shared.client.get(path("namespaces", "drink", "datasets", "new")).status_code == 404
    wires = {**reads, "outputs": [dataset("food", "soup")]}
    call(shared, "PUT", f"{COOK}/wiring", wires, key=food)


def test_what_was_wired_with_another_key_is_made_with_this_one(
    shared: Running, food: Mapping[str, str]
) -> None:
    wires = {"inputs": [dataset("drink", "grapes")], "outputs": [dataset("drink", "vault")]}
    call(shared, "PUT", f"{COOK}/wiring", wires)
    call(shared, "PUT", f"{COOK}/wiring", {**wires, "leaseSeconds": 30}, key=food)
    more = {**wires, "outputs": [*wires["outputs"], dataset("drink", "cellar")]}
    call(shared, "PUT", f"{COOK}/wiring", more, key=food, status=403)
    asked = {"owner": "w", **wires}
    [claim] = call(shared, "POST", f"{COOK}/claims", asked, key=food)["claims"]
    done = path("claims", claim["id"], "complete")
    call(shared, "POST", done, {"token": claim["token"]}, key=food)
    vault = path("namespaces", "drink", "datasets", "vault")
    assert lots(shared, vault) == ["1"]
    report(shared, "r", food, lot="2", outputs=[dataset("drink", "vault")])
    assert lots(shared, vault) == ["1", "2"]


def test_a_run_that_writes_elsewhere_makes_a_version_there_and_no_lot(
    shared: Running, food: Mapping[str, str]
) -> None:
    outputs = [dataset("drink", "cellar"), dataset("food", "soup"), dataset("food", "window")]
    report(shared, "r", food, lot="1", outputs=outputs)
    assert lots(shared, SOUP) == ["1"]
    assert lots(shared, CELLAR) == []
    made = shared.client.get(f"{CELLAR}/versions").json()["versions"][0]
    assert made["createdByRun"]["job"] == dataset("food", "cook")
    report(shared, "r2", None, lot="2", outputs=outputs)
    assert lots(shared, CELLAR) == ["2"]


def test_checks_of_what_is_elsewhere_hold_nothing_there(
    shared: Running, food: Mapping[str, str]
) -> None:
    grapes = path("namespaces", "drink", "datasets", "grapes", "lots", "1")
    failed = {"assertions": [{"assertion": "not_null", "success": False}]}
    read = dataset("drink", "grapes", inputFacets={"dataQualityAssertions": failed})
    report(shared, "r", food, lot="1", inputs=[read], outputs=[dataset("food", "soup")])
    assert shared.client.get(grapes).json()["status"] == "READY"
    report(shared, "r2", None, lot="1", inputs=[read], outputs=[dataset("drink", "cellar")])
    assert shared.client.get(grapes).json()["status"] == "HOLD"


@pytest.mark.parametrize("side", ["inputs", "outputs"])
@pytest.mark.parametrize("how", ["PUT", "POST"])
def test_an_arc_reads_and_writes_at_home_by_whatever_names(
    shared: Running, side: str, how: str
) -> None:
    chief = shared.key("chief", KeyRole.ADMIN, "food")
    sides = {"inputs": [{"dataset": "leeks"}], "outputs": [{"dataset": "soup"}]}
    arc = {**sides, side: [{"dataset": "window", "runningMax": 1}]}
    arc["workload"] = {"function": "kitchen:cook"}
    if how == "PUT":
        target, body = path("namespaces", "food", "arcs", "cook"), arc
    else:
        target, body = (
            path("declarations"),
            {"arcs": [{"namespace": "food", "name": "cook", **arc}]},
        )
    refused = call(shared, how, target, body, key=chief, status=403)
    assert "belongs to another" in refused["message"]
    assert shared.client.get(path("namespaces", "food", "arcs", "cook")).status_code == 404


def test_a_collection_makes_lots_at_home_by_whatever_name(shared: Running) -> None:
    chief = shared.key("chief", KeyRole.ADMIN, "food")
    profile = {"namespace": "food", "dataset": "window"}
    refused = call(
        shared, "PUT", path("ingest", "collections", "peas"), profile, key=chief, status=403
    )
    assert "belongs to another" in refused["message"]
    assert shared.client.get(path("ingest", "collections", "peas")).status_code == 404
