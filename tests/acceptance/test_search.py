"""Search results while things are deleted and restored."""

import pytest

from tests.acceptance.calls import Calls, Document, fields, new_run_id, path, schema

pytestmark = pytest.mark.both_databases

# Every name in the namespace contains this word.
WORD = "harvest"
ALL = {("DATASET", "harvest_in"), ("DATASET", "harvest_out"), ("JOB", "harvest_job")}
OF = {
    "dataset": ("datasets", "harvest_out"),
    "job": ("jobs", "harvest_job"),
    "namespace": (),
}
LEFT = {
    "dataset": ALL - {("DATASET", "harvest_out")},
    "job": ALL - {("JOB", "harvest_job")},
    "namespace": set(),
}


def search_results(calls: Calls, q: str = WORD) -> set[tuple[str, str]]:
    """Return the search results in the namespace. Every form of the query must give the same."""
    here: Document = {"q": q, "namespace": calls.namespace}
    answers = []
    for params in (
        here,
        here | {"sort": "UPDATE_AT"},
        here | {"after": "2000-01-01T00:00:00Z"},
        {"q": f"{q} {calls.namespace}"},
    ):
        answer = calls.get("search", **params)
        assert answer["totalCount"] == len(answer["results"])
        answers.append({(each["type"], each["name"]) for each in answer["results"]})
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def report(calls: Calls, at: str | None = None) -> None:
    output = calls.dataset_ref("harvest_out", **schema("id"))
    calls.report(
        "COMPLETE", new_run_id(), "harvest_job", inputs=["harvest_in"], outputs=[output], at=at
    )


def second_name(calls: Calls, name: str) -> Document:
    identifier = {"namespace": f"hive://{calls.namespace}", "name": name, "type": "TABLE"}
    return {"symlinks": {"identifiers": [identifier]}}


def test_a_dataset_is_found_by_words_of_its_aliases(calls: Calls) -> None:
    report(calls)
    assert search_results(calls, "granary") == set()
    reads, writes = ("DATASET", "harvest_in"), ("DATASET", "harvest_out")
    read = calls.dataset_ref("harvest_in", **second_name(calls, "farm.granaryOld"))
    write = calls.dataset_ref("harvest_out", **second_name(calls, "farm.granaryNew"))
    calls.report("COMPLETE", new_run_id(), "harvest_job", inputs=[read], outputs=[write])
    assert search_results(calls, "granary") == {reads, writes}
    assert search_results(calls, "granary old hive") == {reads}

    grown = calls.dataset_ref("harvest_out", **schema("id", "weight"))
    calls.report("COMPLETE", new_run_id(), "harvest_job", outputs=[grown])
    assert search_results(calls, "granary new weight") == {writes}, (
        "other words do not push them out"
    )
    write = calls.dataset_ref("barn", **second_name(calls, "farm.granaryLast"))
    calls.report("COMPLETE", new_run_id(), "harvest_job", outputs=[write])
    assert search_results(calls, "granary last") == {("DATASET", "barn")}


@pytest.mark.parametrize("what", OF)
def test_a_deleted_thing_is_found_only_after_its_restoration(calls: Calls, what: str) -> None:
    report(calls)
    assert search_results(calls) == ALL
    where = path("namespaces", calls.namespace, *OF[what])
    for _ in range(2):
        calls.ask("DELETE", where)
        assert search_results(calls) == LEFT[what]
        calls.ask("POST", f"{where}/restore")
        assert search_results(calls) == ALL


@pytest.mark.parametrize("what", OF)
def test_a_deleted_dataset_is_found_after_a_new_write(calls: Calls, what: str) -> None:
    report(calls)
    calls.ask("DELETE", path("namespaces", calls.namespace, *OF[what]))
    report(calls, at="2026-01-01T00:00:00Z")
    assert search_results(calls) == LEFT[what]
    report(calls, at="2099-01-01T00:00:00Z")
    assert search_results(calls) == ALL


def test_a_deleted_thing_put_again_is_found_by_new_words(
    calls: Calls,
) -> None:
    calls.put_namespace()
    calls.put_source("warehouse")
    for description in ("ripe", "dried"):
        calls.put_dataset("harvest_in", fields=fields("id"), description=description)
        calls.put_job("harvest_job", ["harvest_in"], [], description=description)
        both = {("DATASET", "harvest_in"), ("JOB", "harvest_job")}
        assert search_results(calls) == search_results(calls, description) == both
        for kind, name in (("datasets", "harvest_in"), ("jobs", "harvest_job")):
            calls.ask("DELETE", path("namespaces", calls.namespace, kind, name))
        assert search_results(calls) == search_results(calls, description) == set()
    assert search_results(calls, "ripe") == set()


def test_a_dropped_dataset_is_found_only_after_its_recreation(calls: Calls) -> None:
    def output(change: str) -> None:
        facet = {"lifecycleStateChange": {"lifecycleStateChange": change}}
        dataset = calls.dataset_ref("harvest_out", **schema("id"), **facet)
        calls.report("COMPLETE", new_run_id(), "harvest_job", outputs=[dataset])

    output("CREATE")
    assert ("DATASET", "harvest_out") in search_results(calls)
    output("DROP")
    assert search_results(calls) == {("JOB", "harvest_job")}
    output("CREATE")
    assert ("DATASET", "harvest_out") in search_results(calls)
