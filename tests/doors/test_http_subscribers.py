"""Subscribers through the API, the client and the command line."""

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import Client
from penstock.errors import Unavailable
from penstock.schema.admin import KeyRole
from tests.doors.commands import Terminal
from tests.doors.serving import API, Running, running
from tests.doors.waiting import until
from tests.web import Web, status

KEYS = {
    *("name", "kind", "url", "hasSecret", "namespace", "dataset", "cursor", "lag"),
    *("waitingSince", "failures", "lastError", "lastFailedAt", "nextTryAt", "lastDeliveredAt"),
    *("createdAt", "updatedAt"),
}
BODY = {"kind": "webhook", "url": "https://example.org/lots", "secret": "s3cret"}


@pytest.fixture
def shop(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def client(shop: Running) -> Iterator[Client]:
    with Client(shop.server.url) as client:
        client.wire_job("shop", "tidy", inputs=["raw"], outputs=["clean"])
        yield client


@pytest.fixture
def penstock(penstock: Terminal, client: Client, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("PENSTOCK_URL", client.url)
    return penstock


def test_every_route_answers_with_its_keys(shop: Running) -> None:
    one = f"{API}/subscribers/pager"
    made = shop.client.put(one, json=BODY)
    assert made.status_code == 200
    assert set(made.json()) == KEYS
    assert made.json()["hasSecret"] is True
    assert "s3cret" not in made.text
    assert shop.client.get(one).json() == made.json()
    assert shop.client.get(f"{API}/subscribers").json() == {"subscribers": [made.json()]}
    assert set(shop.client.delete(one).json()) == KEYS
    assert shop.client.get(one).status_code == 404
    assert shop.client.delete(one).status_code == 404


def test_only_administrators_of_everything_see_them(shop: Running) -> None:
    for key in (shop.key("w", KeyRole.WRITER), shop.key("a", KeyRole.ADMIN, "shop")):
        assert shop.client.get(f"{API}/subscribers", headers=key).status_code == 403
        answer = shop.client.put(f"{API}/subscribers/x", json=BODY, headers=key)
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "changes",
    [{"kind": "mail"}, {"url": "file:///etc/passwd"}, {"url": 1}, {"after": -1}, {"secret": ""}],
)
def test_what_cannot_be_is_refused(shop: Running, changes: dict[str, object]) -> None:
    answer = shop.client.put(f"{API}/subscribers/x", json={**BODY, **changes})
    assert answer.status_code == 422
    assert shop.client.get(f"{API}/subscribers").json() == {"subscribers": []}


@pytest.mark.parametrize("kind", ["webhook", "openlineage"])
def test_nobody_is_told_from_an_event_on_that_never_was(shop: Running, kind: str) -> None:
    """Else what happens up to there would pass by without a word."""
    answer = shop.client.put(f"{API}/subscribers/x", json={**BODY, "kind": kind, "after": 5})
    assert answer.status_code == 409
    assert answer.json()["message"].startswith("there is no event 5: the last one is 0")
    assert shop.client.get(f"{API}/subscribers").json() == {"subscribers": []}


def test_a_server_delivers_and_shows_how_far_it_is(client: Client) -> None:
    with Web() as web:
        client.set_subscriber("pager", "webhook", web.on("/lots", status(500), status(200)))
        client.register_lots("shop", "raw", ["1", "2"])
        until(lambda: client.subscriber("pager").failures == 1)
        behind = client.subscriber("pager")
        assert (behind.cursor, behind.lag) == (0, 2)
        assert behind.waiting_since is not None
        assert behind.next_try_at is not None
        assert behind.last_error is not None
        assert "was answered 500" in behind.last_error
        until(lambda: client.subscriber("pager").cursor == 2)
        there = client.subscriber("pager")
        assert (there.lag, there.waiting_since, there.failures) == (0, None, 0)
        assert there.last_delivered_at is not None


def test_another_penstock_receives_our_runs(client: Client, tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path / 'other.db'}") as other, Client(other.server.url) as there:
        client.set_subscriber("other", "openlineage", other.server.url)
        client.register_lots("shop", "raw", ["7"])
        [claim] = client.claims("shop/tidy")
        with claim:
            pass
        until(lambda: client.subscriber("other").cursor == 1)
        mine, theirs = client.run(claim.id), there.run(claim.id)
        assert theirs.state == "COMPLETED"
        assert theirs.job == mine.job
        assert (theirs.started_at, theirs.ended_at) == (mine.started_at, mine.ended_at)
        assert [v.dataset_version_id.name for v in theirs.input_dataset_versions] == ["raw"]
        assert [v.dataset_version_id.name for v in theirs.output_dataset_versions] == ["clean"]
        assert theirs.facets["penstock_lot"]["lot"] == "7"
        assert there.lot("shop", "clean", "7").status == "READY"


def test_the_command_line_sets_lists_and_deletes(
    penstock: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    given = ("pager", "--kind", "webhook", "--url", "https://example.org/lots")
    made = penstock("subscribers", "set", *given, "--secret-file", "secret", "--json").document
    assert made["hasSecret"] is True
    monkeypatch.setattr(sys, "stdin", io.StringIO("other"))
    narrowed = ("--namespace", "shop", "--dataset", "raw", "--after", "0")
    text = penstock("subscribers", "set", *given, "--secret-file", "-", *narrowed).text
    assert "events after 0" in text
    listed = penstock("subscribers", "list").text
    assert "pager" in listed
    assert "shop/raw" in listed
    assert [s["name"] for s in penstock("subscribers", "list", "--json").document["subscribers"]]
    assert "https://example.org/lots" in penstock("subscribers", "show", "pager").text
    without = penstock("subscribers", "set", *given, "--no-secret", "--json").document
    assert without["hasSecret"] is False
    both = penstock("subscribers", "set", *given, "--no-secret", "--secret-file", "secret")
    assert "omit one of them" in both.complaint
    assert "is deleted" in penstock("subscribers", "delete", "pager").text
    assert "no subscriber 'pager'" in penstock("subscribers", "delete", "pager").complaint


def test_the_command_line_follows(penstock: Terminal, client: Client) -> None:
    client.register_lots("shop", "raw", ["1", "2"])
    lines = penstock("events", "follow", "--after", "0", "--count", "2").text.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert "published shop/raw 1 (complete)" in lines[0]
    asked = ("--after", "1", "--count", "1", "--namespace", "shop", "--dataset", "raw", "--json")
    assert json.loads(penstock("events", "follow", *asked).text)["lot"] == "2"


def test_pruning_forgets_old_events_of_lots(
    penstock: Terminal, shop: Running, client: Client
) -> None:
    client.register_lots("shop", "raw", ["1", "2"])
    prune = ("prune", "--older-than", "1s", "--database", shop.plane.settings.database, "--json")
    until(lambda: penstock(*prune, "--dry-run").document["lotEvents"] == 2)
    assert penstock(*prune, "--yes").document["lotEvents"] == 2
    assert penstock(*prune, "--yes").document["lotEvents"] == 0


def test_metrics_tell_what_waits_and_name_nothing(shop: Running, client: Client) -> None:
    with Web() as web:
        secret = f"{web.on('/', status(500))}secretpath"
        client.set_subscriber("secretname", "webhook", secret)
        client.register_lots("shop", "raw", ["1", "2", "3"])
        [claim] = client.claim_lots("shop", "tidy", owner="me").claims
        until(lambda: client.subscriber("secretname").failures > 0)
        told = client.metrics()
    assert claim.lot == "1"
    assert 'penstock_open_lots{state="ready"} 2.0' in told
    assert 'penstock_open_lots{state="running"} 1.0' in told
    assert 'penstock_open_lots{state="held"} 0.0' in told
    assert 'penstock_subscribers{state="failing"} 1.0' in told
    assert "secret" not in told
    for state in ("ready", "running"):
        [age] = re.findall(rf'penstock_oldest_lot_seconds{{state="{state}"}} (.*)', told)
        assert 0 < float(age) < 3600


def test_a_database_that_does_not_answer_leaves_the_other_metrics_alone(
    shop: Running, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*args: object) -> None:
        raise Unavailable("it does not answer; try again")

    monkeypatch.setattr(shop.plane.database, "read", gone)
    text = client.metrics()
    assert "penstock_open_lots{" not in text
    assert "penstock_queue_length" in text
