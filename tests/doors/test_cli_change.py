"""Commands that change something: against a real server, with and without keys."""

import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.cli.catalog import emit
from penstock.client import ApiError, Client, Unreachable
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import BatchResult, BatchSummary, FailedEvent
from tests.doors.commands import Terminal
from tests.doors.serving import Running, post, run_event, running


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def penstock(penstock: Terminal, server: Running, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PENSTOCK_URL", server.server.url)
    return penstock


def _write(path: Path, *events: object) -> str:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return str(path)


def test_emit_sends_one_event_to_a_line(penstock: Terminal, tmp_path: Path) -> None:
    runs = [run_event(f"r{number}") for number in range(450)]
    file = _write(tmp_path / "events.ndjson", *runs)
    assert penstock("emit", file).text == "450 events received, 0 refused\n"
    assert penstock("events", "list", "--json").document["totalCount"] == 450


def test_emit_sends_a_list_and_a_single_event(penstock: Terminal, tmp_path: Path) -> None:
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps([run_event("a"), run_event("b")], indent=2))
    assert penstock("emit", str(listed), "--json").document == {"sent": 2, "refused": []}
    single = tmp_path / "single.json"
    single.write_text(json.dumps(run_event("c"), indent=2))
    assert penstock("emit", str(single), "--json").document["sent"] == 1
    empty = tmp_path / "empty.json"
    empty.touch()
    assert penstock("emit", str(empty), "--json").document["sent"] == 0


