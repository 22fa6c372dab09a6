"""Spelling of ARKs, and local ids.

`ark:/…` and `ark:…` are equal, and hyphens in a name have no meaning: they are not stored.
"""

import re

from penstock.errors import Invalid

# With its owner and namespace it is the key of a row, and PostgreSQL takes 2,704 bytes for that.
LOCAL_ID_BYTES_MAX = 1_000


def read_local_ids(text: str | None) -> tuple[str, ...]:
    """The local ids in a text, divided by semicolons, each once, or Invalid."""
    names = tuple(dict.fromkeys(name for part in (text or "").split(";") if (name := part.strip())))
    for name in names:
        length = len(name.encode(errors="surrogatepass"))
        if length > LOCAL_ID_BYTES_MAX:
            raise Invalid(
                f"the local id {name[:64]!r}… has {length:,} bytes; at most "
                f"{LOCAL_ID_BYTES_MAX:,} are taken"
            )
    return names


# Five digits as a rule. The specification sets no length, and some have four or nine.
NAAN = "[0-9bcdfghjkmnpqrstvwxz]{4,9}"

_SHOWN_CHARS_MAX = 64
_LABEL = re.compile("^ark:/?")
# It becomes part of addresses, so it must not lead to another place by `..`.
_ARK = re.compile(rf"(?!.*\.\.)ark:/?{NAAN}/[0-9A-Za-z._=~*+@$/-]{{1,200}}")
PATTERN = f"^{_ARK.pattern}$"


def read_ark(text: str) -> str:
    """Return the ARK with its label in the stored spelling, or raise Invalid."""
    if not _ARK.fullmatch(text):
        shown = text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
        raise Invalid(f"{shown!r} is not an ARK; write it like ark:/99999/fk4rx9d523")
    return _LABEL.sub("ark:/", text)


def plain(ark: str) -> str:
    """Return the ARK in the stored spelling."""
    return _LABEL.sub("ark:/", ark).replace("-", "")
