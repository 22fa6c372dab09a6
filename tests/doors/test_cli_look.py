"""Commands that look: against a server that holds a week of a small data platform."""

import re
from collections.abc import Iterator

import pytest

from penstock.cli.catalog import datasets, runs
from penstock.client import Client
from penstock.demo.pipeline import DAYS, STEPS, TABLES, WAREHOUSE, Attempt, pipeline
from tests.databases import sqlite_database
from tests.doors.commands import NOW, Terminal
from tests.doors.serving import Running, running

# One worker sends the whole week, once.
pytestmark = pytest.mark.xdist_group("cli_look")

REVENUE = f"dataset:{WAREHOUSE}:marts.daily_revenue"
EVENTS = pipeline(NOW)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that has received the whole week."""
    url = sqlite_database(tmp_path_factory.mktemp("shop") / "penstock.db")
    with running(url) as server:
        with Client(server.server.url) as client:
            assert client.emit_batch(EVENTS).failed_events == []
        yield server


@pytest.fixture
def penstock(penstock: Terminal, shop: Running, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PENSTOCK_URL", shop.server.url)
    return penstock


def _run_id(step: str, day: int, attempt: int = 0) -> str:
    job = next(each.job for each in STEPS if each.name == step)
    return Attempt(job, f"day {day}, try {attempt}", 0, 0, day).run_id


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (["namespaces", "list"], "namespaces"),
        (["datasets", "list"], "datasets"),
        (["datasets", "list", "--namespace", WAREHOUSE], "datasets"),
        (["datasets", "show", "daily_revenue"], "currentVersionNumber"),
        (["datasets", "show", "marts.daily_revenue", "--namespace", WAREHOUSE], "fields"),
        (["datasets", "versions", REVENUE], "versions"),
        (["jobs", "list"], "jobs"),
        (["jobs", "list", "--namespace", "shop", "--state", "FAILED"], "jobs"),
        (["jobs", "show", "shop/load_archive"], "latestRuns"),
        (["jobs", "versions", "load_archive"], "versions"),
        (["jobs", "runs", "job:shop:load_archive"], "runs"),
        (["runs", "list"], "runs"),
        (["runs", "list", "load_archive"], "runs"),
        (["runs", "show", _run_id("export_finance", 6)], "outputDatasetVersions"),
        (["runs", "upstream", _run_id("build_daily_revenue", 6)], "runs"),
        (["events", "list", "--limit", "3"], "events"),
        (["events", "list", "--run", _run_id("export_finance", 6)], "events"),
        (["search", "revenue"], "results"),
        (["stats"], "events"),
        (["audit"], "entries"),
        (["lineage", REVENUE], "graph"),
        (["lineage", REVENUE, "--columns"], "graph"),
        (["lineage", REVENUE, "--columns", "--indirect"], "indirect"),
    ],
    ids=" ".join,
)
def test_every_command_gives_the_full_document_as_json(
    penstock: Terminal, command: list[str], key: str
) -> None:
    assert key in penstock(*command, "--json").document
    shown = penstock(*command)
    assert shown.text.strip() or command == ["audit"]
    assert "\x1b" not in shown.text


def test_json_is_what_the_server_says(penstock: Terminal, shop: Running) -> None:
    path = f"/api/v1/lineage?nodeId={REVENUE}&hops=3"
    assert penstock("lineage", REVENUE, "--json").document == shop.client.get(path).json()
    jobs = shop.client.get("/api/v1/jobs?limit=100").json()
    assert penstock("jobs", "list", "--json").document == jobs
    run = _run_id("build_daily_revenue", 6)
    assert (
        penstock("runs", "upstream", run, "--json").document
        == shop.client.get(f"/api/v1/runlineage/upstream?runId={run}").json()
    )


def test_lineage_is_drawn_upstream_and_downstream_within_80_columns(penstock: Terminal) -> None:
    drawn = penstock("lineage", "daily_revenue", "--hops", "4").text
    above, below = drawn.split("used by")
    assert "■ marts.daily_revenue  V7" in above
    assert "└ ● daily_shop.build_daily_revenue  COMPLETED" in above
    assert "■ staging.orders  V7" in above
    assert "● daily_shop.export_finance  FAILED" in below
    assert "■ bi.dashboard" in below
    assert max(map(len, drawn.splitlines())) <= 80


def test_lineage_marks_what_is_beyond_the_hops(penstock: Terminal) -> None:
    drawn = penstock("lineage", REVENUE, "--hops", "1", "--direction", "upstream").text
    assert "build_daily_revenue  COMPLETED" in drawn
    assert "… 2 more" in drawn
    assert "used by" not in drawn


def test_lineage_marks_cycles_and_what_was_drawn_already(penstock: Terminal) -> None:
    assert "↻ cycle" in penstock("lineage", "update_inventory").text
    drawn = penstock("lineage", "bi.dashboard", "--hops", "8", "--direction", "upstream").text
    assert drawn.count("■ marts.order_lines") == 2
    assert drawn.count("↑ drawn above") == 1


def test_lineage_of_a_job_with_a_chunk_per_run_shows_all_its_edges(penstock: Terminal) -> None:
    assert penstock("lineage", "load_archive").text.count("archive/orders/") == 1
    assert penstock("lineage", "load_archive", "--history").text.count("archive/orders/") == 6


def test_lineage_as_of_a_time_and_of_a_version(penstock: Terminal) -> None:
    then = penstock("lineage", "daily_revenue", "--as-of", "2024-11-10T09:00:00Z").text
    assert "■ marts.daily_revenue  V3" in then
    assert "as of 2024-11-10 09:00:00 UTC" in then
    assert "■ marts.daily_revenue  V2" in penstock("lineage", f"{REVENUE}#V2").text


def test_lineage_of_columns(penstock: Terminal) -> None:
    drawn = penstock("lineage", "daily_revenue", "--columns").text
    assert re.search(r"▪ marts\.daily_revenue\.revenue .*\n└ ▪ marts\.order_lines\.amount", drawn)
    assert "  └ ▪ staging.orders.amount" in drawn
    assert max(map(len, drawn.splitlines())) <= 80
    below = penstock("lineage", "staging.orders", "--columns", "--direction", "downstream").text
    assert "marts.daily_revenue.revenue" in below
    assert "made from" not in below


def test_indirect_lineage_is_drawn_apart_from_that_of_columns(penstock: Terminal) -> None:
    columns = penstock("lineage", "daily_revenue", "--columns", "--hops", "1").text
    both = penstock("lineage", "daily_revenue", "--columns", "--indirect", "--hops", "1").text

    assert "keys of joins" not in columns
    apart = both.split("keys of joins, filters and sorts\n")[1]
    assert re.match(r"■ marts\.daily_revenue .*\n├ ▪ marts\.order_lines\.order_id  join", apart)
    assert re.search(r"└ ▪ staging\.payments\.order_id  join", apart)
    refused = penstock("lineage", "daily_revenue", "--indirect")
    assert (refused.code, "--indirect needs --columns" in refused.complaint) == (2, True)


def test_a_name_that_several_things_have_must_be_told_apart(penstock: Terminal) -> None:
    refused = penstock("lineage", "orders")
    assert refused.code == 1
    assert f"dataset:{WAREHOUSE}:staging.orders" in refused.complaint
    assert "dataset:s3://shop-lake:raw/orders" in refused.complaint
    assert "V7" in penstock("lineage", f"{WAREHOUSE}/staging.orders").text
    assert "V7" in penstock("lineage", "raw/orders").text


def test_a_name_that_nothing_has_is_not_found(penstock: Terminal) -> None:
    for command in (["lineage"], ["datasets", "show"], ["jobs", "runs"]):
        refused = penstock(*command, "nothing_like_this")
        assert refused.code == 1
        assert "'nothing_like_this'" in refused.complaint
        assert "penstock search" in refused.complaint


def test_the_list_of_all_datasets_pages_over_namespaces(penstock: Terminal) -> None:
    whole = penstock("datasets", "list", "--json").document
    assert whole["totalCount"] == len(TABLES)
    names = [dataset["name"] for dataset in whole["datasets"]]
    assert len(names) == len(TABLES)
    paged = []
    for offset in range(0, len(TABLES), 5):
        page = penstock("datasets", "list", "--limit", "5", "--offset", str(offset), "--json")
        assert page.document["totalCount"] == len(TABLES)
        paged += [dataset["name"] for dataset in page.document["datasets"]]
    assert paged == names


def test_a_list_says_when_it_does_not_show_all(penstock: Terminal) -> None:
    shown = penstock("datasets", "list", "--limit", "5")
    assert shown.code == 0
    assert f"5 of {len(TABLES)} shown" in shown.err
    assert penstock("datasets", "list").err == ""


def test_lists_go_on_where_an_answer_of_the_server_ends(
    penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "_PAGE", 1)
    assert penstock("datasets", "list", "--json").document["totalCount"] == len(TABLES)
    monkeypatch.setattr(runs, "_PAGE", 1)
    job = penstock("runs", "list", "--state", "FAILED", "--json").document["runs"][1]["job"]
    asked = ("runs", "list", job["name"], "--namespace", job["namespace"])
    failed = penstock(*asked, "--state", "FAILED", "--json").document
    assert failed["totalCount"] == len(failed["runs"]) == 2
    last = penstock(*asked, "--state", "FAILED", "--offset", "1", "--json").document["runs"]
    assert last == failed["runs"][1:]
    every = penstock(*asked, "--json").document
    shown = penstock(*asked, "--limit", "1", "--json")
    assert shown.document["totalCount"] == every["totalCount"] == len(every["runs"]) > 2
    assert f"1 of {len(every['runs'])} shown" in penstock(*asked, "--limit", "1").err


def test_versions_show_how_fields_changed(penstock: Terminal) -> None:
    shown = " ".join(penstock("datasets", "versions", "daily_revenue").text.split())
    assert "V7 current" in shown
    assert "+discount" in shown
    assert "FLOAT to NUMERIC(12,2)" in shown


def test_failed_runs_are_listed_with_their_cause(penstock: Terminal) -> None:
    listed = penstock("runs", "list", "--state", "FAILED", "--json").document["runs"]
    assert [run["job"]["name"].split(".")[1] for run in listed] == [
        "export_finance",
        "extract_shipments",
        "extract_shipments",
        "stage_payments",
    ]
    shown = " ".join(penstock("runs", "show", listed[0]["id"]).text.split())
    assert "disk quota" in shown
    assert "marts.daily_revenue V7" in shown


def test_names_of_jobs_stay_whole_where_ids_have_no_room(
    penstock: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, run = "daily_shop.build_daily_revenue", _run_id("build_daily_revenue", 6)
    listed = penstock("runs", "list", "--limit", "100")
    assert job in listed.text
    assert run not in listed.text
    assert max(map(len, listed.text.splitlines())) <= 80
    assert "run: not shown" in listed.err
    monkeypatch.setenv("COLUMNS", "160")
    listed = penstock("runs", "list", "--limit", "1000")
    assert re.search(rf"{re.escape(job)} +{run} +COMPLETED", listed.text)
    assert listed.err == ""


def test_events_by_time(penstock: Terminal) -> None:
    day = ("--after", "2024-11-09", "--before", "2024-11-10")
    found = penstock("events", "list", *day, "--oldest-first", "--json").document
    assert found["totalCount"] == 2 * (len(STEPS) + 1)
    times = [event["eventTime"] for event in found["events"]]
    assert times == sorted(times)
    assert {time[:10] for time in times} == {"2024-11-09"}
    refused = penstock("events", "list", "--run", "x", "--after", "2h")
    assert (refused.code, "--run" in refused.complaint) == (2, True)
    assert penstock("events", "list", "--after", "noon").code == 2


def test_search_finds_by_field_and_kind(penstock: Terminal) -> None:
    found = penstock("search", "email", "--kind", "dataset", "--json").document
    assert {each["name"] for each in found["results"]} == {
        "public.customers",
        "raw/customers",
        "staging.customers",
        "marts.customer_value",
    }
    assert penstock("search", "email", "--kind", "job", "--json").document["totalCount"] == 0


def test_search_finds_a_run_by_its_id(penstock: Terminal) -> None:
    run = penstock("runs", "list", "--limit", "1", "--json").document["runs"][0]

    shown = penstock("search", run["id"])
    document = penstock("search", run["id"], "--json").document

    assert shown.text.split()[:7] == ["kind", "name", "of", "matched", "by", "run", run["id"]]
    assert [(each["kind"], each["name"]) for each in document["records"]] == [("run", run["id"])]
    assert document["results"] == []


def test_stats_of_a_week(penstock: Terminal) -> None:
    found = penstock("stats", "--period", "week", "--json").document
    assert len(found["events"]) == DAYS
    assert found["jobs"][-1]["count"] == penstock("jobs", "list", "--json").document["totalCount"]
    told = penstock("stats", "--period", "week").text.splitlines()
    assert told[0].split()[-3:] == ["jobs", "datasets", "sources"]
    counted = [found[what][-1]["count"] for what in ("jobs", "datasets", "sources")]
    assert told[-1].split()[-3:] == [str(count) for count in counted]
    refused = penstock("stats", "--timezone", "Mars/Base")
    assert refused.code == 1
    assert "Mars/Base" in refused.complaint


def test_a_bad_choice_or_number_is_a_usage_error(penstock: Terminal) -> None:
    for command in (
        ["lineage", REVENUE, "--direction", "sideways"],
        ["lineage", REVENUE, "--hops", "deep"],
        ["jobs", "list", "--state", "TIRED"],
        ["datasets", "list", "--bogus"],
        ["datasets", "dance"],
        ["datasets", "show"],
        ["lineage", REVENUE, "--as-of", "noon"],
        ["events", "follow", "--count", "-1"],
        ["events", "follow", "--count", "9" * 30],
        ["search", "caf\udce9"],
    ):
        refused = penstock(*command)
        assert refused.code == 2, command
        assert refused.complaint
        assert refused.out == ""


def test_what_the_server_refuses_is_told_in_one_line(penstock: Terminal) -> None:
    refused = penstock("lineage", REVENUE, "--hops", "1001")
    assert refused.code == 1
    assert "hops" in refused.complaint
    assert penstock("runs", "show", "00000000-0000-4000-8000-000000000000").code == 1
