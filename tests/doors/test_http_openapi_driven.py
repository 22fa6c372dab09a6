"""What the OpenAPI document allows, the server takes: each operation is called by its schema."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from penstock.server import openapi
from penstock.server.routes.table import CAPABILITIES
from tests.doors.serving import Running, post, run_event, running

Json = dict[str, Any]

DOCUMENT = openapi.document(CAPABILITIES)
SCHEMAS: Json = DOCUMENT["components"]["schemas"]
REFUSED = (400, 413, 422, 500)
TEXTS = ("", " ", "\n", "x", ".", "..", "a/b", "é", "a\x00b", "x" * 1024, "x" * 1025, "-", "😀")
PLACES = {"namespace": "food", "dataset": "clean", "job": "etl", "run": "r1", "version": "V1"}
# What these refuse depends on what there is, or on other fields: no schema can say that.
BY_CONTENT = (
    "/arcs/{arc}", "/backfills", "/arrival", "/declarations", "/ingest", "/replays", "/subscribers",
    "/wiring", "/resubmit", "/priority", "hold", "/release", "/end-claim", "/accept", "/claims",
    "/keys", "/events/stream", "/pulse", "/verify", "/check",
)  # fmt: skip


def resolved(schema: Json) -> Json:
    """A schema with what it refers to put in its place."""
    found = dict(schema)
    while "$ref" in found:
        target = SCHEMAS[found.pop("$ref").rpartition("/")[2]]
        found = {**target, **found}
    return found


def example(schema: Json) -> Any:
    """The least that a schema allows."""
    schema = resolved(schema)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            needed = [*schema.get("required", ())]
            needed += schema.get("anyOf", [{}])[0].get("required", ())
            return {name: example(schema["properties"][name]) for name in needed}
        case "array":
            return [example(schema["items"])] * schema.get("minItems", 0)
        case "string":
            return "2026-11-15T10:00:00Z" if schema.get("format") == "date-time" else "x"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
    return None


def allowed_texts(schema: Json) -> Iterator[str]:
    """The texts that a schema allows."""
    schema = resolved(schema)
    for each in schema.get("anyOf", ()):
        yield from allowed_texts(each)
    if schema.get("type") != "string" or schema.keys() & {"enum", "format"}:
        return
    for text in TEXTS:
        is_short = schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1025)
        if is_short and re.fullmatch(schema.get("pattern", ".*"), text, re.DOTALL):
            yield text


def bodies(schema: Json) -> Iterator[Any]:
    """Bodies that a schema allows, each with another text in one place."""
    schema = resolved(schema)
    least = example(schema)
    yield least
    for name, field in schema.get("properties", {}).items():
        for text in allowed_texts(field):
            yield {**least, name: text}
        inner = resolved(field)
        options = [resolved(each) for each in inner.get("anyOf", [inner])]
        for option in options:
            if option.get("type") == "array":
                for text in allowed_texts(option["items"]):
                    yield {**least, name: [text]}
                if resolved(option["items"]).get("type") == "object":
                    for item in bodies(option["items"]):
                        yield {**least, name: [item]}


def operations() -> Iterator[tuple[str, str, Json]]:
    for place, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if method != "delete" and not any(part in place for part in BY_CONTENT):
                yield method, place, operation


def filled(place: str, **names: str) -> str:
    """A path with its variables."""
    for name in re.findall(r"{(\w+)}", place):
        value = names.get(name, PLACES.get(name, "x"))
        place = place.replace(f"{{{name}}}", quote(value, safe=""))
    return place


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        post(server.client, run_event())
        yield server


def test_texts_that_the_schema_of_a_body_allows_are_taken(food: Running) -> None:
    refused = []
    for method, place, operation in operations():
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" not in content or "array" in str(content)[:60]:
            continue
        for body in bodies(content["application/json"]["schema"]):
            answer = food.client.request(method, filled(place), json=body)
            if answer.status_code in REFUSED:
                refused.append((method, place, body, answer.text))
    assert refused == []


def test_names_that_the_schema_of_a_path_allows_are_taken(food: Running) -> None:
    refused = []
    for method, place, operation in operations():
        if method != "get":
            continue
        for parameter in operation["parameters"]:
            if parameter["in"] != "path":
                continue
            for text in allowed_texts(parameter["schema"]):
                answer = food.client.get(filled(place, **{parameter["name"]: text}))
                # A name may be one that nothing has, or of a dataset without an interval.
                if answer.status_code in REFUSED and "/gaps" not in place:
                    refused.append((place, parameter["name"], text, answer.text))
    assert refused == []


def test_a_body_is_required_where_an_empty_one_is_refused(food: Running) -> None:
    for place, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {})
            if "application/json" not in body.get("content", {}) or "/backfills" in place:
                continue
            answer = food.client.request(method, filled(place))
            assert (answer.status_code in REFUSED) is body["required"], (method, place)
