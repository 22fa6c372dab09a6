"""JSON schemas of names and texts in requests."""

from typing import Annotated, Any, Final

from msgspec import Meta

from penstock.ids import NAME_BYTES_MAX

# The server checks texts again, because its messages say more than a schema can. A schema counts
# characters, and the limit counts bytes. One or two dots alone would be a folder in a path.
NO_NUL: Final = r"^[^\u0000]*$"
_TEXT: Final[dict[str, Any]] = {
    "minLength": 1,
    "maxLength": NAME_BYTES_MAX,
    "pattern": r"^(?=[^\u0000]*\S)[^\u0000]*$",
}
NAME_SCHEMA: Final = {**_TEXT, "pattern": r"^(?!\.{1,2}$)(?=[^\u0000]*\S)[^\u0000]*$"}
LOT_SCHEMA: Final[dict[str, Any]] = {
    "minLength": 1,
    "maxLength": 200,
    "pattern": r"^(?!\.{1,2}$)(?!\s)[^/\\\u0000-\u001f\u007f-\u009f]*(?<!\s)$",
}
ARC_NAME_SCHEMA: Final[dict[str, Any]] = {
    "minLength": 1,
    "maxLength": 200,
    "pattern": r"^(?!\.{1,2}$)(?=.*\S)[^/\u0000-\u001f\u007f-\u009f]*$",
}
NAME_OR_NONE_SCHEMA: Final[dict[str, Any]] = {
    "maxLength": NAME_BYTES_MAX,
    "pattern": r"^(?!\.{1,2}$)(|(?=[^\u0000]*\S)[^\u0000]*)$",
}
Text = Annotated[str, Meta(extra_json_schema=_TEXT)]
Name = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA)]
NameOrNone = Annotated[str, Meta(extra_json_schema=NAME_OR_NONE_SCHEMA)]
LotName = Annotated[str, Meta(extra_json_schema=LOT_SCHEMA)]
ArcName = Annotated[str, Meta(extra_json_schema=ARC_NAME_SCHEMA)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
