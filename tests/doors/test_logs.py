"""What the processes log: each line says which lot, run, job, dataset and batch it is about."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Client
from penstock.schema.admin import KeyRole
from tests.databases import sqlite_database
from tests.doors.waiting import until
from tests.running import ServerProcess

ARCS = """
import logging

log = logging.getLogger("workload")

def add(context):
    log.warning("adding up")
    if context.uris[0].endswith("bad.txt"):
        raise ValueError("it is torn")
    context.write("sum", b"1")
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    """Everything in one process, in a folder that has the functions of arcs."""
    (tmp_path / "sums.py").write_text(ARCS)
    monkeypatch.chdir(tmp_path)
    process = ServerProcess.start(
        sqlite_database(tmp_path / "penstock.db"),
        "up",
        objects=(tmp_path / "objects").as_uri(),
        ingest_folder=tmp_path / "ingest",
        log_level="debug",
    )
    yield process
    process.kill()


def lines(server: ServerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log().splitlines()]


def about(server: ServerProcess, words: str) -> dict[str, Any]:
    """The last line with these words."""
    return next(line for line in reversed(lines(server)) if words in line["message"])


def submit(server: ServerProcess, folder: Path, name: str) -> str:
    """Deposit a file: the batch that it is."""
    path = folder / name
    path.write_text("some words")
    places = {"places": [f"{folder.as_uri()}/"]}
    with server.client() as client:
        body = {"namespace": "shop", "dataset": "scans", **places}
        client.put("/api/v1/ingest/collections/scans", json=body).raise_for_status()
        told = {"collection": "scans", "url": path.as_uri()}
        answer = client.post("/api/v1/ingest/batches", json=told)
    return str(answer.json()["id"])


def has(line: Mapping[str, str], **ids: str) -> bool:
    return all(line.get(name) == text for name, text in ids.items())


def test_a_deposit_can_be_followed_by_its_lines(server: ServerProcess, tmp_path: Path) -> None:
    with Client(server.url) as client:
        wired = {"inputs": [{"dataset": "scans"}], "outputs": [{"dataset": "sums"}]}
        client.put_arc("shop", "add", {**wired, "workload": {"function": "sums:add"}})
        good = submit(server, tmp_path, "good.txt")
        until(lambda: client.arc("shop", "add").counts.complete == 1)
        bad = submit(server, tmp_path, "bad.txt")
        until(lambda: f"lot {bad} of add failed" in server.log())

    of_ingest = {"batch": good, "lot": good, "job": "shop/ingest.scans", "dataset": "shop/scans"}
    assert has(about(server, f"batch {good} was submitted"), **of_ingest)
    assert has(about(server, f"batch {good} of 1 jobs is processing"), **of_ingest)
    completed = about(server, "notify → completed")
    assert has(about(server, f"batch {good} of 1 jobs is completed"), **of_ingest)
    assert set(completed) >= {"batch", "lot", "job", "dataset", "run", "ingest_job"}
    assert about(server, "pending → estimating")["level"] == "debug"
    assert completed["level"] == "info"

    of_arc = {"lot": good, "job": "shop/add", "arc": "add"}
    claimed = about(server, f"lot {good} is claimed")
    published = about(server, f"lot {good} of add is published")
    assert has(claimed, **of_arc, dataset="shop/sums")
    assert has(published, **of_arc, run=claimed["run"])
    said = [line for line in lines(server) if line["message"] == "adding up"]
    assert has(said[0], **of_arc, run=claimed["run"], logger="workload")
    assert has(about(server, f"lot {bad} of add failed"), lot=bad, level="warning")


def test_a_request_that_fails_says_which_and_whose(server: ServerProcess) -> None:
    key = server.key(KeyRole.READER)
    with server.client() as client:
        route = "/api/v1/namespaces/shop/datasets/nothing/lots/1"
        assert client.get(route, headers={"authorization": f"Bearer {key}"}).status_code == 404
        assert client.get("/nowhere").status_code == 404
    until(lambda: server.log().count('"404"') == 2)
    known, unknown = [line for line in lines(server) if line.get("status") == "404"]
    assert known["client"] == unknown["client"] == "127.0.0.1"
    assert known["route"] == "GET /api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}"
    assert has(known, status="404", level="info")
    assert known["key"].startswith("test ")
    assert key not in server.log()
    assert unknown["level"] == "debug"
