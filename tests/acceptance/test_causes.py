"""The cause of a failed run, from any facet of its events."""

import pytest

from tests.acceptance.calls import Calls, Document, new_run_id
from tests.acceptance.lot_calls import LotCalls

UNIQUE = {"assertion": "unique", "success": False, "column": "id", "actual": "3"}
NOT_NULL = {"assertion": "not_null", "success": False, "column": "id", "severity": "warn"}
ORPHANS = {"name": "no_orphans", "status": "fail", "expected": "0", "actual": "7"}
EXPECTATION = {"expectationType": "expect_column_values_to_be_unique", "success": False}
THROWN = "java.lang.IllegalStateException"
TRACE = f"{THROWN}\n\tat Job.run(Job.java:7)"


@pytest.mark.parametrize(
    ("facets", "cause"),
    [
        ({"errorMessage": {"message": "disk full"}}, "disk full"),
        ({"spark.exception": {"message": "Job aborted", "stackTrace": TRACE}}, "Job aborted"),
        ({"spark.exception": {"message": None, "stackTrace": TRACE}}, THROWN),
        ({"test": {"tests": [ORPHANS]}}, "test failed: no_orphans (expected 0, was 7)"),
        ({"test": {"tests": [{"name": "t", "status": "pass"}]}}, None),
        ({"errorMessage": {"message": 7}, "test": 8}, None),
    ],
    ids=["error", "spark", "spark-trace", "dbt-test", "passed", "odd"],
)
def test_a_failed_run_shows_the_cause_from_its_facets(
    calls: Calls, facets: Document, cause: str | None
) -> None:
    run = new_run_id()
    calls.report("START", run, "load", run_facets=facets)
    assert calls.run(run)["cause"] is None

    calls.report("FAIL", run, "load", run_facets=facets)

    assert calls.run(run)["cause"] == cause
    assert calls.job("load")["latestRun"]["cause"] == cause


@pytest.mark.parametrize("side", ["facets", "inputFacets"])
@pytest.mark.parametrize(
    ("name", "assertions", "cause"),
    [
        ("dataQualityAssertions", [UNIQUE, NOT_NULL], "test failed: unique of id (was 3)"),
        (
            "greatExpectations_assertions",
            [EXPECTATION],
            "test failed: expect_column_values_to_be_unique",
        ),
    ],
)
def test_a_failed_input_check_is_a_cause(
    calls: Calls, side: str, name: str, assertions: list[Document], cause: str
) -> None:
    run = new_run_id()
    read = calls.dataset_ref("orders") | {side: {name: {"assertions": assertions}}}

    calls.report("FAIL", run, "check", inputs=[read])

    assert calls.run(run)["cause"] == cause


def test_a_failed_claim_leaves_its_cause_with_the_run(calls: Calls) -> None:
    framework = LotCalls(calls)
    framework.wire("totals", inputs=["raw"], outputs=["totals"])
    framework.register("raw", "1")
    claim = framework.claim_one("totals")

    framework.fail(claim, error="no space left on device")

    run = calls.job("totals")["latestRun"]
    assert (run["state"], run["cause"]) == ("FAILED", "no space left on device")
    assert run["facets"]["errorMessage"]["message"] == "no space left on device"


def test_a_reported_run_with_a_lot_keeps_sparks_cause(calls: Calls) -> None:
    framework = LotCalls(calls)
    framework.wire("totals", inputs=["raw"], outputs=["totals"])
    framework.register("raw", "1")
    run = new_run_id()
    lot = {"penstock_lot": {"lot": "1"}}
    calls.report("START", run, "totals", run_facets=lot, inputs=["raw"], outputs=["totals"])

    calls.report("FAIL", run, "totals", run_facets={"spark.exception": {"message": "no memory"}})

    assert calls.run(run)["cause"] == "no memory"
    assert next(entry["why"] for entry in framework.log_of_run(run)) == "no memory"
