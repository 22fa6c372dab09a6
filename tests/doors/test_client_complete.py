"""The Python client has every operation of the server's API, all its parameters and answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from penstock import AsyncClient, Client
from penstock.client.documents.lots import Completed
from penstock.client.operation import Operation
from penstock.client.request import Request
from tests.doors.client_samples import OPERATIONS, Sample, answer_type, samples
from tests.doors.serving import running

Json = dict[str, Any]

# What browsers ask for, and second names of what the client calls by the first.
PAGES = {"GET /docs", "GET /api/v1/pulse"}
_RUN = "/api/v1/namespaces/{namespace}/jobs/{job}/runs/{run}"
_LOT = "/api/v1/namespaces/{namespace}/jobs/{job}/lots/{lot}"
SECOND_NAMES = {
    "GET /api/v1/events/lineage",
    f"GET {_RUN}",
    *(f"POST {_RUN}/{mark}" for mark in ("start", "complete", "fail", "abort")),
    f"POST {_LOT}/resubmit",
    f"POST {_LOT}/rerun",
}
# What old clients send and nobody keeps, and what the path says already.
NOT_SENT = {"context", "name"}
# Their bodies are what a file or an event says, whatever that is.
DECLARING = {"put_arc", "put_arrival", "declare", "emit"}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Json]:
    path: Path = tmp_path_factory.mktemp("served") / "penstock.db"
    with running(f"sqlite:///{path}") as server, Client(server.server.url) as client:
        assert client.is_alive()
        assert client.is_ready()
        assert "penstock_" in client.metrics()
        yield client.openapi()


def served(document: Json) -> dict[str, Json]:
    """Every operation by its name."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def operation_of(document: Json, request: Request[Any]) -> str:
    """The operation that a request is for."""
    segments = [unquote(segment) for segment in request.path.split("/")]
    found = []
    for path, methods in document["paths"].items():
        parts = path.split("/")
        fits = len(parts) == len(segments) and all(
            part == segment or (part.startswith("{") and segment)
            for part, segment in zip(parts, segments, strict=True)
        )
        if fits and request.method.lower() in methods:
            found.append((path.count("{"), f"{request.method} {path}"))
    assert found, f"{request.method} {request.path} is not served"
    return min(found)[1]


def by_operation(document: Json) -> dict[str, list[Sample]]:
    grouped: dict[str, list[Sample]] = {}
    for sample in samples():
        grouped.setdefault(operation_of(document, sample.request), []).append(sample)
    return grouped


def test_no_operation_is_missing(document: Json) -> None:
    missing = set(served(document)) - set(by_operation(document)) - PAGES
    assert missing == SECOND_NAMES


def test_both_clients_have_every_call() -> None:
    assert len(OPERATIONS) > 100
    for name in OPERATIONS:
        for client in (Client, AsyncClient):
            assert isinstance(getattr(client, name), Operation)
            assert getattr(client, name).__doc__


def test_every_parameter_can_be_given(document: Json) -> None:
    operations = served(document)
    for name, found in by_operation(document).items():
        listed = {p["name"] for p in operations[name]["parameters"] if p["in"] == "query"}
        assert {key for sample in found for key in sample.request.query} == listed, name


def test_every_field_of_a_body_can_be_given(document: Json) -> None:
    operations = served(document)
    for name, found in by_operation(document).items():
        content = operations[name].get("requestBody", {}).get("content", {})
        sent = [sample.request for sample in found]
        assert ("application/octet-stream" in content) == any(r.upload for r in sent), name
        schema = _resolved(document, content.get("application/json", {}).get("schema", {}))
        if "properties" not in schema or DECLARING & {sample.name for sample in found}:
            continue
        given = {key for r in sent for key in json.loads(r.body or b"{}")}
        assert set(schema["properties"]) - given <= NOT_SENT, name
        assert given <= set(schema["properties"]), name


def test_every_answer_is_kept_whole(document: Json) -> None:
    operations = served(document)
    requests = {sample.name: sample.request for sample in samples()}
    for name in OPERATIONS:
        _check_answer(document, name, operations[operation_of(document, requests[name])])


def _check_answer(document: Json, name: str, operation: Json) -> None:
    """Compare the answer that the server documents with the client's type of it."""
    shape = answer_type(name)
    schemas, components = msgspec.json.schema_components([shape])
    mine: Json = {"components": {"schemas": components}}
    answers = operation["responses"]
    content = next(answers[status] for status in answers if status[0] == "2")["content"]
    if "application/json" not in content or _is_changed(shape):
        return
    theirs = content["application/json"]["schema"]
    compared = _compare(document, theirs, mine, _moved(schemas[0]), name, set())
    assert compared > 0 or name in ("openapi", "prov", "_stream", "event_stats", "count_stats")


def _is_changed(shape: Any) -> bool:
    """Whether the client answers with a part of what the server does."""
    return shape in (int, str, bool, type(None), Completed | None)


def _moved(schema: Json) -> Json:
    """A schema whose references are as those in a document."""
    text = json.dumps(schema).replace("#/$defs/", "#/components/schemas/")
    moved: Json = json.loads(text)
    return moved


def _resolved(document: Json, schema: Json) -> Json:
    """A schema without references and without `or null`; nothing if it is one of several."""
    schema = _moved(schema)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _resolved(document, document["components"]["schemas"][name])
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        return _resolved(document, kinds[0]) if len(kinds) == 1 else {}
    return schema


def _compare(theirs: Json, schema: Json, mine: Json, own: Json, where: str, seen: set[str]) -> int:
    """Hold every property that the server shows against the client's; how many there were."""
    key = f"{json.dumps(schema)} {json.dumps(own)}"
    if key in seen:
        return 0
    seen.add(key)
    schema, own = _resolved(theirs, schema), _resolved(mine, own)
    if "items" in schema and isinstance(own.get("items"), dict):
        return _compare(theirs, schema["items"], mine, own["items"], f"{where}[]", seen)
    if "properties" not in schema or not own:
        return 0
    assert set(own.get("properties", {})) == set(schema["properties"]), where
    return len(schema["properties"]) + sum(
        _compare(theirs, schema["properties"][p], mine, own["properties"][p], f"{where}.{p}", seen)
        for p in schema["properties"]
    )
