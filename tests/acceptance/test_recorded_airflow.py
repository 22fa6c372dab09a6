"""Events of two small DAGs from Airflow 3.3 with its OpenLineage provider 2.20."""

import pytest

from tests.acceptance.calls import Calls, Document, path
from tests.acceptance.recordings import Recording, read

DATABASE = "postgres://db:5432"
ORDERS, REVENUE = "shop.public.orders", "shop.public.revenue"
FILES = "file://localhost"


@pytest.fixture
def dags(calls: Calls) -> Recording:
    """Two DAGs. One has retries, mapped tasks and SQL in a group, and its last task fails."""
    recording = Recording(calls, "airflow")
    recording.send()
    return recording


def task_runs(dags: Recording, task: str) -> list[Document]:
    return dags.runs(task, "airflow")


def test_each_try_is_a_run(dags: Recording) -> None:
    assert [run["state"] for run in task_runs(dags, "shop_daily.flaky")] == ["COMPLETED", "FAILED"]
    assert [run["state"] for run in task_runs(dags, "shop_breaks.breaks")] == ["FAILED", "FAILED"]
    assert task_runs(dags, "shop_daily.flaky")[1]["facets"]["errorMessage"]["message"] == (
        "the first try fails"
    )


def test_each_mapped_task_is_a_run(dags: Recording) -> None:
    assert [run["state"] for run in task_runs(dags, "shop_daily.part")] == ["COMPLETED"] * 3


def test_tasks_are_children_of_their_dag_run_and_end(calls: Calls, dags: Recording) -> None:
    [dag] = task_runs(dags, "shop_daily")
    assert dag["state"] == "FAILED"
    family = calls.ask("GET", path("jobs", "runs", dag["id"], "family"))["runs"]
    children = [member for member in family if member["parent"] == dag["id"]]
    assert len(children) == 11
    assert {member["state"] for member in family} == {"COMPLETED", "FAILED"}


def test_assets_and_tables_join_the_tasks(dags: Recording) -> None:
    [clean] = task_runs(dags, "shop_daily.clean")
    [raw] = task_runs(dags, "shop_daily.make_raw")
    makers = dags.makers("/data/raw/orders.csv", FILES)
    assert makers[read(clean)["/data/raw/orders.csv"]] == raw["id"]

    [fill], [sums] = task_runs(dags, "shop_daily.sql.fill"), task_runs(dags, "shop_daily.sql.sum")
    assert dags.makers(ORDERS, DATABASE)[read(sums)[ORDERS]] == fill["id"]
    [column] = dags.dataset(REVENUE, DATABASE)["columnLineage"]
    assert [(f["dataset"], f["field"]) for f in column["inputFields"]] == [(ORDERS, "amount")]


def test_failed_tries_do_not_change_the_current_version(dags: Recording) -> None:
    [clean] = task_runs(dags, "shop_daily.clean")
    current = dags.dataset("/data/clean/orders.csv", FILES)["currentVersion"]
    assert dags.makers("/data/clean/orders.csv", FILES)[current] == clean["id"]


def test_a_failed_check_is_shown_with_its_input(dags: Recording) -> None:
    [check] = task_runs(dags, "shop_daily.sql.check")
    assert check["state"] == "FAILED"
    [orders] = check["inputDatasetVersions"]
    assertions = orders["facets"]["dataQualityAssertions"]["assertions"]
    assert [each["assertion"] for each in assertions if not each["success"]] == ["accepted_range"]


def test_the_tags_of_a_dag_keep_their_names(calls: Calls, dags: Recording) -> None:
    job = calls.get("namespaces", dags.space("airflow"), "jobs", "shop_daily")
    assert job["tags"] == ["shop"]
    assert job["description"] == "Orders, daily"
