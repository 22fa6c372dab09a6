"""The OpenAPI document of all routes, and a self-contained page made from it."""

import inspect
import sys
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

import msgspec

from penstock import __version__
from penstock.schema.admin import KeyRole
from penstock.schema.shape import Refusal
from penstock.schema.texts import ARC_NAME_SCHEMA, LOT_SCHEMA, NAME_SCHEMA, NO_NUL
from penstock.server.errors import STATUS
from penstock.server.responses import Flow, PlainAnswer
from penstock.server.routing import UPLOAD, Route

Json = dict[str, Any]

_REF = "#/components/schemas/"
_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_HEADERS = ((b"content-security-policy", _POLICY),)


def page(document: Json) -> PlainAnswer:
    """Return the page: a section per capability, an entry per operation, then the types."""
    info = document["info"]
    tags = [tag["name"] for tag in document["tags"]]
    links = [f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in [*tags, "types"]]
    body = [
        f"<h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>",
        f"<p>{_prose(info['description'])}</p>",
        f'<nav>{" ".join(links)} <a href="/openapi.json">openapi.json</a></nav>',
        *(_section(tag, document) for tag in tags),
        '<h2 id="types">types</h2>',
        *(_type(name, about) for name, about in document["components"]["schemas"].items()),
    ]
    style = resources.files(__package__).joinpath("docs.css").read_text()
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>"
    )
    return PlainAnswer("text/html; charset=utf-8", html.encode(), _HEADERS)


def _section(tag: str, document: Json) -> str:
    entries = [
        _operation(method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if tag in operation["tags"]
    ]
    return f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(entries)}'


def _operation(method: str, path: str, about: Json) -> str:
    parts = [
        f'<span class="{method}">{method.upper()}</span> <code>{escape(path)}</code>'
        f"<em>{_prose(about['summary'])}</em>"
    ]
    details = [f"<p>{_prose(about['description'])}</p>"]
    rows = [_parameter(parameter) for parameter in about["parameters"]]
    if "requestBody" in about:
        rows.append(_row("body", "body", _of_content(about["requestBody"]["content"]), ""))
    for status, answer in about["responses"].items():
        if "content" in answer:
            rows.append(_row(status, "answer", _of_content(answer["content"]), ""))
        else:
            name = answer["$ref"].rpartition("/")[2]
            rows.append(_row(status, "refusal", escape(name), ""))
    details.append(f"<table>{''.join(rows)}</table>")
    return f"<details><summary>{''.join(parts)}</summary>{''.join(details)}</details>"


def _parameter(about: Json) -> str:
    kind = _kind(about["schema"])
    default = about["schema"].get("default")
    if default not in (None, [], ()):
        kind += f" = {escape(msgspec.json.encode(default).decode())}"
    need = " *" if about["required"] and about["in"] == "query" else ""
    return _row(about["name"] + need, about["in"], kind, _prose(about.get("description", "")))


def _row(name: str, place: str, kind: str, text: str) -> str:
    cells = f"<td><code>{escape(name)}</code></td><td>{place}</td><td>{kind}</td><td>{text}</td>"
    return f"<tr>{cells}</tr>"


def _of_content(content: Json) -> str:
    return " ".join(
        _kind(about["schema"]) if media.endswith("json") else escape(media)
        for media, about in content.items()
    )


def _type(name: str, about: Json) -> str:
    rows = [
        _row(field, "", _kind(schema), _prose(schema.get("description", "")))
        for field, schema in about.get("properties", {}).items()
    ]
    values = "".join(f" <code>{escape(str(value))}</code>" for value in about.get("enum", ()))
    table = f"<table>{''.join(rows)}</table>" if rows else ""
    described = f"<p>{_prose(about.get('description', ''))}{values}</p>"
    return f'<h3 id="type-{escape(name)}">{escape(name)}</h3>{described}{table}'


def _kind(schema: Json) -> str:
    """Return a schema in a few words, with links to its types."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REF))
        return f'<a href="#type-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type") or "any JSON"))


def _prose(text: str) -> str:
    """Return text with its `code` marked up."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


