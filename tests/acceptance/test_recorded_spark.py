"""Events of a small application on Spark 3.5 from openlineage-spark 1.53."""

import pytest

from tests.acceptance.calls import Calls, Document, path
from tests.acceptance.recordings import Recording, read

LAKE = "/data/lake"
INSERT = "shop_spark.execute_insert_into_hadoop_fs_relation_command"
JOIN = "shop_spark.adaptive_spark_plan.lake_by_country"


@pytest.fixture
def spark(calls: Calls) -> Recording:
    """Files are read, joined, overwritten and appended, once without success;

    a table is created.
    """
    recording = Recording(calls, "spark")
    recording.send()
    return recording


def job_runs(spark: Recording, job: str) -> list[Document]:
    return spark.runs(job, "spark")


def test_each_overwrite_and_append_creates_a_version(spark: Recording) -> None:
    appended, overwritten = job_runs(spark, JOIN)
    makers = spark.makers(f"{LAKE}/by_country", "file")
    assert {appended["id"], overwritten["id"]} < set(makers.values())
    current = spark.dataset(f"{LAKE}/by_country", "file")["currentVersion"]
    assert makers[current] == appended["id"]


def test_a_failed_job_changes_no_version_despite_its_complete(spark: Recording) -> None:
    """For a failed query Spark sends the job's FAIL, and then a COMPLETE of the query."""
    [failed] = job_runs(spark, f"{INSERT}.lake_by_country")
    assert failed["state"] == "FAILED"
    appended, _ = job_runs(spark, JOIN)
    by_country = spark.dataset(f"{LAKE}/by_country", "file")
    assert spark.makers(by_country["name"], "file")[by_country["currentVersion"]] == appended["id"]
    assert [field["name"] for field in by_country["fields"]] == ["country", "total"]


def test_files_connect_jobs_and_columns(spark: Recording) -> None:
    [orders] = job_runs(spark, f"{INSERT}.lake_orders")
    makers = spark.makers(f"{LAKE}/orders", "file")
    for run in job_runs(spark, JOIN):
        assert makers[read(run)[f"{LAKE}/orders"]] == orders["id"]
    columns = spark.dataset(f"{LAKE}/by_country", "file")["columnLineage"]
    [total] = [column for column in columns if column["name"] == "total"]
    assert (f"{LAKE}/orders", "amount") in [
        (field["dataset"], field["field"]) for field in total["inputFields"]
    ]


def test_a_table_is_found_by_its_name_in_the_warehouse(calls: Calls, spark: Recording) -> None:
    table = calls.get("namespaces", spark.space("file:/data/warehouse"), "datasets", "shop.big")
    assert table["name"] == "/data/warehouse/shop.db/big"


def test_queries_are_children_of_their_application(calls: Calls, spark: Recording) -> None:
    [application] = job_runs(spark, "shop_spark")
    assert application["state"] == "COMPLETED"
    family = calls.ask("GET", path("jobs", "runs", application["id"], "family"))["runs"]
    recorded = {event["run"]["runId"] for event in spark.events}
    assert {member["id"] for member in family} == recorded


def test_join_and_filter_keys_are_shown_as_indirect_lineage(calls: Calls, spark: Recording) -> None:
    dataset = spark.dataset(f"{LAKE}/by_country", "file")
    keys = {
        (f"{LAKE}/customers", "country"): "GROUP_BY",
        (f"{LAKE}/customers", "id"): "JOIN, FILTER",
        (f"{LAKE}/orders", "customer_id"): "JOIN, FILTER",
    }
    assert _types(dataset["indirectInputFields"]) == keys
    assert {column["name"] for column in dataset["columnLineage"]} == {"country", "total"}

    node = f"datasetField:{spark.space('file')}:{LAKE}/by_country:total"
    direct = calls.get("column-lineage", nodeId=node, depth=1)
    assert direct.keys() == {"graph"}
    assert {each["data"]["field"] for each in direct["graph"]} == {"total", "amount"}

    both = calls.get("column-lineage", nodeId=node, depth=1, withIndirect=True)
    [indirect] = both["indirect"]
    assert (indirect["dataset"], _types(indirect["inputFields"])) == (f"{LAKE}/by_country", keys)
    fields = {(each["data"]["dataset"], each["data"]["field"]) for each in both["graph"]}
    assert fields == {(f"{LAKE}/by_country", "total"), (f"{LAKE}/orders", "amount"), *keys}
    [total] = [each for each in both["graph"] if each["id"] == node]
    assert [each["origin"].rsplit(":", 1)[1] for each in total["inEdges"]] == ["amount"]


def test_fields_that_depend_on_a_join_key_are_downstream(calls: Calls, spark: Recording) -> None:
    node = f"datasetField:{spark.space('file')}:{LAKE}/orders:customer_id"

    def downstream(**params: bool) -> set[str]:
        graph = calls.get("column-lineage", nodeId=node, depth=1, withDownstream=True, **params)
        return {
            each["data"]["field"]
            for each in graph["graph"]
            if each["data"]["dataset"] == f"{LAKE}/by_country"
        }

    assert downstream() == set()
    assert downstream(withIndirect=True) == {"country", "total"}


def _types(fields: list[Document]) -> dict[tuple[str, str], str]:
    return {
        (field["dataset"], field["field"]): field["transformationType"]
        for field in fields
        if field["indirect"]
    }
