"""OPENLINEAGE_URL: another backend is told of our own runs, for as long as the settings say so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client import ApiError, Client
from penstock.config import Settings, load
from penstock.errors import Invalid
from penstock.lots.rows import SubscriberRow
from penstock.schema.admin import KeyRole
from penstock.subscribers.commands import load_subscribers
from penstock.subscribers.own_backend import NAME, follow_settings
from tests.doors.serving import API, Running, running
from tests.doors.waiting import until
from tests.running import ServerProcess

URL = "http://lineage.example:5000"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(f"sqlite:///{tmp_path / 'penstock.db'}") as found:
        yield found


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(server.server.url) as found:
        found.wire_job("shop", "tidy", inputs=["raw"], outputs=["clean"])
        yield found


def started(server: Running, own_url: str = "", *, forget: bool = True, **given: Any) -> None:
    """What a server does with its settings when it starts."""
    settings = Settings(database="sqlite://", **given)
    plane = server.plane
    follow_settings(plane.catalog, settings, plane.secrets, own_url=own_url, may_delete=forget)


def subscriber(server: Running) -> SubscriberRow | None:
    with server.plane.catalog.read() as tx:
        return next((row for row in load_subscribers(tx) if row.name == NAME), None)


def finish(client: Client, lot: str) -> str:
    """Have a lot worked on: its run."""
    client.register_lots("shop", "raw", [lot])
    [claim] = client.claims("shop/tidy")
    claim.complete()
    return claim.run_id


def test_another_penstock_has_the_same_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(f"sqlite:///{tmp_path / 'other.db'}") as other:
        token = other.key("penstock", KeyRole.WRITER)["authorization"].removeprefix("Bearer ")
        monkeypatch.setenv("OPENLINEAGE_URL", other.server.url)
        monkeypatch.setenv("OPENLINEAGE_API_KEY", token)
        process = ServerProcess.start(f"sqlite:///{tmp_path / 'penstock.db'}")
        try:
            with Client(process.url) as here, Client(other.server.url, other.token) as there:
                here.wire_job("shop", "tidy", inputs=["raw"], outputs=["clean"])
                ids = [finish(here, lot) for lot in ("1", "2")]
                here.register_lots("shop", "raw", ["3"])
                [failed] = here.claims("shop/tidy")
                failed.fail("it is torn")
                until(lambda: here.subscriber(NAME).cursor == 3)
                assert here.subscriber(NAME).url == f"{other.server.url}/api/v1/lineage"
                assert here.subscriber(NAME).has_secret
                for run_id in (*ids, failed.run_id):
                    assert facts(there, run_id) == facts(here, run_id)
                assert token not in process.log()
            process.stop()
        finally:
            process.kill()


def facts(client: Client, run_id: str) -> object:
    """What two catalogs must agree on about a run."""
    run = client.run(run_id)
    datasets = [
        [
            (version.dataset_version_id.namespace, version.dataset_version_id.name)
            for version in versions
        ]
        for versions in (run.input_dataset_versions, run.output_dataset_versions)
    ]
    lot = msgspec.to_builtins(run.facets["penstock_lot"])["lot"]
    return run.id, run.job, run.state, run.started_at, run.ended_at, datasets, lot


def test_the_subscriber_follows_the_settings(server: Running) -> None:
    started(server, openlineage_url=URL)
    made = subscriber(server)
    assert made is not None
    assert (made.url, made.secret) == (f"{URL}/api/v1/lineage", None)
    started(server, openlineage_url=URL)
    assert subscriber(server) == made
    started(
        server,
        openlineage_url="https://other.example/base",
        openlineage_endpoint="v2/events",
        openlineage_api_key="k3y",
    )
    changed = subscriber(server)
    assert changed is not None
    assert changed.url == "https://other.example/v2/events"
    assert server.plane.secrets.reveal(changed.secret or "") == "k3y"
    assert changed.cursor == made.cursor
    started(server, forget=False)
    assert subscriber(server) == changed
    started(server)
    assert subscriber(server) is None
    started(server)
    assert subscriber(server) is None


def test_nobody_changes_it_by_hand_or_sees_its_key(server: Running, client: Client) -> None:
    started(server, openlineage_url=URL, openlineage_api_key="k3y")
    body = {"kind": "webhook", "url": "https://example.org/"}
    refused = server.client.put(f"{API}/subscribers/{NAME}", json=body)
    assert refused.status_code == 409
    assert "follows the settings" in refused.json()["message"]
    shown = server.client.get(f"{API}/subscribers/{NAME}")
    assert shown.json()["hasSecret"]
    assert "k3y" not in shown.text
    client.delete_subscriber(NAME)
    with pytest.raises(ApiError, match="no subscriber"):
        client.subscriber(NAME)


def test_a_password_in_the_url_is_refused(server: Running) -> None:
    with pytest.raises(Invalid, match="leave the password out"):
        started(server, openlineage_url="http://me:hush@lineage.example")
    assert subscriber(server) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_is_not_told_of_its_own_runs(server: Running, host: str) -> None:
    own = server.server.url
    port = own.rpartition(":")[2]
    started(server, own, openlineage_url=f"http://{host}:{port}/")
    assert subscriber(server) is None
    started(server, f"http://0.0.0.0:{port}", openlineage_url=f"http://{host}:{port}")
    assert subscriber(server) is None
    started(server, own, openlineage_url=f"http://{host}:1")
    assert subscriber(server) is not None


def test_what_comes_back_by_another_way_is_passed_over(server: Running, client: Client) -> None:
    """A proxy, say, whose name nobody here knows."""
    client.set_subscriber("loop", "openlineage", server.server.url)
    run_id = finish(client, "7")
    until(lambda: client.subscriber("loop").cursor == 1)
    assert client.subscriber("loop").failures == 0
    assert client.events().total_count == 0
    assert client.run(run_id).state == "COMPLETED"


def test_the_variables_are_settings_like_others(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "OPENLINEAGE_URL": "http://me:hush@lineage.example",
        "OPENLINEAGE_API_KEY": "k3y",
        "OPENLINEAGE_ENDPOINT": "v2",
    }
    shown = {line.name: line for line in load({}, environ, tmp_path).shown()}
    assert shown["openlineage_url"].value == "http://me:********@lineage.example"
    assert shown["openlineage_url"].origin == "environment OPENLINEAGE_URL"
    assert shown["openlineage_api_key"].value == "********"
    ours = load({}, {**environ, "PENSTOCK_OPENLINEAGE_URL": URL}, tmp_path)
    assert ours.settings.openlineage_url == URL
    assert ours.settings.openlineage_endpoint == "v2"
