"""What commands take a name for: what they change has it exactly, what they show may be like it."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.cli import targets
from penstock.schema.admin import KeyRole
from tests.doors.commands import Terminal
from tests.doors.serving import Running, post, run_event, running

SCHEMA = "https://openlineage.io/spec/facets/1-1-1/SchemaDatasetFacet.json"
LINKS = "https://openlineage.io/spec/facets/1-0-0/SymlinksDatasetFacet.json"


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def penstock(penstock: Terminal, server: Running, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PENSTOCK_URL", server.server.url)
    return penstock


def _facet(schema: str, **content: Any) -> dict[str, Any]:
    return {"_producer": "https://example.org/tests", "_schemaURL": schema, **content}


def _tell(server: Running, job: str, *datasets: str) -> None:
    """Have a job write datasets; all are named NAMESPACE/NAME."""
    outputs = [dict(zip(("namespace", "name"), each.split("/"), strict=True)) for each in datasets]
    at, name = job.split("/")
    made = run_event(job, eventType="COMPLETE", job={"namespace": at, "name": name}, inputs=[])
    post(server.client, {**made, "outputs": outputs})


def _bank(server: Running) -> None:
    _tell(server, "bank/load_payments_daily", "bank/payments_2026", "bank/other")
    fields = [{"name": "stripes", "type": "INT", "description": "of a zebra"}]
    people = {"namespace": "hr", "name": "people"}
    facets = {"schema": _facet(SCHEMA, fields=fields)}
    post(server.client, run_event("hr", inputs=[], outputs=[{**people, "facets": facets}]))


@pytest.mark.parametrize(
    ("command", "name", "meant"),
    [
        (["datasets", "delete"], "bank/payments", "bank/payments_2026"),
        (["datasets", "delete"], "payments", "bank/payments_2026"),
        (["datasets", "delete"], "zebra", "hr/people"),
        (["datasets", "tag"], "bank/oth", "bank/other"),
        (["jobs", "delete"], "bank/load_payments", "bank/load_payments_daily"),
        (["datasets", "hold", "--why", "test"], "bank/payments", "bank/payments_2026"),
        (["jobs", "hold", "--why", "test"], "load_payments", "bank/load_payments_daily"),
        (["datasets", "release", "--why", "test"], "zebra", "hr/people"),
        (["jobs", "release", "--why", "test"], "load", "bank/load_payments_daily"),
        (["lots", "register"], "bank/payments", "bank/payments_2026"),
        (["lots", "hold", "--why", "test"], "bank/payments", "bank/payments_2026"),
        (["lots", "release", "--why", "test"], "bank/payments", "bank/payments_2026"),
        (["lots", "remove", "--why", "test", "--yes"], "zebra", "hr/people"),
        (["work", "resubmit", "--why", "test"], "bank/load", "bank/load_payments_daily"),
        (["work", "hold", "--why", "test"], "bank/load", "bank/load_payments_daily"),
        (["claims", "end", "--why", "test"], "load", "bank/load_payments_daily"),
        (["quality", "accept", "--why", "test"], "bank/oth", "bank/other"),
        (["jobs", "wire"], "load_payments", "bank/load_payments_daily"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_is_to_be_changed_is_named_exactly(
    penstock: Terminal, server: Running, command: list[str], name: str, meant: str
) -> None:
    _bank(server)
    is_whole = command[0] in ("datasets", "jobs") and command[1] != "tag"
    argument = [] if is_whole else ["gold"]
    before = _everything(server)
    refused = penstock(*command, name, *argument)
    assert refused.code == 1
    assert f"there is no {'job' if 'load' in name else 'dataset'} {name!r}" in refused.complaint
    assert f"did you mean {meant}?" in refused.complaint
    assert _everything(server) == before


def _everything(server: Running) -> list[Any]:
    paths = ("search?q=a&limit=100", "namespaces/bank/datasets", "jobs", "audit")
    return [server.client.get(f"/api/v1/{path}").text for path in paths]


def test_a_replay_is_shown_and_done_of_what_is_named_exactly(
    penstock: Terminal, server: Running
) -> None:
    _bank(server)
    for more in ((), ("--yes", "--why", "test")):
        refused = penstock("replays", "start", "--dataset", "bank/payments", "--lot", "1", *more)
        assert (refused.code, "did you mean bank/payments_2026?" in refused.complaint) == (1, True)
        refused = penstock("replays", "start", "--job", "load", "--job-version", "1", *more)
        assert "did you mean bank/load_payments_daily?" in refused.complaint


def test_what_is_deleted_comes_back_by_its_own_name(penstock: Terminal, server: Running) -> None:
    _tell(server, "n/J", "d/A", "d/A2", "d/A3")
    _tell(server, "n/jb")
    assert "job n/J is deleted" in penstock("jobs", "delete", "n/J").text
    assert "job n/J is restored" in penstock("jobs", "restore", "n/J").text
    assert "dataset d/A is deleted" in penstock("datasets", "delete", "d/A").text
    assert "dataset d/A is restored" in penstock("datasets", "restore", "d/A").text
    assert "dataset d/A is deleted" in penstock("datasets", "delete", "dataset:d:A").text
    assert "dataset d/A is restored" in penstock("datasets", "restore", "dataset:d:A").text


def test_a_plain_name_brings_nothing_back(penstock: Terminal, server: Running) -> None:
    _tell(server, "n/J", "d/A")
    _tell(server, "other/J", "other/A")
    for kind, name in (("jobs", "n/J"), ("datasets", "d/A")):
        penstock(kind, "delete", name)
        refused = penstock(kind, "restore", name.split("/")[1])
        assert (refused.code, "NAMESPACE/NAME" in refused.complaint) == (2, True)
        missed = penstock(kind, "restore", "n/nothing")
        assert (missed.code, "there is no" in missed.complaint) == (1, True)


def test_what_is_deleted_is_not_taken_for_what_is_like_it(
    penstock: Terminal, server: Running
) -> None:
    _tell(server, "n/J", "d/A")
    _tell(server, "n/J2", "d/A2")
    penstock("datasets", "delete", "d/A")
    penstock("jobs", "delete", "n/J")
    for command in (["datasets", "show", "d/A"], ["jobs", "show", "n/J"]):
        gone = penstock(*command)
        assert (gone.code, "deleted" in gone.complaint) == (1, True)
    assert penstock("lineage", "d/A").text.startswith("■ A ")
    again = penstock("datasets", "delete", "d/A")
    assert "dataset d/A is deleted" in again.text


def test_who_only_looks_may_name_things_loosely(penstock: Terminal, server: Running) -> None:
    _bank(server)
    assert "payments_2026" in penstock("datasets", "show", "bank/payments").text
    assert "people" in penstock("datasets", "show", "zebra").text
    assert "load_payments_daily" in penstock("jobs", "show", "load_payments").text


def test_a_name_that_two_namespaces_have_changes_neither(
    penstock: Terminal, server: Running
) -> None:
    _tell(server, "a/etl", "a/clean")
    _tell(server, "b/etl", "b/clean")
    for command in (["datasets", "delete", "clean"], ["jobs", "delete", "etl"]):
        refused = penstock(*command)
        assert (refused.code, "is ambiguous" in refused.complaint) == (1, True)
    assert "a/clean is deleted" in penstock("datasets", "delete", "a/clean").text


def test_a_name_that_can_be_read_twice_is_never_taken_for_the_other(
    penstock: Terminal, server: Running
) -> None:
    twice = [{"namespace": "a", "name": "b/c"}, {"namespace": "a/b", "name": "c"}]
    twice += [{"namespace": "x", "name": "y:z"}, {"namespace": "x:y", "name": "z"}]
    post(server.client, run_event(eventType="COMPLETE", inputs=[], outputs=twice))
    refused = penstock("datasets", "delete", "a/b/c")
    assert "dataset:a:b/c or dataset:a/b:c" in refused.complaint
    refused = penstock("datasets", "delete", "dataset:x:y:z")
    assert "write --namespace x y:z or --namespace x:y z" in refused.complaint
    assert penstock("datasets", "delete", "b/c", "--namespace", "a").code == 0
    assert '"a/b"' in penstock("datasets", "show", "a/b/c", "--json").text
    assert penstock("datasets", "delete", "a/b/c").code == 1
    assert "dataset a/b/c is restored" in penstock("datasets", "restore", "a/b/c").text
    assert penstock("datasets", "show", "b/c", "--namespace", "a").code == 0


def test_a_plain_name_among_too_many_changes_nothing(
    penstock: Terminal, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tell(server, "a/etl", "a/clean", "b/clean2")
    monkeypatch.setattr(targets, "SEARCH_MAX", 1)
    refused = penstock("datasets", "delete", "clean")
    assert (refused.code, "write NAMESPACE/NAME" in refused.complaint) == (1, True)


def test_a_second_name_is_a_name(penstock: Terminal, server: Running) -> None:
    second = {"namespace": "hive://m", "name": "db.tbl", "type": "TABLE"}
    facets = {"symlinks": _facet(LINKS, identifiers=[second])}
    table = {"namespace": "s3://b", "name": "wh/tbl", "facets": facets}
    post(server.client, run_event(eventType="COMPLETE", inputs=[], outputs=[table]))
    for name in ("hive://m/db.tbl", "dataset:hive://m:db.tbl", "s3://b/wh/tbl", "wh/tbl"):
        shown = penstock("datasets", "show", name, "--json").document
        assert (shown["namespace"], shown["name"]) == ("s3://b", "wh/tbl")
        assert "■ wh/tbl" in penstock("lineage", name).text
        assert "is tagged gold" in penstock("datasets", "tag", name, "gold").text


def test_a_key_for_one_namespace_is_told_what_it_may_not_see(
    penstock: Terminal, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    _bank(server)
    post(server.client, run_event(outputs=[{"namespace": "s3://b", "name": "wh/tbl"}]))
    for namespace, name in (("bank", "bank/other"), ("s3://b", "s3://b/wh/tbl")):
        key = server.key(namespace, KeyRole.READER, namespace)["authorization"]
        monkeypatch.setenv("PENSTOCK_API_KEY", key.removeprefix("Bearer "))
        assert penstock("datasets", "show", name).code == 0
        refused = penstock("datasets", "show", "hr/people")
        assert (refused.code, "namespace" in refused.complaint) == (1, True)
        missed = penstock("datasets", "show", f"{namespace}/nothing")
        assert "there is no dataset" in missed.complaint
