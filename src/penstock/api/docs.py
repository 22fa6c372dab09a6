"""The API as one self-contained page, drawn from the OpenAPI document."""

from html import escape
from importlib import resources
from typing import Any

import msgspec

from penstock.api.answers import Page

Json = dict[str, Any]

_REF = "#/components/schemas/"
_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_HEADERS = ((b"content-security-policy", _POLICY),)


def page(document: Json) -> Page:
    """The whole page: one section per capability, one entry per operation, then the types."""
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
    return Page("text/html; charset=utf-8", html.encode(), _HEADERS)


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
    """A schema in a few words, with links to the types that it names."""
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
    """Text with its `code` marked up."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
