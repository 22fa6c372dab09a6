"""Query parameters as types: what a call may ask, its defaults and its limits."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct

from penstock.clock import Micros, parse_time
from penstock.errors import Invalid, Malformed
from penstock.server.content import NO_SUCH_CHOICE, explained, spellings

T = TypeVar("T", bound=Struct)

LIMIT_MAX = 10_000
OFFSET_MAX = 1_000_000_000
DEPTH_MAX = 1_000
_PARAMETERS_MAX = 100

Limit = Annotated[int, Meta(ge=0, le=LIMIT_MAX, description="how many to show at most")]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="how many to leave out first")]
Depth = Annotated[int, Meta(ge=0, le=DEPTH_MAX, description="how many edges away to look")]


class Query(Struct, frozen=True, rename="camel"):
    """What may stand behind the question mark; anything else there is ignored."""


class Paging(Query, frozen=True):
    """Which part of a list."""

    limit: Limit = 100
    offset: Offset = 0


def query_reader(shape: type[T]) -> Callable[[bytes], T]:
    """A function that reads a query string of this type."""
    hints = get_type_hints(shape)
    fields = msgspec.structs.fields(shape)
    repeated = {f.encode_name for f in fields if _is_list(hints[f.name])}
    choices = {f.encode_name: spellings(shape, f.encode_name) for f in fields}

    # Two threads that use a type first at once would crash msgspec: it is used here and now.
    msgspec.json.Decoder(shape)

    def read(text: bytes) -> T:
        values: dict[str, Any] = {}
        for name, spelling in _pairs(text) if text else ():
            value = choices.get(name, {}).get(spelling.casefold(), spelling)
            if name in repeated:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        try:
            return msgspec.convert(values, shape, strict=False)
        except msgspec.ValidationError as error:
            kind = Invalid if str(error).startswith(NO_SUCH_CHOICE) else Malformed
            raise kind(f"a query parameter does not fit: {explained(error, shape)}") from None

    return read


def _is_list(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_origin(hint) is tuple


def moment(text: str | None, name: str) -> Micros | None:
    """The time that a query parameter gives, if it gives one."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except Invalid as error:
        raise Malformed(f"{name}: {error}") from None


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_PARAMETERS_MAX,
        )
    except ValueError as error:
        raise Malformed(f"the query string cannot be read: {error}") from None
    if any("\x00" in value for _, value in pairs):
        raise Malformed("the query string holds a NUL character; remove it")
    return pairs