Capabilities = Sequence[tuple[str, Sequence[Route]]]

_REFERENCE = "#/components/schemas/{name}"
_OF_ANY = (400, 401, 403)
_OF_READS = (404, 413, 422, 503)
_OF_WRITES = (404, 409, 413, 422, 429, 503)

_VARIABLES = {
    "namespace": "the namespace's name",
    "grantee": "the namespace whose runs may write",
    "dataset": "the dataset's name",
    "job": "the job's name",
    "run": "the run's id",
    "version": "the version's UUID, or for a dataset also its number (`V2`)",
    "field": "the field's name",
    "tag": "the tag's name",
    "source": "the source's name",
    "lot": "the lot's id",
    "claim": "the claim's id, which is its run's",
    "arc": "the arc's name",
    "backfill": "the backfill's id",
    "replay": "the id of a replay, chosen by who begins it",
    "name": "the key's name",
    "subscriber": "the subscriber's name",
    "collection": "the collection's name",
    "batch": "the batch's id",
    "ingest_job": "the ingest job's id",
    "payload": "the payload's name, without slashes",
}
# Names of lots and arcs have stricter rules, because keys of objects contain them.
_NAMED = {"lot": LOT_SCHEMA, "arc": ARC_NAME_SCHEMA}
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_NEEDED = {
    KeyRole.READER: "Needs a reader's key.",
    KeyRole.WRITER: "Needs a writer's key.",
    KeyRole.ADMIN: "Needs an admin's key.",
}
_INTRODUCTION = (
    "The metadata API that Marquez and OpenLineage clients speak, and Penstock's own additions. "
    "Names in paths are percent-encoded, `/` included. Times are ISO-8601 in UTC. "
    "An error is `{code, message}`. A key goes into `Authorization: Bearer KEY`; once a key "
    "exists, every request needs one."
)


def text(document: Json) -> bytes:
    """Return the document as JSON."""
    return msgspec.json.encode(document)


