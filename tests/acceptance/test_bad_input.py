"""Invalid events: each is refused with a reason, and nothing of it is stored."""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.calls import PRODUCER, SPEC, Calls, Document, new_run_id, path, schema


class _Omitted:
    """A marker for a value that is omitted."""

    def __repr__(self) -> str:
        return "gone"


OMITTED = _Omitted()
NAME_BYTES = 1025
DEEP = 65


def valid_event(calls: Calls) -> Document:
    """A valid event with every field that these tests break."""
    return {
        "eventTime": "2026-11-15T10:00:00Z",
        "eventType": "COMPLETE",
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/RunEvent",
        "run": {"runId": new_run_id(), "facets": {"f": {"v": 1}}},
        "job": {"namespace": calls.namespace, "name": "job", "facets": {"f": {"v": 1}}},
        "inputs": [{"namespace": calls.namespace, "name": "in", "facets": {"f": {"v": 1}}}],
        "outputs": [{"namespace": calls.namespace, "name": "out", "facets": {"f": {"v": 1}}}],
    }


def with_change(event: Document, where: str, value: Any) -> Document:
    """Return the event with one value changed or omitted."""
    event = copy.deepcopy(event)
    *way, last = where.split(".")
    place: Any = event
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    if value is OMITTED:
        del place[last]
    else:
        place[int(last) if last.isdigit() else last] = value
    return event


def assert_nothing_stored(calls: Calls) -> None:
    """Check that the job, the datasets, the namespace and the event are all absent."""
    calls.get("namespaces", calls.namespace, status=404)
    for kind, name in (("jobs", "job"), ("datasets", "in"), ("datasets", "out")):
        calls.get("namespaces", calls.namespace, kind, name, status=404)
    assert calls.namespace not in calls.client.get(path("events", "lineage")).text


def refusal_of(calls: Calls, body: bytes, statuses: set[int], **headers: str) -> str:
    """Send an invalid body and return the reason from the error document."""
    answer = calls.client.post(path("lineage"), content=body, headers=headers)
    assert answer.status_code in statuses, answer.text
    document = answer.json()
    assert set(document) == {"code", "message"}
    assert document["code"] == answer.status_code
    assert "Traceback" not in answer.text
    message: str = document["message"]
    return message


