"""Events of a small project on DuckDB from `dbt-ol` of openlineage-dbt 1.54."""

import pytest

from tests.acceptance.calls import Calls
from tests.acceptance.recordings import Recording, read

DUCK = "duckdb://shop.duckdb"
STAGED, VIEW, BREAKS = "shop.main.stg_orders", "shop.main.orders_view", "shop.main.breaks"


@pytest.fixture
def runs(calls: Calls) -> Recording:
    """Three invocations of `dbt-ol run`. In the second the model `breaks` fails."""
    return Recording(calls, "dbt_runs")


def test_models_read_versions_of_the_same_invocation(runs: Recording) -> None:
    """dbt-ol reports all models at its end: first every start, then every result."""
    runs.send()

    makers = runs.makers(STAGED, DUCK)
    staged = {run["parent"]["runId"]: run["id"] for run in runs.runs("shop.main.shop.stg_orders")}
    for job in ("shop.main.shop.orders_view", "shop.main.shop.breaks"):
        for run in runs.runs(job):
            assert makers[read(run)[STAGED]] == staged[run["parent"]["runId"]], job
    assert len(staged) == 3


def test_repeated_events_change_nothing(runs: Recording) -> None:
    runs.send()
    before = [read(run) for run in runs.runs("shop.main.shop.orders_view")]

    runs.send(runs.events[::-1])

    assert [read(run) for run in runs.runs("shop.main.shop.orders_view")] == before


def test_a_failed_model_does_not_change_the_current_version(runs: Recording) -> None:
    runs.send()

    again, broke, first = runs.runs("shop.main.shop.breaks")
    assert [run["state"] for run in (first, broke, again)] == ["COMPLETED", "FAILED", "COMPLETED"]
    makers = runs.makers(BREAKS, DUCK)
    assert makers[runs.dataset(BREAKS, DUCK)["currentVersion"]] == again["id"]
    assert [read(run)[BREAKS] for run in runs.runs("shop.main.shop.after_break")] == [
        version for version, run in makers.items() if run in (first["id"], again["id"])
    ]
    states = [run["state"] for run in runs.runs("dbt-run-shop")]
    assert states == ["COMPLETED", "FAILED", "COMPLETED"]


@pytest.mark.parametrize(
    ("recorded", "job", "failed"),
    [
        ("dbt_tests", "shop.main.shop.stg_orders.test", ["accepted_values", "relationships"]),
        (
            "dbt_structured",
            "test.shop.relationships_stg_orders_customer_id__id__ref_stg_customers_.c4293d696a",
            ["relationships"],
        ),
    ],
    ids=["at the end", "as it goes"],
)
def test_a_failed_test_is_shown_with_its_input(
    calls: Calls, recorded: str, job: str, failed: list[str]
) -> None:
    tests = Recording(calls, recorded)
    tests.send()

    [run] = tests.runs(job)
    assert run["state"] == "FAILED"
    [facets] = [
        each["facets"]
        for each in run["inputDatasetVersions"]
        if each["datasetVersionId"]["name"] == STAGED
    ]
    assertions = facets["dataQualityAssertions"]["assertions"]
    assert [each["assertion"] for each in assertions if not each["success"]] == failed
