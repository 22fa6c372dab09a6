"""The storage root that OCFL objects lie in."""

import msgspec
from msgspec import Struct

from penstock.errors import Conflict, Invalid
from penstock.ingest.storing.ocfl_inventory import LAYOUT
from penstock.objects import Objects


class _Layout(Struct, frozen=True):
    extension: str = LAYOUT
    description: str = "Tuples of the SHA-256 of the id, then a folder named by the encoded id"


class _LayoutConfig(Struct, frozen=True, rename="camel"):
    extension_name: str = LAYOUT
    digest_algorithm: str = "sha256"
    tuple_size: int = 3
    number_of_tuples: int = 3


_OTHER_ROOT = "0=ocfl_1.0"
_DECLARATION = "0=ocfl_1.1"
_CONFIG_KEY = f"extensions/{LAYOUT}/config.json"
_LAYOUT_KEY = "ocfl_layout.json"
# Made here: two threads that decode a class for the first time would crash msgspec.
_decode_config = msgspec.json.Decoder(_LayoutConfig).decode
_decode_layout = msgspec.json.Decoder(_Layout).decode


def make_root(objects: Objects) -> None:
    """Make the storage root, once; nothing happens if it is there, and racing is harmless."""
    if objects.exists(_OTHER_ROOT):
        raise _refusal(objects, _OTHER_ROOT)
    # In this order every beginning is a valid root.
    for key, content in (
        (_DECLARATION, b"ocfl_1.1\n"),
        (_CONFIG_KEY, msgspec.json.encode(_LayoutConfig())),
        (_LAYOUT_KEY, msgspec.json.encode(_Layout())),
    ):
        try:
            objects.put(key, content, if_absent=True)
        except Conflict:
            if not _is_same(key, objects.get(key)):
                raise _refusal(objects, key) from None


def _is_same(key: str, content: bytes) -> bool:
    try:
        if key == _CONFIG_KEY:
            return _decode_config(content) == _LayoutConfig()
        if key == _LAYOUT_KEY:
            return _decode_layout(content).extension == LAYOUT
    except msgspec.DecodeError:
        return False
    return content.strip() == b"ocfl_1.1"


def _refusal(objects: Objects, key: str) -> Invalid:
    return Invalid(
        f"{objects.url} holds a {key} that is not as Penstock writes it: it is an OCFL root of "
        "another version or layout; give an empty place"
    )
