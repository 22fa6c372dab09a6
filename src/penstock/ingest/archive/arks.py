"""ARKs: reading them, their spelling, and minting on local shoulders; and local ids."""

import re
from itertools import count

from penstock.errors import Invalid

# Usually five digits. The specification sets no length, and some authorities have four or nine.
NAAN = "[0-9bcdfghjkmnpqrstvwxz]{4,9}"

_SHOWN_CHARS_MAX = 64
_LABEL = re.compile("^ark:/?")
# An ARK becomes part of URLs, so it must not contain `..`.
_ARK = re.compile(rf"(?!.*\.\.)ark:/?{NAAN}/[0-9A-Za-z._=~*+@$/-]{{1,200}}")
PATTERN = f"^{_ARK.pattern}$"

BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"

_GROUPS_MIN = 2
_GROUP_IDS = 29 * 29 * 10
# Letters and then one digit, so that no id on one shoulder begins with another shoulder.
_LOCAL_SHOULDER = re.compile(f"{NAAN}/[bcdfghjkmnpqrstvwxz]+[0-9]")

# A local id is in a key with its owner and namespace, and PostgreSQL limits a key to 2,704 bytes.
LOCAL_ID_BYTES_MAX = 1_000


def read_ark(text: str) -> str:
    """Return the ARK with the standard label, or raise Invalid."""
    if not _ARK.fullmatch(text):
        quoted = text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
        raise Invalid(f"{quoted!r} is not an ARK; write it like ark:/99999/fk4rx9d523")
    return with_standard_label(text)


def with_standard_label(ark: str) -> str:
    """Return the ARK with the label `ark:/`."""
    return _LABEL.sub("ark:/", ark)


def normalize_ark(ark: str) -> str:
    """Return the ARK as it is stored: with the standard label and without hyphens."""
    return with_standard_label(ark).replace("-", "")


def ark_of(shoulder: str, number: int) -> str:
    """Return the ARK of a number on a shoulder such as `ark:/99999/fk4`."""
    name = shoulder.removeprefix("ark:").removeprefix("/")
    if not _LOCAL_SHOULDER.fullmatch(name):
        raise Invalid(
            f"shoulder {shoulder!r} cannot be minted on; write the number of the authority, "
            "a slash, consonants and one digit, for example ark:/99999/fk4"
        )
    name += spin(number)
    return f"ark:/{name}{check_character(name)}"


def spin(number: int) -> str:
    """Return the unique id of a number; its pattern cannot form a word."""
    if number < 0:
        raise Invalid(f"number {number} has no id; count from 0")
    groups = next(size for size in count(_GROUPS_MIN) if number < _ids_up_to(size))
    rest = number - _ids_up_to(groups - 1)
    spun = ""
    for _ in range(groups):
        for radix in (10, 29, 29):
            rest, digit = divmod(rest, radix)
            spun = BETANUMERIC[digit] + spun
    return spun


def _ids_up_to(groups: int) -> int:
    return sum(_GROUP_IDS**size for size in range(_GROUPS_MIN, groups + 1))


def check_character(name: str) -> str:
    """Return the NOID check character of `99999/fk4…`; it detects a wrong or swapped character."""
    values = (max(BETANUMERIC.find(character), 0) for character in name)
    total = sum(position * value for position, value in enumerate(values, start=1))
    return BETANUMERIC[total % len(BETANUMERIC)]


def read_local_ids(text: str | None) -> tuple[str, ...]:
    """Return the local ids in a text, separated by semicolons, without duplicates."""
    names = tuple(dict.fromkeys(name for part in (text or "").split(";") if (name := part.strip())))
    for name in names:
        length = len(name.encode(errors="surrogatepass"))
        if length > LOCAL_ID_BYTES_MAX:
            raise Invalid(
                f"the local id {name[:64]!r}… has {length:,} bytes; at most "
                f"{LOCAL_ID_BYTES_MAX:,} are taken"
            )
    return names