WRONG: list[tuple[str, Any, set[int], str]] = [
    # missing
    ("eventTime", OMITTED, {422}, "eventTime"),
    ("run", OMITTED, {422}, "run"),
    ("job", OMITTED, {422}, "job"),
    ("run.runId", OMITTED, {422}, "runId"),
    ("job.namespace", OMITTED, {422}, "namespace"),
    ("job.name", OMITTED, {422}, "name"),
    ("outputs.0.name", OMITTED, {422}, "name"),
    ("inputs.0.namespace", OMITTED, {422}, "namespace"),
    # of the wrong type
    ("eventTime", 1763200800, {422}, "eventTime"),
    ("eventTime", None, {422}, "eventTime"),
    ("eventType", 7, {422}, "eventType"),
    ("eventType", "FINISHED", {422}, "FINISHED"),
    ("run", [], {422}, "run"),
    ("run.runId", 12, {422}, "runId"),
    ("run.runId", None, {422}, "runId"),
    ("run.facets", [], {422}, "facets"),
    ("job", "job", {422}, "job"),
    ("job.name", {"a": 1}, {422}, "name"),
    ("job.facets", "none", {422}, "facets"),
    ("inputs", {}, {422}, "inputs"),
    ("inputs.0", "in", {422}, "inputs"),
    ("outputs", "out", {422}, "outputs"),
    ("outputs.0.facets", 1, {422}, "facets"),
    ("outputs.0.outputFacets", [1], {422}, "outputFacets"),
    ("schemaURL", 5, {422}, "schemaURL"),
    # empty, too long, or with forbidden characters
    ("run.runId", "", {422}, "runId"),
    ("job.name", "", {422}, "job.name"),
    ("job.name", "  ", {422}, "job.name"),
    ("job.namespace", "", {422}, "job.namespace"),
    ("inputs.0.name", "", {422}, "inputs.name"),
    ("outputs.0.namespace", "", {422}, "outputs.namespace"),
    ("job.name", "n" * NAME_BYTES, {413, 422}, "job.name"),
    ("job.namespace", "n" * 100_000, {413, 422}, "job.namespace"),
    ("outputs.0.name", "é" * 600, {413, 422}, "outputs.name"),
    ("run.runId", "r" * NAME_BYTES, {413, 422}, "run.runId"),
    ("job.name", "a\x00b", {400, 422}, "NUL"),
    ("inputs.0.name", "\x00", {400, 422}, "NUL"),
    ("run.runId", "r\x00", {400, 422}, "NUL"),
    ("job.namespace", "..", {422}, "folder"),
    ("job.name", ".", {422}, "folder"),
    ("inputs.0.name", "..", {422}, "folder"),
    ("outputs.0.namespace", ".", {422}, "folder"),
    ("run.runId", "..", {422}, "folder"),
    # impossible times
    ("eventTime", "", {422}, "time"),
    ("eventTime", "noon", {422}, "noon"),
    ("eventTime", "2026-02-30T00:00:00Z", {422}, "2026-02-30"),
    ("eventTime", "2026-11-15T25:00:00Z", {422}, "25:00"),
    ("eventTime", "0000-01-01T00:00:00Z", {422}, "0000"),
    ("eventTime", "10000-01-01T00:00:00Z", {422}, "10000"),
    ("eventTime", "-2026-11-15T10:00:00Z", {422}, "time"),
    ("eventTime", "99999999999999999999", {422}, "time"),
    ("eventTime", "-1", {422}, "time"),
    ("eventTime", "9999-12-31T23:59:59-23:59", {422}, "9999"),
    ("eventTime", "2026-11-15T10:00:00+99:00", {422}, "time"),
]


@pytest.mark.parametrize(
    ("where", "value", "statuses", "reason"), WRONG, ids=lambda value: repr(value)[:24]
)
def test_an_invalid_event_is_refused_whole(
    calls: Calls, where: str, value: Any, statuses: set[int], reason: str
) -> None:
    body = json.dumps(with_change(valid_event(calls), where, value)).encode()
    assert reason in refusal_of(calls, body, statuses)
    assert_nothing_stored(calls)


def body_with(calls: Calls, text: bytes) -> bytes:
    """Return the valid event with these bytes as the value of a facet."""
    return (
        json.dumps(with_change(valid_event(calls), "outputs.0.facets.f", "HERE"))
        .encode()
        .replace(b'"HERE"', text)
    )


BYTES: list[tuple[bytes, set[int]]] = [
    (b"", {400}),
    (b"{", {400}),
    (b"{'v': 1}", {400}),
    (b"{} {}", {400}),
    (b"NaN", {400}),
    (b"Infinity", {400}),
    (b"-Infinity", {400}),
    (b"01", {400}),
    (b'"\xff\xfe"', {400}),
    (b'"\xed\xa0\x80"', {400}),
    (b'"\\ud800"', {400, 422}),
    (b'"\\udc00\\ud800"', {400, 422}),
    (b'"\\x"', {400}),
    (b'"a\x00b"', {400}),
    (b'"unterminated', {400}),
    (b"[" * DEEP + b"]" * DEEP, {413, 422}),
    (b'{"a":' * DEEP + b"1" + b"}" * DEEP, {413, 422}),
    (b"[" * 100_000, {400, 413, 422}),
    (b"9" * 4001, {422}),
    (b"-1." + b"0" * 5000, {422}),
]


@pytest.mark.parametrize(("text", "statuses"), BYTES, ids=lambda value: repr(value)[:24])
def test_a_body_with_invalid_json_is_refused_whole(
    calls: Calls, text: bytes, statuses: set[int]
) -> None:
    assert refusal_of(calls, body_with(calls, text), statuses)
    assert_nothing_stored(calls)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"7", b'"event"', b"{}", b"\xff", b"\x00"])
