"""Commands about lots, locks and work: against a real server on each database."""

import hashlib
import io
import json
import sys
from collections.abc import Iterator

import pytest

from penstock.client import Client
from penstock.clock import parse_time
from penstock.schema.admin import KeyRole
from tests.doors.commands import Terminal
from tests.doors.serving import Running, running

LOTS = ["1", "2", "3"]


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(server.server.url) as client:
        yield client


@pytest.fixture
def penstock(penstock: Terminal, client: Client, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal; job shop/clean reads shop/raw and writes shop/clean_orders, mart reads that."""
    monkeypatch.setenv("PENSTOCK_URL", client.url)
    client.wire_job("shop", "clean", inputs=["raw"], outputs=["clean_orders"])
    client.wire_job("shop", "mart", inputs=["clean_orders"], outputs=["revenue"])
    client.register_lots("shop", "raw", LOTS)
    return penstock


def test_a_job_is_wired_and_told_how_to_work(penstock: Terminal) -> None:
    flags = ["--lease", "30", "--tries", "3", "--back-off", "0", "--enforced"]
    named = ["--input", "raw", "--input", "s3://lake/rates", "--output", "out"]
    wiring = penstock("jobs", "wire", "shop/new", *named, *flags, "--json").document
    assert [i["name"] for i in wiring["inputs"]] == ["raw", "rates"]
    assert (wiring["leaseSeconds"], wiring["triesMax"], wiring["backOffSeconds"]) == (30, 3, 0)
    assert wiring["enforced"] is True
    again = penstock("jobs", "wire", "new", "--tries", "4").text
    assert "shop/raw, s3://lake/rates" in again
    assert "30 s" in again
    assert penstock("jobs", "wire", "new", "--no-enforced", "--json").document["enforced"] is False


def test_a_job_that_resembles_another_is_not_taken_for_it(penstock: Terminal) -> None:
    for text in ("cle", "lean"):
        refused = penstock("jobs", "wire", text, "--tries", "4")
        assert refused.code == 1
        assert f"there is no job '{text}'" in refused.complaint
    assert penstock("jobs", "wire", "job:shop:clean", "--tries", "4").code == 0
    assert penstock("jobs", "wire", "nothing", "--tries", "4").code == 1


def test_lots_are_registered_by_name_and_from_stdin(
    penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert penstock("lots", "register", "raw", "3", "4").text == "1 lot of shop/raw registered\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("5\n6\n\n"))
    assert penstock("lots", "register", "raw", "-", "--json").document == {"registered": 2}
    done = penstock("lots", "register", "raw", "1", "--renew", "--priority", "7", "--json")
    assert done.document == {"registered": 1}
    assert penstock("lots", "register", "raw").code == 2
    assert penstock("lots", "register", "raw", "a/b").code == 1
    assert "slash" in penstock("lots", "register", "raw", "a/b").complaint


def test_lots_are_listed_and_shown(penstock: Terminal, client: Client) -> None:
    listed = penstock("lots", "list", "raw", "--json").document
    assert [lot["lot"] for lot in listed["lots"]] == LOTS
    assert listed["totalCount"] == 3
    few = penstock("lots", "list", "raw", "--limit", "2")
    assert "outside" in few.text
    assert "2 of 3 shown" in few.err
    for claim in client.claims("shop/clean"):
        claim.complete()
    made = penstock("lots", "show", "clean_orders", "2")
    assert "shop/clean" in made.text
    assert "READY" in made.text
    shown = penstock("lots", "show", "raw", "2", "--json").document
    assert [consumer["status"] for consumer in shown["consumers"]] == ["DONE"]
    assert "read by" in penstock("lots", "show", "raw", "2").text


def test_claims_are_listed_with_their_locks(penstock: Terminal, client: Client) -> None:
    assert penstock("claims", "list").text == "there are no claims\n"
    claim = next(iter(client.claims("shop/clean", owner="ann")))
    shown = penstock("claims", "list").text
    for part in ("shop/clean", "ann", "raw (local)", "clean_orders (read and write)"):
        assert part in shown
    (lock,) = penstock("claims", "list", "--json").document["locks"]
    assert (lock["lot"], lock["claim"], lock["token"]) == ("1", claim.id, claim.token)
    for filters in (["--job", "clean"], ["--dataset", "shop/clean_orders"], ["--lot", "1"]):
        assert penstock("claims", "list", *filters, "--json").document["totalCount"] == 1
    for filters in (["--job", "mart"], ["-n", "other"], ["--lot", "2"]):
        assert penstock("claims", "list", *filters, "--json").document["totalCount"] == 0
    assert penstock("claims", "list", "--job", "clean", "--dataset", "raw").code == 2


def test_why_goes_down_to_the_root_cause(penstock: Terminal, client: Client) -> None:
    next(iter(client.claims("shop/clean", owner="ann"))).fail("no disk")
    told = penstock("why", "mart", "1").text
    assert "shop/clean_orders" in told
    assert "no disk" in told
    found = penstock("why", "shop/mart", "1", "--json").document
    assert found["runnable"] is False
    assert found["causes"][0]["job"] == "clean"
    assert "can work on lot 2" in penstock("why", "clean", "2", "--namespace", "shop").text
    assert penstock("why", "nobody", "2").code == 1


def test_work_is_listed_by_state(penstock: Terminal, client: Client) -> None:
    next(iter(client.claims("shop/clean", owner="ann")))
    next(iter(client.claims("shop/clean", owner="ann"))).fail("no disk")
    shown = penstock("work", "list", "clean").text
    for part in ("RUNNING", "ann", "RETRYABLE", "no disk", "READY", "1 of 5"):
        assert part in shown
    late = penstock("work", "list", "clean", "--state", "RETRYABLE", "--json").document
    assert [work["lot"] for work in late["lots"]] == ["2"]
    assert penstock("work", "list", "clean", "--state", "LOST").code == 2


def test_lots_are_resubmitted_with_a_reason(penstock: Terminal, client: Client) -> None:
    for claim in client.claims("shop/clean"):
        claim.complete()
    assert penstock("work", "resubmit", "clean", "1").code == 2
    told = penstock("work", "resubmit", "clean", "1", "2", "--why", "wrong rates").text
    assert told.splitlines() == [
        "lot 1 of job shop/clean is resubmitted: READY",
        "lot 2 of job shop/clean is resubmitted: READY",
    ]
    (entry, *_) = client.audit().entries
    assert (entry.action, entry.detail) == ("lot resubmit", "wrong rates")
    done = penstock("work", "resubmit", "clean", "3", "--why", "x", "--json").document
    assert [work["state"] for work in done["lots"]] == ["READY"]
    assert penstock("work", "resubmit", "clean", "--why", "x").code == 2


def test_the_audit_log_is_exported_with_its_hashes(penstock: Terminal, client: Client) -> None:
    for claim in client.claims("shop/clean"):
        claim.complete()
    for lot in ("1", "2", "3"):
        client.resubmit("shop", "clean", [lot], why="wrong rates")

    lines = penstock("audit", "export", "--since", "2020-01-01").text.splitlines()

    entries = [json.loads(line) for line in lines]
    assert [entry["action"] for entry in entries] == ["lot resubmit"] * 3
    assert {entry["address"] for entry in entries} == {"127.0.0.1"}
    previous = ""
    for entry in entries:
        at = parse_time(entry["at"])
        parts = [entry[name] for name in ("who", "action", "target", "detail", "address")]
        text = json.dumps([previous, at, *parts], separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert entry["hash"] == previous
    assert penstock("audit", "export", "--since", "2999-01-01").text == ""


def test_work_is_held_released_and_given_a_priority(penstock: Terminal, client: Client) -> None:
    claim = next(iter(client.claims("shop/clean")))
    assert "is unclaimed: READY" in penstock("claims", "end", "clean", "1", "--why", "hangs").text
    assert client.claim(claim.id).state == "ABORTED"
    assert "is held: HELD" in penstock("work", "hold", "clean", "1", "2", "--why", "wait").text
    assert "is released: READY" in penstock("work", "release", "clean", "1", "--why", "go").text
    first = ["work", "priority", "clean", "3", "--priority", "9", "--why", "finance"]
    assert "has priority 9" in penstock(*first).text
    assert penstock(*first, "--json").document["lots"][0]["priority"] == 9
    assert [found.lot for found in client.claims("shop/clean")] == ["3", "1"]
    refused = penstock("claims", "end", "clean", "2", "--why", "x")
    assert (refused.code, "no worker has claimed lot 2" in refused.complaint) == (1, True)


def test_jobs_and_datasets_are_held_and_released(penstock: Terminal, client: Client) -> None:
    assert penstock("jobs", "hold", "clean", "--why", "rates").text == "job shop/clean is held\n"
    again = penstock("jobs", "hold", "clean", "--why", "legal").text
    assert again.startswith("job shop/clean is held\nit was held before, by ")
    assert again.endswith(": rates; one release ends both\n")
    claims = client.claims("shop/clean")
    assert list(claims) == []
    assert claims.why_nothing is not None
    assert claims.why_nothing.held is not None
    assert claims.why_nothing.held.why == "rates"
    assert "rates" in penstock("jobs", "wire", "clean", "--tries", "5").text
    done = penstock("jobs", "release", "clean", "--why", "right", "--json").document
    assert done["held"] is None
    held = penstock("datasets", "hold", "shop/raw", "--why", "disk", "--json").document
    assert held["held"]["why"] == "disk"
    assert list(client.claims("shop/clean")) == []
    assert (
        "dataset shop/raw is released"
        in penstock("datasets", "release", "raw", "--why", "new").text
    )
    assert len(list(client.claims("shop/clean"))) == 3
    assert penstock("jobs", "hold", "clean").code == 2


def test_a_lot_is_held_and_put_back(penstock: Terminal, client: Client) -> None:
    told = penstock("lots", "hold", "raw", "1", "--why", "cut off").text
    assert told == "lot 1 of shop/raw is held: HOLD\n"
    again = penstock("lots", "hold", "raw", "1", "--why", "legal").text
    assert again.startswith("lot 1 of shop/raw is held: HOLD\nit was held before, by ")
    assert again.endswith(": cut off; one release ends both\n")
    assert [claim.lot for claim in client.claims("shop/clean")] == ["2", "3"]
    done = penstock("lots", "release", "raw", "1", "--why", "whole", "--json").document
    assert done["status"] == "READY"


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "release", "clean"],
        ["datasets", "release", "raw"],
        ["lots", "release", "raw", "1"],
        ["work", "release", "clean", "1"],
    ],
)
def test_release_of_a_thing_not_held_is_refused(penstock: Terminal, arguments: list[str]) -> None:
    refused = penstock(*arguments, "--why", "go")

    assert refused.code == 1
    assert refused.out == ""
    assert "is not held, so nothing was changed" in refused.complaint


def test_release_names_the_holds_that_still_stop_a_job(penstock: Terminal) -> None:
    penstock("datasets", "hold", "raw", "--why", "disk")
    penstock("jobs", "hold", "clean", "--why", "rates")

    lines = penstock("jobs", "release", "clean", "--why", "right").text.splitlines()

    assert lines[0] == "job shop/clean is released, but still stopped"
    assert lines[1].startswith("dataset shop/raw is held by local: disk; release it")
    assert lines[1].endswith(": penstock datasets release shop/raw --why REASON")


def test_failed_work_is_retried_with_all_its_tries(penstock: Terminal, client: Client) -> None:
    client.wire_job("shop", "clean", tries_max=2, back_off_seconds=3600)
    next(iter(client.claims("shop/clean", lots=["1"]))).fail("no disk")
    retry = ("work", "retry", "clean", "1", "--why", "the disk is there")

    assert "is retried: READY" in penstock(*retry).text
    client.wire_job("shop", "clean", tries_max=1)
    next(iter(client.claims("shop/clean", lots=["1"]))).fail("no disk")
    refused = penstock("work", "release", "clean", "1", "--why", "go")

    assert refused.code == 1
    assert "penstock work retry shop/clean 1 --why REASON" in refused.complaint
    assert "is retried: READY" in penstock(*retry).text
    assert client.job_lot("shop", "clean", "1").attempts == 0
    refused = penstock(*retry)
    assert (refused.code, "has not failed, it is READY" in refused.complaint) == (1, True)


def test_retry_of_work_on_hold_names_the_release(penstock: Terminal) -> None:
    penstock("work", "hold", "clean", "1", "--why", "wait")

    refused = penstock("work", "retry", "clean", "1", "--why", "go")

    assert refused.code == 1
    assert "penstock work release shop/clean 1 --why REASON" in refused.complaint


def test_released_work_shows_what_it_still_waits_for(penstock: Terminal) -> None:
    penstock("work", "hold", "mart", "1", "--why", "wait")

    text = penstock("work", "release", "mart", "1", "--why", "go").text

    assert "is released: WAITING" in text
    assert "Input shop/clean_orders has no lot 1" in text


def test_a_mistyped_lot_is_removed(penstock: Terminal) -> None:
    remove = ["lots", "remove", "raw", "1", "--why", "mistyped"]
    assert "pass --yes" in penstock(*remove).complaint

    assert penstock(*remove, "--yes").text == "lot 1 of shop/raw is removed: no job had read it\n"

    assert penstock("lots", "show", "raw", "1").code == 1
    assert penstock("check").code == 0


def test_a_lot_that_was_read_is_removed_with_force(penstock: Terminal, client: Client) -> None:
    for claim in client.claims("shop/clean"):
        claim.complete()
    remove = ["lots", "remove", "raw", "1", "--why", "mistyped", "--yes"]
    assert "was read by job shop/clean" in penstock(*remove).complaint

    assert "lot 1 of shop/raw is removed" in penstock(*remove, "--force").text
    assert penstock("check").code == 0


def test_why_lists_the_commands_that_end_each_root(penstock: Terminal) -> None:
    penstock("jobs", "hold", "clean", "--why", "rates")
    penstock("datasets", "hold", "revenue", "--why", "audit")

    text = penstock("why", "mart", "1").text

    _, _, commands = text.partition("what can be done:\n")
    assert sorted(commands.splitlines()) == [
        "  penstock datasets release shop/revenue --why REASON",
        "  penstock jobs release shop/clean --why REASON",
    ]


def test_a_lot_that_does_not_exist_yet_is_held_and_released(penstock: Terminal) -> None:
    assert penstock("lots", "hold", "raw", "77", "--why", "not this one").code == 0
    told = penstock("lots", "release", "raw", "77", "--why", "it may come")
    assert (told.code, told.text) == (0, "lot 77 of shop/raw is released: it does not exist yet\n")
    penstock("lots", "hold", "raw", "77", "--why", "again")
    done = penstock("lots", "release", "raw", "77", "--why", "it may", "--json").document
    assert (done["status"], done["since"]) == (None, None)


def test_the_log_is_of_a_lot_a_job_or_a_run(penstock: Terminal, client: Client) -> None:
    claim = next(iter(client.claims("shop/clean", owner="ann")))
    claim.complete()
    for whose in (["raw", "1"], ["--job", "clean"], ["--run", claim.run_id]):
        entries = penstock("lots", "log", *whose, "--json").document["entries"]
        assert [entry["action"] for entry in entries][:2] == ["complete", "claim"]
    assert "ann" in penstock("lots", "log", "clean_orders", "1").text
    for wrong in ([], ["raw"], ["raw", "1", "--job", "clean"]):
        assert penstock("lots", "log", *wrong).code == 2


def test_a_reader_may_look_and_a_writer_may_not_resubmit(
    penstock: Terminal, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = server.key("w", KeyRole.WRITER)["authorization"].removeprefix("Bearer ")
    monkeypatch.setenv("PENSTOCK_API_KEY", key)
    assert penstock("lots", "register", "raw", "7").code == 0
    refused = penstock("work", "hold", "clean", "7", "--why", "x")
    assert (refused.code, "needs a" in refused.complaint) == (1, True)
    assert json.loads(penstock("claims", "list", "--json").out) == {"locks": [], "totalCount": 0}


def test_lots_of_an_unknown_dataset_create_it(penstock: Terminal, client: Client) -> None:
    done = penstock("lots", "register", "factory/steel", "1")

    assert done.text == "1 lot of factory/steel registered\n"
    assert done.err.splitlines() == [
        "namespace factory is created",
        "dataset factory/steel is created",
    ]
    actions = [(entry.action, entry.target) for entry in client.audit().entries[:2]]
    assert sorted(actions) == [
        ("dataset create", "dataset:factory:steel"),
        ("namespace create", "namespace:factory"),
    ]


@pytest.mark.parametrize("name", ["shop/clean_order", "shopp/raw"])
def test_a_mistyped_dataset_is_not_created(penstock: Terminal, name: str) -> None:
    refused = penstock("lots", "register", name, "1")

    assert (refused.code, "did you mean shop/" in refused.complaint) == (1, True)
    assert f"penstock datasets create {name}" in refused.complaint


def test_namespaces_and_datasets_are_created(penstock: Terminal, client: Client) -> None:
    made = penstock("namespaces", "create", "factory", "--owner", "ann").text
    assert made == "namespace factory is created; its owner is ann\n"
    assert "is there already" in penstock("namespaces", "create", "factory").complaint

    text = penstock("datasets", "create", "factory/steel", "--description", "plates").text

    assert text == "dataset factory/steel is created\n"
    assert client.dataset("factory", "steel").description == "plates"
    assert "is there already" in penstock("datasets", "create", "factory/steel").complaint
