"""ARKs for new objects, spun from a number; `ezid.py` has them minted by a service.

`ark_of` spins the shapes that EZID's minters do (two letters or digits, one digit, in
groups, then a check character), but from a number that the caller keeps. EZID's own sequence
depends on the state of all its counters, so that no number leads to an id without all before it.
"""

import re
from itertools import count

from penstock.errors import Invalid
from penstock.ingest.arks import NAAN

BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"

_GROUPS_MIN = 2
_GROUP_IDS = 29 * 29 * 10
# Only letters and then one digit: no id on one shoulder can then begin with another shoulder.
_SHOULDER = re.compile(f"{NAAN}/[bcdfghjkmnpqrstvwxz]+[0-9]")


def ark_of(shoulder: str, number: int) -> str:
    """The ARK with this number on a shoulder such as `ark:/99999/fk4`: always the same one."""
    name = shoulder.removeprefix("ark:").removeprefix("/")
    if not _SHOULDER.fullmatch(name):
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
