"""The fields of a dataset, read from OpenLineage's schema facet.

Fields are stored as JSON text `[{"name", "type", "tags", "description"}]`, the shape in which they
are shown; nested fields are under `fields`. Tags are empty here: they belong to the dataset and are
merged in for display.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from penstock.catalog.events.facets import REMEMBERED_MAX, read_facets
from penstock.ids import NAME_BYTES_MAX, derived_id

NO_FIELDS = "[]"


class Field(Struct, frozen=True):
    """One field of a dataset."""

    name: str
    type: str | None
    tags: tuple[str, ...] = ()
    description: str | None = None
    fields: "tuple[Field, ...] | UnsetType" = UNSET


_DECODE_FIELDS = msgspec.json.Decoder(tuple[Field, ...]).decode


def read_schema(raw: bytes) -> tuple[str, str]:
    """Return the fields of a schema facet as JSON text, and the id of the schema."""
    return _remembered_schema(raw) if len(raw) <= REMEMBERED_MAX else _read_schema(raw)


def _read_schema(raw: bytes) -> tuple[str, str]:
    fields_json = msgspec.json.encode(fields_of_schema(raw)).decode()
    return fields_json, schema_id(fields_json)


_remembered_schema = lru_cache(maxsize=8192)(_read_schema)


def fields_of_schema(raw: bytes) -> tuple[Field, ...]:
    """Return the fields of a schema facet; invalid ones are left out."""
    try:
        facet = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    return _read_fields(facet.get("fields")) if isinstance(facet, dict) else ()


def schema_id(fields_json: str) -> str:
    """Return the id of a schema, independent of the dataset."""
    return derived_id("schema", fields_json)


NO_SCHEMA: Final = schema_id(NO_FIELDS)


def load_fields(fields_json: str) -> tuple[Field, ...]:
    """Decode fields stored as JSON text."""
    return _DECODE_FIELDS(fields_json)


def shown_fields(fields: str | None, observed: str) -> str:
    """Return the fields of a version, or those that readers report if no writer has."""
    return fields if fields is not None and fields != NO_FIELDS else observed_schema(observed)[0]


def observed_schema(observed: str) -> tuple[str, str]:
    """Return the fields that readers report, and the id of that schema."""
    facet = read_facets(observed).get("schema")
    return read_schema(bytes(facet)) if facet is not None else (NO_FIELDS, NO_SCHEMA)


def with_tags(fields_json: str, field_tags: str) -> str:
    """Return stored fields with the field tags of the dataset, JSON `{"field": ["tag", …]}`."""
    if field_tags == "{}":
        return fields_json
    tags: dict[str, tuple[str, ...]] = msgspec.json.decode(
        field_tags, type=dict[str, tuple[str, ...]]
    )
    tagged = [
        msgspec.structs.replace(field, tags=tags.get(field.name, field.tags))
        for field in load_fields(fields_json)
    ]
    return msgspec.json.encode(tagged).decode()


def _read_fields(stated: object) -> tuple[Field, ...]:
    if not isinstance(stated, list):
        return ()
    return tuple(
        _read_field(field)
        for field in stated
        if isinstance(field, dict)
        and isinstance(name := field.get("name"), str)
        and "\x00" not in name  # PostgreSQL cannot search for it
        and len(name.encode()) <= NAME_BYTES_MAX
    )


def _read_field(stated: dict[str, Any]) -> Field:
    nested = _read_fields(stated.get("fields"))
    return Field(
        name=stated["name"],
        type=_text_or_none(stated.get("type")),
        description=_text_or_none(stated.get("description")),
        fields=nested or UNSET,
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