def document(capabilities: Capabilities) -> Json:
    """Return the document of routes, each listed under its capability."""
    routes = [route for _, listed in capabilities for route in listed]
    schemas = _Schemas(routes)
    paths: dict[str, Json] = {}
    for tag, listed in capabilities:
        for route in listed:
            operation = _describe_operation(route, tag, schemas)
            paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Penstock", "version": __version__, "description": _INTRODUCTION},
        "tags": [{"name": tag} for tag, _ in capabilities],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {_response_name(status): _refused(status) for status in STATUS.values()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Schemas:
    """The JSON schemas of all types that the routes use."""

    def __init__(self, routes: Iterable[Route]) -> None:
        routes = list(routes)
        types: list[Any] = [Refusal]
        queries: list[Any] = []
        for route in routes:
            types += [kind for kind in (_answer_type(route), _body_type(route)) if kind is not None]
            queries += [route.hints["query"]] if "query" in route.needs else []
        schemas, components = msgspec.json.schema_components(
            [*types, *queries], ref_template=_REFERENCE
        )
        self.components = components
        self._walked: set[int] = set()
        # The key is the text of a type, because types such as Sequence[Run] cannot all be hashed.
        self._by_type = {
            str(kind): schema for kind, schema in zip([*types, *queries], schemas, strict=True)
        }
        for body in map(_body_type, routes):
            self._refuse_nul(None if body is None else self.of(body))
        for query in queries:
            self._refuse_nul(self.of(query))
        self._queries = {query.__name__: components.pop(query.__name__) for query in set(queries)}

    def of(self, kind: Any) -> Json:
        return self._by_type[str(kind)]

    def is_needed(self, body: Any) -> bool:
        """Return whether an empty body is refused: it counts as an object without fields."""
        schema = self.of(body)
        name = schema.get("$ref", "").rpartition("/")[2]
        return bool(self.components.get(name, schema).get("required"))

    def _refuse_nul(self, schema: Any) -> None:
        """Add a pattern without NUL to every text of a body; databases cannot store NUL."""
        if isinstance(schema, list):
            for each in schema:
                self._refuse_nul(each)
        if not isinstance(schema, dict) or id(schema) in self._walked:
            return
        self._walked.add(id(schema))
        if schema.get("type") == "string" and not schema.keys() & {"enum", "pattern", "format"}:
            schema["pattern"] = NO_NUL
        if "$ref" in schema:
            self._refuse_nul(self.components[schema["$ref"].rpartition("/")[2]])
        for each in list(schema.values()):
            self._refuse_nul(each)

    def parameters(self, query: Any) -> list[Json]:
        schema = self._queries[query.__name__]
        required = schema.get("required", ())
        return [
            _describe_parameter(name, about, name in required)
            for name, about in schema["properties"].items()
        ]


def _answer_type(route: Route) -> Any:
    kind = route.hints["return"]
    return None if kind in (PlainAnswer, Flow) else kind


def _body_type(route: Route) -> Any:
    return route.hints.get("body", route.accepts)


def _describe_operation(route: Route, tag: str, schemas: _Schemas) -> Json:
    summary, _, description = inspect.cleandoc(route.handler.__doc__ or "").partition("\n\n")
    needed = "Needs no key." if route.role is None else _NEEDED[route.role]
    operation: Json = {
        "operationId": _operation_id(route),
        "tags": [tag],
        "summary": summary.replace("\n", " "),
        "description": f"{description} {needed}".replace("\n", " ").strip(),
        "parameters": [*map(_path_parameter, route.variables)],
        "responses": _responses(route, schemas),
        "security": [] if route.role is None else [{"key": []}, {}],
    }
    if "query" in route.needs:
        operation["parameters"] += schemas.parameters(route.hints["query"])
    body = _body_type(route)
    if body is not None:
        content = {"application/json": {"schema": schemas.of(body)}}
        operation["requestBody"] = {"required": schemas.is_needed(body), "content": content}
    if route.kind is UPLOAD:
        operation["requestBody"] = {"required": True, "content": _BYTES}
    return operation


def _operation_id(route: Route) -> str:
    words = [
        f"by_{part[1:-1]}" if part.startswith("{") else part.replace("-", "_").replace(".", "_")
        for part in route.path.removeprefix("/api/v1").split("/")[1:]
    ]
    return "_".join([route.method.lower(), *words])


def _path_parameter(name: str) -> Json:
    about = {"type": "string", "description": _VARIABLES[name], **_NAMED.get(name, NAME_SCHEMA)}
    return {**_describe_parameter(name, about, required=True), "in": "path"}


def _describe_parameter(name: str, about: Json, required: bool) -> Json:
    schema = dict(about)
    described = {"description": schema.pop("description")} if "description" in schema else {}
    return {"name": name, "in": "query", "required": required, **described, "schema": schema}


def _responses(route: Route, schemas: _Schemas) -> Json:
    kind = _answer_type(route)
    schema = _untyped(route) if kind is None else schemas.of(kind)
    success = {"description": "done", "content": {route.media: {"schema": schema}}}
    answers: Json = {str(route.status): success}
    if route.also is not None:
        answers[str(route.also)] = success
    if route.role is None:
        refused: Iterable[int] = (503,)
    else:
        refused = (*_OF_ANY, *(_OF_READS if route.method == "GET" else _OF_WRITES))
    for status in refused:
        answers[str(status)] = {"$ref": f"#/components/responses/{_response_name(status)}"}
    return answers


def _untyped(route: Route) -> Json:
    """Return the schema of a page: text, or a JSON document with a format of its own."""
    return {"type": "object" if route.media == "application/json" else "string"}


def _response_name(status: int) -> str:
    return next(kind.__name__ for kind, code in STATUS.items() if code == status)


def _refused(status: int) -> Json:
    kind = next(kind for kind, code in STATUS.items() if code == status)
    schema = {"$ref": _REFERENCE.format(name=Refusal.__name__)}
    return {
        "description": inspect.cleandoc(kind.__doc__ or "").replace("\n", " "),
        "content": {"application/json": {"schema": schema}},
    }


if __name__ == "__main__":
    from penstock.server.routes.table import CAPABILITIES

    sys.stdout.buffer.write(text(document(CAPABILITIES)))
