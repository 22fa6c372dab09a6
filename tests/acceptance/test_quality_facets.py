"""Test results and statistics that runs report on a dataset, with and without lots."""

from typing import Any

from tests.acceptance.calls import Calls, Document, new_run_id


def assertion(name: str, column: str, *, success: bool = True) -> Document:
    return {"assertion": name, "success": success, "column": column}


def report_tests(calls: Calls, *assertions: Document, side: str = "inputFacets") -> str:
    """Send a run that reads `orders` and reports its test results."""
    run, facets = new_run_id(), {"dataQualityAssertions": {"assertions": list(assertions)}}
    calls.report("START", run, "test", inputs=["orders"])
    calls.report("COMPLETE", run, "test", inputs=[calls.dataset_ref("orders") | {side: facets}])
    return run


def results(dataset: Document) -> dict[tuple[str, str], bool]:
    return {
        (each["assertion"], each["column"]): each["success"]
        for each in dataset["facets"]["dataQualityAssertions"]["assertions"]
    }


def test_a_dataset_shows_quality_of_its_current_version(calls: Calls) -> None:
    metrics = {"dataQualityMetrics": {"rowCount": 7, "columnMetrics": {"id": {"nullCount": 0}}}}
    statistics = {"outputStatistics": {"rowCount": 7, "size": 4096}}
    output = calls.dataset_ref("orders") | {"outputFacets": statistics}
    calls.report("COMPLETE", new_run_id(), "load", outputs=[output])
    read = calls.dataset_ref("orders") | {"inputFacets": metrics}
    calls.report("COMPLETE", new_run_id(), "profile", inputs=[read])

    report_tests(calls, assertion("unique", "id"))
    report_tests(calls, assertion("not_null", "id", success=False), side="facets")

    [version] = calls.versions("orders")
    for each in (calls.dataset("orders"), version):
        assert results(each) == {("unique", "id"): True, ("not_null", "id"): False}
        assert each["facets"] | metrics | statistics == each["facets"]


def test_the_later_result_of_a_repeated_test_wins(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "load", outputs=["orders"])
    report_tests(calls, assertion("unique", "id", success=False), assertion("unique", "mail"))

    report_tests(calls, assertion("unique", "id"))

    by_test = results(calls.dataset("orders"))
    assert by_test == {("unique", "id"): True, ("unique", "mail"): True}


def test_a_new_version_is_not_tested_yet(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "load", outputs=["orders"])
    report_tests(calls, assertion("unique", "id"))

    calls.report("COMPLETE", new_run_id(), "load", outputs=["orders"])

    assert calls.dataset("orders")["facets"] == {}
    first, second = calls.versions("orders")
    assert (results(first), second["facets"]) == ({("unique", "id"): True}, {})


def test_expectations_of_great_expectations_are_shown(calls: Calls) -> None:
    expectation = {"expectationType": "expect_column_to_exist", "success": True, "column": "id"}
    facet = {"greatExpectations_assertions": {"assertions": [expectation]}}
    calls.report("COMPLETE", new_run_id(), "load", outputs=["orders"])

    checked = calls.dataset_ref("orders", **facet)
    calls.report("COMPLETE", new_run_id(), "validate", inputs=[checked])

    assert calls.dataset("orders")["facets"] == facet


def test_a_report_of_an_unknown_shape_is_shown_unchanged(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "load", outputs=["orders"])
    shapes: list[Any] = [7, {"assertions": {}}]
    for odd in shapes:
        read = calls.dataset_ref("orders") | {"inputFacets": {"dataQualityAssertions": odd}}
        calls.report("COMPLETE", new_run_id(), "test", inputs=[read])

    report = calls.dataset("orders")["facets"]["dataQualityAssertions"]
    assert report["assertions"] == []