def test_emit_reads_stdin(penstock: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps(run_event()).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert penstock("emit", "-").text == "1 event received, 0 refused\n"


def test_emit_names_each_event_that_is_refused(penstock: Terminal, tmp_path: Path) -> None:
    file = _write(tmp_path / "e", run_event("a"), {"eventTime": "soon"}, run_event("b"))
    done = penstock("emit", file)
    assert done.code == 1
    assert done.out == "2 events received, 1 refused\n"
    assert "event 2 was refused" in done.complaint


def test_emit_refuses_what_is_not_json(penstock: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "e"
    file.write_text("{ not json")
    assert penstock("emit", str(file)).code == 2
    file.write_text(json.dumps(run_event()) + "\nnot json\n")
    done = penstock("emit", str(file))
    assert (done.code, "line 2" in done.complaint) == (2, True)
    file.write_text(json.dumps(run_event()) + '\n{"producer": "\\ud800"}\n')
    assert (
        "line 2 is not JSON: it holds half of a surrogate pair" in penstock("emit", str(file)).err
    )
    done = penstock("emit", str(tmp_path / "missing"))
    assert (done.code, "missing cannot be read" in done.complaint) == (2, True)


def test_emit_that_ends_early_says_what_was_received_and_what_refused(
    penstock: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emit, "BATCH_EVENTS_MAX", 1)
    file = tmp_path / "e"
    events = (run_event("a"), {"eventTime": "soon"}, run_event("b"))
    file.write_text("\n".join([*map(json.dumps, events), "not json"]))
    done = penstock("emit", str(file))
    assert done.code == 2
    refused, received, complaint = done.err.splitlines()
    assert "event 2 was refused" in refused
    assert received == "of the first 2 events: 1 received, 1 refused; then sending stopped"
    assert "line 4 is not JSON" in complaint


def test_delete_and_restore_a_dataset(penstock: Terminal, tmp_path: Path) -> None:
    penstock("emit", _write(tmp_path / "e", run_event()))
    assert "dataset food/clean is deleted" in penstock("datasets", "delete", "clean").text
    gone = penstock("datasets", "show", "clean")
    assert (gone.code, "clean" in gone.complaint) == (1, True)
    assert "is restored" in penstock("datasets", "restore", "food/clean").text
    assert penstock("datasets", "show", "clean", "--json").document["deleted"] is False
    deleted = penstock("datasets", "delete", "dataset:food:clean", "--json").document
    assert deleted["deleted"] is True
    restored = penstock("datasets", "restore", "clean", "--namespace", "food", "--json")
    assert restored.document["deleted"] is False


def test_delete_and_restore_a_job_and_see_it_on_record(penstock: Terminal, tmp_path: Path) -> None:
    penstock("emit", _write(tmp_path / "e", run_event()))
    assert "job food/etl is deleted" in penstock("jobs", "delete", "etl").text
    assert penstock("jobs", "list", "--json").document["totalCount"] == 0
    assert "is restored" in penstock("jobs", "restore", "food/etl").text
    assert penstock("jobs", "list", "--json").document["totalCount"] == 1
    entries = penstock("audit", "--json").document["entries"]
    assert [entry["action"] for entry in entries] == ["job restore", "job delete"]
    assert "job delete" in penstock("audit").text
    for filters, found in (
        (["--action", "delete"], ["job delete"]),
        (["--who", "local", "--since", "2026-01-01T00:00:00Z"], ["job restore", "job delete"]),
        (["--who", "somebody"], []),
        (["--since", "2999-01-01T00:00:00Z"], []),
    ):
        entries = penstock("audit", "--json", *filters).document["entries"]
        assert [entry["action"] for entry in entries] == found


def test_tag_a_dataset_and_a_field(penstock: Terminal, tmp_path: Path) -> None:
    penstock("emit", _write(tmp_path / "e", run_event(eventType="COMPLETE")))
    assert "is tagged gold" in penstock("datasets", "tag", "clean", "gold").text
    tagged = penstock("datasets", "tag", "clean", "pii", "--field", "b", "--json").document
    assert tagged["tags"] == ["gold"]
    assert tagged["fields"][0]["tags"] == ["pii"]
    assert "pii" in penstock("datasets", "show", "clean").text
    off = penstock("datasets", "tag", "clean", "gold", "--remove", "--json").document
    assert off["tags"] == []


def test_a_number_beyond_a_double_hides_nothing(penstock: Terminal, server: Running) -> None:
    huge = json.dumps(run_event(eventType="COMPLETE")).replace("{}", '{"huge": {"a": 1e999}}')
    assert server.client.post("/api/v1/lineage", content=huge).status_code == 201
    for command in (
        ["jobs", "list"],
        ["jobs", "show", "food/etl"],
        ["jobs", "runs", "food/etl"],
        ["runs", "list"],
        ["events", "list"],
        ["datasets", "list"],
    ):
        assert penstock(*command).text
        assert penstock(*command, "--json").document
    with Client(server.server.url) as client:
        assert client.job("food", "etl").facets["huge"] == {"a": float("inf")}


def test_a_key_comes_from_the_environment(
    penstock: Terminal,
    server: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = server.key("reader", KeyRole.READER)["authorization"].removeprefix("Bearer ")
    monkeypatch.setenv("PENSTOCK_API_KEY", reader)
    assert penstock("namespaces", "list").code == 0
    refused = penstock("emit", _write(tmp_path / "e", run_event()))
    assert refused.code == 1
    assert "needs a writer" in refused.complaint
    refused = penstock("jobs", "delete", "etl", "--namespace", "food")
    assert "needs an admin" in refused.complaint
    monkeypatch.setenv("PENSTOCK_API_KEY", "pk_wrong")
    refused = penstock("namespaces", "list")
    assert (refused.code, "unknown or was revoked" in refused.complaint) == (1, True)
    monkeypatch.setenv("PENSTOCK_API_KEY", f"{reader}\n")
    assert penstock("namespaces", "list").code == 0
    monkeypatch.setenv("PENSTOCK_API_KEY", "nökey")
    refused = penstock("namespaces", "list")
    assert (refused.code, "the API key cannot be sent" in refused.complaint) == (2, True)


def test_a_key_for_one_namespace_names_things_by_it(
    penstock: Terminal,
    server: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    penstock("emit", _write(tmp_path / "e", run_event()))
    key = server.key("team", KeyRole.READER, "food")["authorization"].removeprefix("Bearer ")
    monkeypatch.setenv("PENSTOCK_API_KEY", key)
    shown = penstock("datasets", "show", "clean", "--namespace", "food", "--json").document
    assert shown["name"] == "clean"
    assert penstock("jobs", "show", "etl", "-n", "food").code == 0
    assert penstock("audit").code == 1


def test_the_client_carries_the_code_and_the_message(server: Running) -> None:
    with Client(server.server.url) as client:
        with pytest.raises(ApiError, match="no dataset") as refused:
            client.dataset("no", "where")
        assert refused.value.code == 404
        assert refused.value.message == str(refused.value)
        client.emit(run_event(eventType="COMPLETE"))
        assert client.dataset("food", "clean").current_version_number == 1
        assert client.dataset_version("food", "clean", "V1").is_current
        assert client.sources().sources
        client.tag_dataset("food", "clean", "gold")
        assert [tag.name for tag in client.tags().tags] == ["gold"]
        assert client.delete_namespace("food").is_hidden
        assert not client.restore_namespace("food").is_hidden


def test_the_client_says_how_to_start_a_server_that_is_not_there() -> None:
    nobody = Client("http://127.0.0.1:9", retry_seconds=0)
    with nobody as client, pytest.raises(Unreachable) as missed:
        client.namespaces()
    assert "cannot reach http://127.0.0.1:9" in str(missed.value)
    assert "penstock serve" in str(missed.value)


class _Flaky:
    """A server that first has no room, then takes some events, then all."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def emit_batch(self, events: list[bytes]) -> BatchResult:
        self.calls.append(len(events))
        if len(self.calls) == 1:
            raise ApiError(429, "full", retry_after_seconds=0)
        failed: tuple[FailedEvent, ...] = ()
        if len(self.calls) == 2:
            failed = (FailedEvent(0, "bad", False), FailedEvent(2, "busy", True))
        count = len(failed)
        summary = BatchSummary(len(events), len(events) - count, count, 0, 0)
        return BatchResult("partial_success", summary, failed)


def test_emit_sends_again_what_there_was_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    flaky = _Flaky()
    batch = [emit.Numbered(place, b"{}") for place in (7, 8, 9)]
    refused = emit.send(flaky, batch)  # type: ignore[arg-type]
    assert refused == [emit.Refused(7, "bad")]
    assert flaky.calls == [3, 3, 1]
    assert len(waits) == 2


def test_a_run_whose_end_nobody_reports_is_aborted(penstock: Terminal, server: Running) -> None:
    post(server.client, run_event("left"))
    [run] = penstock("runs", "list", "--state", "RUNNING", "--json").document["runs"]
    done = penstock("runs", "abort", run["id"])
    assert done.text.startswith(f"run {run['id']} of ")
    assert done.text.endswith(" is ABORTED\n")
    again = penstock("runs", "abort", run["id"], "--json")
    assert (again.code, again.document["state"]) == (0, "ABORTED")
    assert penstock("runs", "list", "--state", "RUNNING", "--json").document["runs"] == []
    post(server.client, run_event("whole", eventType="COMPLETE"))
    [ended] = penstock("runs", "list", "--state", "COMPLETED", "--json").document["runs"]
    refused = penstock("runs", "abort", ended["id"])
    assert refused.code == 1
    assert "COMPLETED" in refused.complaint
    assert "ABORTED" in refused.complaint
