"""ARKs: reading them, their spelling, and minting on local shoulders; and local ids."""

import re
from collections.abc import Callable
from itertools import count

from penstock.errors import Invalid

# Five digits as a rule. The specification sets no length, and some have four or nine.
NAAN = "[0-9bcdfghjkmnpqrstvwxz]{4,9}"

_SHOWN_CHARS_MAX = 64
_LABEL = re.compile("^ark:/?")
# It becomes part of addresses, so it must not lead to another place by `..`.
_ARK = re.compile(rf"(?!.*\.\.)ark:/?{NAAN}/[0-9A-Za-z._=~*+@$/-]{{1,200}}")
PATTERN = f"^{_ARK.pattern}$"

BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"

_GROUPS_MIN = 2
_GROUP_IDS = 29 * 29 * 10
# Only letters and then one digit: no id on one shoulder can then begin with another shoulder.
_LOCAL_SHOULDER = re.compile(f"{NAAN}/[bcdfghjkmnpqrstvwxz]+[0-9]")

# With its owner and namespace it is the key of a row, and PostgreSQL takes 2,704 bytes for that.
LOCAL_ID_BYTES_MAX = 1_000


def read_ark(text: str) -> str:
    """The ARK as it was given but for its label, or Invalid."""
    if not _ARK.fullmatch(text):
        shown = text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
        raise Invalid(f"{shown!r} is not an ARK; write it like ark:/99999/fk4rx9d523")
    return spelled(text)


def spelled(ark: str) -> str:
    """The ARK with the label that is stored; its hyphens may be those of an object of before."""
    return _LABEL.sub("ark:/", ark)


def plain(ark: str) -> str:
    """The ARK in the spelling that is stored."""
    return spelled(ark).replace("-", "")


def object_named(
    ark: str, is_stored: Callable[[str], bool], with_hyphens: Callable[[str], str | None]
) -> str:
    """Under which name the object that an ARK names is, or would be, stored.

    `with_hyphens` is the name of an object of before that is this one but for its hyphens.
    """
    given, bare = spelled(ark), plain(ark)
    if is_stored(given) or is_stored(bare):
        return given if is_stored(given) else bare
    return with_hyphens(bare) or bare


def ark_of(shoulder: str, number: int) -> str:
    """The ARK with this number on a shoulder such as `ark:/99999/fk4`: always the same one."""
    name = shoulder.removeprefix("ark:").removeprefix("/")
    if not _LOCAL_SHOULDER.fullmatch(name):
        raise Invalid(
            f"shoulder {shoulder!r} cannot be minted on; write the number of the authority, "
            "a slash, consonants and one digit, for example ark:/99999/fk4"
        )
    name += spin(number)
    return f"ark:/{name}{check_character(name)}"


def spin(number: int) -> str:
    """The id of a number: no two numbers share one, and no word can come about."""
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
    """The NOID check character of `99999/fk4…`: it betrays a wrong or a swapped character."""
    values = (max(BETANUMERIC.find(character), 0) for character in name)
    total = sum(place * value for place, value in enumerate(values, start=1))
    return BETANUMERIC[total % len(BETANUMERIC)]


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