def test_a_body_without_an_event_is_refused(calls: Calls, body: bytes) -> None:
    assert refusal_of(calls, body, {400, 422})


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "number", [b"1e999", b"-1e999", b"1e-999", b"9" * 400, b"0.1" + b"0" * 400]
)
def test_huge_numbers_in_facets_are_kept_word_for_word(calls: Calls, number: bytes) -> None:
    body = body_with(calls, b'{"v":' + number + b"}")
    answer = calls.client.post(path("lineage"), content=body)
    if answer.status_code == 201:
        text = calls.client.get(path("namespaces", calls.namespace, "datasets", "out")).content
        assert b'{"v":' + number + b"}" in text
    else:
        assert answer.status_code in (400, 422)
        assert_nothing_stored(calls)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("2026-11-15T10:00:00+05:30", "2026-11-15T04:30:00.000Z"),
        ("2026-11-15T10:00:00.123456789Z", "2026-11-15T10:00:00.123456Z"),
        ("2026-11-15T10:00:00", "2026-11-15T10:00:00.000Z"),
    ],
)
def test_the_earliest_and_latest_times_are_accepted(calls: Calls, text: str, shown: str) -> None:
    event = with_change(valid_event(calls), "eventTime", text)
    calls.send(event)
    assert calls.run(event["run"]["runId"])["endedAt"] == shown
    assert calls.dataset("out")["currentVersionNumber"] == 1
    assert calls.dataset("in")["currentVersionNumber"] == 1


def test_the_latest_possible_time_counts_as_received_now(calls: Calls) -> None:
    event = with_change(valid_event(calls), "eventTime", "9999-12-31T23:59:59.999999Z")
    before = datetime.now(UTC)

    calls.send(event)

    ended = datetime.fromisoformat(calls.run(event["run"]["runId"])["endedAt"])
    assert before - timedelta(seconds=1) <= ended <= datetime.now(UTC)


