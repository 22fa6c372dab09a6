"""What an ARK is, and the one spelling of it that is stored: `ark:/…`, which `ark:…` is too."""

import re

from penstock.errors import Invalid

NAAN = "[0-9bcdfghjkmnpqrstvwxz]{5,9}"

_SHOWN_CHARS_MAX = 64
_LABEL = re.compile("^ark:/?")
# It becomes part of addresses, so it must not lead to another place by `..`.
_ARK = re.compile(rf"(?!.*\.\.)ark:/?{NAAN}/[0-9A-Za-z._=~*+@$/-]{{1,200}}")
PATTERN = f"^{_ARK.pattern}$"


def read_ark(text: str) -> str:
    """The ARK in the spelling that is stored, or Invalid."""
    if not _ARK.fullmatch(text):
        shown = text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
        raise Invalid(f"{shown!r} is not an ARK; write it like ark:/99999/fk4rx9d523")
    return spelled(text)


def spelled(ark: str) -> str:
    """The name of an object in the spelling that is stored."""
    return _LABEL.sub("ark:/", ark)
