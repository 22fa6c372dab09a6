"""Arcs over HTTP: declared, shown, cleaned and synced; manifests, gaps, backfills."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.arcs import overview
from penstock.schema.admin import KeyRole
from tests.doors.arc_site import BAD_LOT, EMPTY_LOT, ArcSite, arc, arc_site, dataset

LOT = "20261115PT1H00"
LATER_LOT = "20261115PT1H03"
OF_MAKE = "namespace=shop/project=default/version=1/arc=make"  # its state keys
COUNTS = {
    *("running", "complete", "partial", "missing", "ready", "waiting", "retryable", "held"),
    "atLeast",
}


@pytest.fixture
def site(database_url: str) -> Iterator[ArcSite]:
    with arc_site(database_url) as made:
        yield made


@pytest.fixture
def worked(site: ArcSite) -> ArcSite:
    """Lot 00 went through both arcs; 01 failed, 02 is empty, 03 was not begun."""
    site.register("tick", LOT, BAD_LOT, EMPTY_LOT, LATER_LOT)
    assert site.run("make", LOT)
    assert not site.run("make", BAD_LOT)
    assert site.run("make", EMPTY_LOT)
    assert site.run("shout", LOT)
    return site


def counts(site: ArcSite, name: str) -> dict[str, Any]:
    found = site.call("GET", *arc(name))["counts"]
    assert set(found) == COUNTS
    return {state: number for state, number in found.items() if number}


def test_an_arc_is_shown_as_it_was_declared(site: ArcSite) -> None:
    shown = site.call("GET", *arc("shout"))
    assert (shown["namespace"], shown["name"], shown["project"]) == ("shop", "shout", "default")
    assert shown["inputs"] == [
        {"dataset": "raw", "namespace": "", "subscribe": True, "runningMax": None}
    ]
    assert shown["parts"]["pattern"] == "day={day}"
    assert shown["retry"] == {"tries": 3, "backOffSeconds": 10, "leaseSeconds": 60}
    assert (shown["onEmpty"], shown["runningMax"], shown["newestFirst"]) == ("run", 4, False)
    said = {key: shown[key] for key in ("inputs", "outputs", "workload", "parts")}
    assert site.declare("shout", **said)["updatedAt"] == shown["updatedAt"]
    changed = site.declare("shout", **said, runningMax=1)
    assert changed["runningMax"] == 1
    listed = site.call("GET", "arcs")["arcs"]
    assert [each["name"] for each in listed] == ["make", "shout"]
    assert listed[1] == changed
    assert site.call("GET", "arcs", params={"namespace": "other"}) == {"arcs": []}


def test_deleted_arc_leaves_its_job(site: ArcSite) -> None:
    assert site.call("DELETE", *arc("shout")) == {}
    assert "penstock arcs list" in site.refused("GET", *arc("shout"), status=404)
    site.call("GET", "namespaces", "shop", "jobs", "shout")
    actions = [entry["action"] for entry in site.call("GET", "audit")["entries"]]
    assert actions == ["delete arc", "apply arc", "apply arc"]


def test_the_audit_log_records_the_declared_command(site: ArcSite) -> None:
    workload = {"command": ["touch", "/tmp/x"], "environment": {"TOKEN": "s3cret"}}
    inputs, outputs = [{"dataset": "raw"}], [{"dataset": "copies"}]
    site.declare("copy", inputs=inputs, outputs=outputs, workload=workload)

    entry = site.call("GET", "audit")["entries"][0]

    declared = json.loads(entry["detail"])
    assert (entry["action"], entry["target"]) == ("apply arc", "shop/copy")
    assert declared["workload"]["command"] == ["touch", "/tmp/x"]
    assert declared["workload"]["environment"] == {"TOKEN": "********"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"workload": {}}, "a function or a command"),
        ({"inputs": []}, "subscribes to nothing"),
        ({"outputs": []}, "has no output"),
        ({"outputs": [{"dataset": "b", "interval": "PT7M"}]}, "'PT7M' is no interval"),
        ({"outputs": [{"dataset": "b", "runningMax": 2**63}]}, "outputs[0].runningMax"),
        ({"retry": {"tries": 2**63}}, "retry.tries"),
        ({"retry": {"leaseSeconds": 604_801}}, "retry.leaseSeconds"),
        ({"retry": {"backOffSeconds": 604_801}}, "retry.backOffSeconds"),
        ({"workload": {"command": ["x"], "timeoutSeconds": 2**63}}, "workload.timeoutSeconds"),
        ({"parts": {"bytesMax": 2**63}}, "parts.bytesMax"),
        ({"running_max": 3}, "unknown field `running_max`"),
        ({"name": "other"}, "unknown field `name`"),
        ({"inputs": [{"dataset": ""}]}, "dataset"),
        ({"workload": {"function": "nothing"}}, "write module:function"),
        ({"parts": {}}, "name one"),
    ],
)
def test_impossible_arcs_are_refused(site: ArcSite, change: dict[str, Any], told: str) -> None:
    said = {
        "inputs": [{"dataset": "a"}],
        "outputs": [{"dataset": "b"}],
        "workload": {"function": "m:f"},
    }
    assert told in site.refused("PUT", *arc("new"), status=422, **{**said, **change})
    site.refused("GET", *arc("new"), status=404)


def test_roles_limit_arcs(site: ArcSite) -> None:
    said: dict[str, Any] = {
        "inputs": [{"dataset": "a"}],
        "outputs": [{"dataset": "b"}],
        "workload": {"function": "m:f"},
    }
    writer, admin = site.key(KeyRole.WRITER), site.key(KeyRole.ADMIN, "shop")
    site.refused("PUT", *arc("new"), status=403, headers=writer, **said)
    elsewhere = {**said, "inputs": [{"dataset": "a", "namespace": "bank"}]}
    site.refused("PUT", *arc("new"), status=403, headers=admin, **elsewhere)
    site.call("PUT", *arc("new"), json=said, headers=admin)
    site.refused("DELETE", *arc("new"), status=403, headers=writer)
    other = site.key(KeyRole.ADMIN, "other")
    assert site.call("GET", "arcs", headers=other) == {"arcs": []}
    site.refused("GET", *arc("new"), status=403, headers=other)


def test_lots_are_counted_by_state(worked: ArcSite) -> None:
    assert counts(worked, "make") == {"complete": 2, "partial": 1, "ready": 1, "held": 1}
    assert counts(worked, "shout") == {"complete": 1, "ready": 1}


def test_limited_counts_are_marked(worked: ArcSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "COUNTED_MAX", 1)
    monkeypatch.setattr(overview, "DONE_COUNTED_MAX", 2)
    found = worked.call("GET", *arc("make"))["counts"]
    assert found["atLeast"] == ["ready", "held", "partial", "missing", "complete"]
    assert (found["complete"], found["ready"]) == (1, 1)


def test_lots_are_listed_by_state_and_in_pages(worked: ArcSite) -> None:
    def lots(**query: Any) -> list[tuple[str, str | None, str]]:
        found = worked.call("GET", *arc("make", "lots"), params=query)
        return [(each["lot"], each["state"], each["work"]) for each in found["lots"]]

    everything = [
        (LOT, "complete", "DONE"),
        (BAD_LOT, "partial", "HELD"),
        (EMPTY_LOT, "complete", "DONE"),
        (LATER_LOT, None, "READY"),
    ]
    assert lots() == everything
    assert lots(state="complete") == [everything[0], everything[2]]
    assert lots(state="partial") == [everything[1]]
    assert lots(state="missing") == lots(state="running") == []
    page = worked.call("GET", *arc("make", "lots"), params={"limit": 3})
    assert page["next"] == EMPTY_LOT
    assert lots(after=page["next"]) == everything[3:]
    assert worked.call("GET", *arc("make", "lots"))["next"] is None
    worked.refused("GET", *arc("make", "lots"), status=422, params={"state": "good"})


def test_a_lot_shows_its_parts_its_failures_and_its_manifests(worked: ArcSite) -> None:
    failed = worked.call("GET", *arc("make", "lots", BAD_LOT))
    assert failed["error"] == "RuntimeError: no luck"
    (attempt,) = failed["failedAttempts"]
    assert (attempt["state"], attempt["run"]) == ("partial", failed["run"])
    assert (worked.folder / attempt["keys"][0]).is_file()
    assert failed["manifests"] == []
    loud = worked.call("GET", *arc("shout", "lots", LOT))
    assert [(p["part"], p["state"], p["uris"]) for p in loud["parts"]] == [
        ("day=1", "complete", 1),
        ("day=2", "complete", 1),
    ]
    (manifest,) = loud["manifests"]
    assert (manifest["dataset"], manifest["state"], manifest["isCurrent"]) == (
        "loud",
        "complete",
        True,
    )
    empty = worked.call("GET", *arc("make", "lots", EMPTY_LOT))
    assert [line["state"] for line in empty["manifests"]] == ["empty"]
    told = worked.refused("GET", *arc("make", "lots", "20261115PT1H09"), status=404)
    assert "penstock why shop/make 20261115PT1H09" in told


def test_cleaning_after_rewiring_keeps_published_data(
    worked: ArcSite,
) -> None:
    there = list(worked.folder.glob(f"d*/**/lot={LOT}/**/*.*"))
    assert there
    outputs = [{"namespace": "shop", "name": "other"}]
    wiring = ("namespaces", "shop", "jobs", "make", "wiring")
    worked.call("PUT", *wiring, json={"outputs": outputs})
    worked.call("POST", *arc("make", "lots", LOT, "clean"), json={"why": "junk"})
    assert [file for file in there if not file.exists()] == []
    manifest = worked.call("GET", *dataset("raw", "lots", LOT, "manifest"))
    assert manifest["state"] == "complete"


def test_state_keys_are_rebuilt_from_the_database(worked: ArcSite) -> None:
    before = worked.state_keys()
    assert f"{OF_MAKE}/lot={LOT}/complete.arc" in before
    known = worked.folder / "datasets/namespace=shop/name=raw/version=1"
    well_known = known / f"lot={LOT}/state=complete/manifest.json"
    content = well_known.read_bytes()
    shutil.rmtree(worked.folder / "arcs")
    well_known.write_bytes(b"{}")
    stray = worked.folder / "arcs" / OF_MAKE / "lot=unknown/running.arc"
    stray.parent.mkdir(parents=True)
    stray.touch()
    page = worked.call("POST", *arc("make", "sync"), json={"lots": 2})
    assert (page["lots"], page["changed"], page["next"]) == (2, 2, BAD_LOT)
    rest = worked.call("POST", *arc("make", "sync"), json={"after": page["next"]})
    assert (rest["lots"], rest["changed"], rest["removed"], rest["next"]) == (2, 1, 1, None)
    assert worked.call("POST", *arc("shout", "sync"), json={})["changed"] == 1
    assert worked.state_keys() == before
    assert well_known.read_bytes() == content
    assert worked.call("POST", *arc("make", "sync"), json={})["changed"] == 0
    shutil.rmtree(worked.folder / "datasets")
    assert worked.call("POST", *arc("make", "sync"), json={})["lost"] == 2


def test_sync_after_rewiring_follows_current_outputs(
    worked: ArcSite,
) -> None:
    said = worked.call("GET", *arc("make"))
    outputs = [*said["outputs"], {"dataset": "more"}]
    worked.declare("make", inputs=said["inputs"], outputs=outputs, workload=said["workload"])
    assert worked.call("POST", *arc("make", "sync"), json={})["lost"] == 0
    wiring = ("namespaces", "shop", "jobs", "make", "wiring")
    for name, lost in (("other", 0), ("raw", 2)):
        named = [{"namespace": "shop", "name": name}]
        worked.call("PUT", *wiring, json={"outputs": named})
        shutil.rmtree(worked.folder / "datasets", ignore_errors=True)
        assert worked.call("POST", *arc("make", "sync"), json={})["lost"] == lost


def test_the_manifest_of_a_lot_has_the_items_of_its_parts(worked: ArcSite) -> None:
    def items(**query: Any) -> list[tuple[str, str | None]]:
        found = worked.call("GET", *loud, params=query)
        assert found["totalCount"] == 2
        return [(Path(each["uri"]).name, each["part"]) for each in found["uris"]]

    loud = dataset("loud", "lots", LOT, "manifest")
    both = [(f"{LOT}.txt", "day=1"), (f"{LOT}.txt", "day=2")]
    assert items() == both
    assert [items(limit=1, offset=number) for number in range(3)] == [both[:1], both[1:], []]
    shown = worked.call("GET", *loud)
    assert (shown["state"], shown["uriType"], shown["isCurrent"]) == (
        "complete",
        "identifier",
        True,
    )
    assert shown["bytes"] == 2 * len(f"{LOT} 1")
    assert [part["part"] for part in shown["parts"]] == ["day=1", "day=2"]
    assert all(item["digest"].startswith("sha-256:") for item in shown["uris"])
    assert worked.call("GET", *loud, params={"version": shown["version"]}) == shown
    empty = worked.call("GET", *dataset("raw", "lots", EMPTY_LOT, "manifest"))
    assert (empty["state"], empty["totalCount"], empty["uris"]) == ("empty", 0, [])
    told = worked.refused("GET", *dataset("tick", "lots", LOT, "manifest"), status=404)
    assert "registered without one" in told
    other = worked.call("GET", *dataset("raw", "lots", LOT, "manifest"))["version"]
    worked.refused("GET", *loud, status=404, params={"version": other})


def test_backfill_is_planned_started_paused_and_resumed(worked: ArcSite) -> None:
    start = arc("make", "backfills")
    body = {"from": LOT, "to": "20261115PT1H04", "maxRunning": 2}
    plan = worked.call("POST", *start, json={**body, "dryRun": True})
    assert plan["backfill"] is None
    assert plan["plan"]["totals"] == {"good": 2, "out of tries": 1, "ready": 1, "waiting": 1}
    assert [line["lot"] for line in plan["plan"]["lines"]] == [
        BAD_LOT,
        LATER_LOT,
        "20261115PT1H04",
    ]
    begun = worked.call("POST", *start, json={**body, "why": "repaired"})["backfill"]
    assert (begun["state"], begun["count"], begun["maxRunning"]) == ("running", 5, 2)
    assert (begun["scope"], begun["why"]) == ("failed and missing", "repaired")
    assert worked.call("GET", "backfills", begun["id"])["id"] == begun["id"]
    assert [each["id"] for each in worked.call("GET", "backfills")["backfills"]] == [begun["id"]]
    for move, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        moved = worked.call("POST", "backfills", begun["id"], move, json={"why": "because"})
        assert moved["state"] == state
    told = worked.refused("POST", "backfills", begun["id"], "resume", status=409, why="x")
    assert "cancelled" in told
    everything = worked.call("POST", *start, json={**body, "dryRun": True, "all": True})
    assert everything["plan"]["actions"]["rerun"] == 2
    outright: dict[str, Any] = {**body, "dryRun": True, "failedAndMissing": True}
    assert "rerun" not in worked.call("POST", *start, json=outright)["plan"]["actions"]
    told = worked.refused("POST", *start, status=422, **outright, all=True)
    assert "Say one of the three" in told
    worked.refused("GET", "backfills", "nothing", status=404)


def test_backfills_of_another_namespace_are_not_shown(worked: ArcSite) -> None:
    body: dict[str, Any] = {"from": LOT, "to": LOT}
    begun = worked.call("POST", *arc("make", "backfills"), json=body)["backfill"]
    other = worked.key(KeyRole.ADMIN, "other")
    assert worked.call("GET", "backfills", headers=other) == {"backfills": []}
    worked.refused("GET", "backfills", begun["id"], status=403, headers=other)
    worked.refused("POST", "backfills", begun["id"], "pause", status=403, headers=other, why="x")
    writer = worked.key(KeyRole.WRITER)
    worked.refused("POST", *arc("make", "backfills"), status=403, headers=writer, **body)


def test_arrivals_are_declared_shown_and_deleted(site: ArcSite, tmp_path: Path) -> None:
    at = dataset("landed", "arrival")
    said: dict[str, Any] = {"location": str(tmp_path / "in"), "interval": "PT1H", "graceSeconds": 5}
    shown = site.call("PUT", *at, json=said)
    assert {key: shown[key] for key in said} == said
    assert (shown["late"], shown["time"], shown["refused"]) == ("amend", "modified", [])
    assert site.call("GET", *at) == shown
    changed = site.call("PUT", *at, json={**said, "late": "refuse"})
    assert (changed["late"], changed["openFrom"]) == ("refuse", shown["openFrom"])
    assert "whole path" in site.refused("PUT", *at, status=422, location="in", interval="PT1H")
    assert "unknown field" in site.refused("PUT", *at, status=422, location="/in", places=1)
    far = {**said, "graceSeconds": 2**63}
    assert "graceSeconds" in site.refused("PUT", *at, status=422, **far)
    assert "every namespace" in site.refused(
        "PUT", *at, status=403, headers=site.key(KeyRole.ADMIN, "shop"), **said
    )
    site.refused("PUT", *at, status=403, headers=site.key(KeyRole.WRITER), **said)
    assert site.call("DELETE", *at) == {}
    assert "nothing is declared to arrive" in site.refused("GET", *at, status=404)