NUL = "a\x00b"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("side", "facet"),
    [
        ("outputs", {"schema": {"fields": [{"name": NUL, "type": NUL, "description": NUL}]}}),
        ("outputs", {"documentation": {"description": NUL}}),
        ("outputs", {"dataSource": {"name": NUL, "uri": NUL}}),
        ("outputs", {"dataSource": {"name": "fine", "uri": NUL}}),
        ("outputs", {"symlinks": {"identifiers": [{"namespace": NUL, "name": NUL, "type": NUL}]}}),
        ("outputs", {"tags": {"tags": [{"key": NUL, "value": NUL, "field": NUL}]}}),
        ("outputs", {"lifecycleStateChange": {"lifecycleStateChange": NUL}}),
        (
            "outputs",
            {
                "columnLineage": {
                    "fields": {
                        NUL: {"inputFields": [{"namespace": NUL, "name": NUL, "field": NUL}]},
                        "x": {
                            "inputFields": [{"namespace": "n", "name": "d", "field": "f"}],
                            "transformationDescription": NUL,
                            "transformationType": NUL,
                        },
                    }
                }
            },
        ),
        ("inputs", {"schema": {"fields": [{"name": NUL, "type": NUL}]}}),
        ("inputs", {"dataSource": {"name": "fine", "uri": NUL}}),
        ("outputs", {NUL: {NUL: NUL}}),
        ("run", {"parent": {"run": {"runId": NUL}, "job": {"namespace": NUL, "name": NUL}}}),
        ("run", {"nominalTime": {"nominalStartTime": NUL}}),
        ("job", {"documentation": {"description": NUL}}),
        ("job", {"sourceCodeLocation": {"url": NUL}}),
        ("job", {"jobType": {"processingType": NUL}}),
        ("job", {"tags": {"tags": [{"key": NUL}]}}),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_nul_inside_a_facet_does_no_harm(calls: Calls, side: str, facet: Document) -> None:
    event = valid_event(calls)
    subject = event[side][0] if side in ("inputs", "outputs") else event[side]
    subject["facets"] = facet
    calls.send(event)
    assert calls.run(event["run"]["runId"])["state"] == "COMPLETED"
    assert calls.job("job")["latestRun"]["id"] == event["run"]["runId"]
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 2
    calls.get("search", q="job", namespace=calls.namespace)


def test_a_bad_event_in_a_batch_fails_alone(calls: Calls) -> None:
    events = [with_change(valid_event(calls), where, value) for where, value, _, _ in WRONG]
    fine = valid_event(calls)
    middle = len(events) // 2
    batch = [*events[:middle], fine, *events[middle:]]
    answer = calls.ask("POST", path("lineage", "batch"), json=batch)
    assert (answer["summary"]["received"], answer["summary"]["successful"]) == (len(batch), 1)
    assert middle not in [failed["index"] for failed in answer["failed_events"]]
    assert calls.run(fine["run"]["runId"])["state"] == "COMPLETED"
    assert calls.get("namespaces", calls.namespace, "jobs")["totalCount"] == 1
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 2


def test_an_event_with_invalid_json_fails_alone_in_its_batch(calls: Calls) -> None:
    bad = [text for text, _ in BYTES if text.count(b"[") < 100 and b"unterminated" not in text]
    bad.remove(b"{")
    events = [body_with(calls, text) for text in bad if text != b"{} {}"]
    deepest = body_with(calls, b"[" * (DEEP - 5) + b"]" * (DEEP - 5))
    batch = b"[" + b",\n".join([*events, deepest]) + b"]"
    answer = calls.client.post(path("lineage", "batch"), content=batch)
    assert answer.status_code == 200, answer.text
    summary = answer.json()["summary"]
    assert (summary["failed"], summary["successful"]) == (len(events), 1), answer.text


@pytest.mark.parametrize("body", [b"[", b"[{}", b"[{}]]", b"{}", b"[1] 2", b"[[1}", b"no", b"]"])
def test_a_batch_that_is_not_a_list_is_refused(calls: Calls, body: bytes) -> None:
    answer = calls.client.post(path("lineage", "batch"), content=body)
    assert answer.status_code in (400, 422), answer.text


def test_a_field_with_too_long_a_name_is_omitted(
    calls: Calls,
) -> None:
    longest, longer = "é" * 512, "é" * 512 + "x"
    output = calls.dataset_ref("d", **schema("id", longer, longest))
    calls.report("COMPLETE", new_run_id(), "j", outputs=[output])
    dataset = calls.dataset("d")
    assert [field["name"] for field in dataset["fields"]] == ["id", longest]
    assert dataset["facets"] == schema("id", longer, longest), "the facet is unchanged"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        ({"fields": [{"name": "\x00", "type": "INT"}]}, "NUL"),
        ({"fields": [{"name": "x" * NAME_BYTES}]}, "fields.name"),
        ({"fields": [{"name": "id"}, {"name": "x"}, {"name": "id"}]}, "'id'"),
        ({"tags": ["t" * NAME_BYTES]}, "tags"),
        ({"sourceName": "nowhere"}, "nowhere"),
        ({"runId": "nobody"}, "nobody"),
        ({"type": "VIEW"}, "VIEW"),
    ],
)
def test_an_invalid_dataset_is_refused_whole(calls: Calls, dataset: Document, reason: str) -> None:
    calls.put_namespace()
    calls.put_source("warehouse")
    document = {"type": "DB_TABLE", "physicalName": "d", "sourceName": "warehouse"} | dataset
    answer = calls.client.put(path("namespaces", calls.namespace, "datasets", "d"), json=document)
    assert answer.status_code in (404, 413, 422), answer.text
    assert reason in answer.json()["message"] or "nobody" in str(dataset)
    calls.get("namespaces", calls.namespace, "datasets", "d", status=404)
    assert calls.get("namespaces", calls.namespace, "datasets")["totalCount"] == 0
