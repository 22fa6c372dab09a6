"""Patterns of keys match as regular expressions do, in linear time."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.arcs.arrivals.key_patterns import KeyPattern
from penstock.arcs.spec import Parts
from penstock.arcs.workload.parts import split
from penstock.arcs.workload.task import InputLot
from penstock.errors import Invalid
from penstock.lots.manifests import Item
from penstock.states import ManifestState

DASHES = "-" * 1000
EXPRESSIONS = {
    "year": "[0-9]{4}",
    "month": "0[1-9]|1[0-2]",
    "day": "0[1-9]|[12][0-9]|3[01]",
    "epoch": "(?<![0-9])(?:[0-9]{9,10}|[0-9]{13}|[0-9]{16})(?![0-9])",
    "lot": "[^/]+",
}


def backtracked(pattern: str, key: str) -> dict[str, str] | None:
    """Return the fields of a key, by a plain regular expression."""
    parts, met = list[str](), set[str]()
    for text in re.split(r"(\{\w+\}|\*)", pattern):
        field = text.strip("{}")
        if text == "*":
            parts.append(".*?")
        elif field == text:
            parts.append(re.escape(text))
        elif field in met:
            parts.append(f"(?P={field})")
        else:
            met.add(field)
            parts.append(f"(?P<{field}>{EXPRESSIONS[field]})")
    match = re.match("".join(parts), key, re.DOTALL)
    return match.groupdict() if match is not None else None


TEXTS = st.lists(st.sampled_from(["a", "ab", "-", "/", "*"]), max_size=3).map("".join)
LOT_PATTERNS = st.lists(TEXTS, min_size=2, max_size=4).map("{lot}".join)
KEYS = st.text("ab-/", max_size=24)


@given(LOT_PATTERNS, KEYS)
@example("*{lot}*a", "b/a")
@example("*a{lot}b", "aa/ab/aab")
@example("*{lot}/x*{lot}-", "p/q/x/q-")
def test_lot_of_key_is_the_longest_that_fits(text: str, key: str) -> None:
    try:
        pattern = KeyPattern(text)
    except Invalid:
        assert text.count("{lot}") > 1
        return
    values = backtracked(text, key)

    lot = pattern.lot_of(key)

    assert lot == (values["lot"] if values is not None else None)


DATED = st.sampled_from(["{year}{month}{day}", "{year}", "{month}", "{day}", "-", "/", "*"])
DATES = st.sampled_from(["2026", "11", "15", "2027", "12", "-", "/", "x"])


@given(
    st.lists(DATED, max_size=6).map("".join),
    st.lists(DATES, min_size=3, max_size=12).map("".join),
)
@example("*{year}{month}{day}*{year}-", "20261115/20271215/2027-")
def test_time_of_key_is_the_first_that_fits(text: str, key: str) -> None:
    try:
        pattern = KeyPattern(text)
    except Invalid:
        return

    fits = not pattern.refusal(key).startswith("its key does not fit")

    assert fits == (backtracked(text, key) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        "*-" * 12 + "{year}{month}{day}",
        "*-" * 12 + "{epoch}",
        "*-" * 12 + "{lot}x",
        "*-{lot}" + "-*" * 12 + "x",
        "{lot}" + "-*" * 12 + "x",
        "*/{lot}-{lot}" + "-*" * 12 + "x",
        "*{year}{month}{day}" + "-*" * 12 + "{year}x",
    ],
)
@pytest.mark.parametrize("key", [DASHES, f"2026/{DASHES}", f"20261115{DASHES}", "/-" * 500])
def test_any_key_matches_quickly(pattern: str, key: str) -> None:
    assert KeyPattern(pattern).refusal(key) == f"its key does not fit the pattern {pattern}"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*{lot}-{lot}", "put a / directly before or behind the first {lot}"),
        ("*{year}-{month}*{day}-{year}*{day}", "write * where they come again"),
    ],
)
def test_slow_patterns_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(Invalid, match=re.escape(message)):
        KeyPattern(pattern)


def test_any_part_name_matches_quickly() -> None:
    uri = f"s3://bucket/{'-' * 250}"
    lot = InputLot("ns", "raw", "v", ManifestState.COMPLETE, (Item(uri),))

    parts = split(Parts(pattern="-".join(f"{{f{n}}}" for n in range(8)) + ".csv"), [lot])

    assert list(parts) == ["rest"]


PART_TEXTS = st.lists(st.sampled_from(["a", "ab", "-", "/"]), max_size=2).map("".join)


@given(st.lists(PART_TEXTS, min_size=1, max_size=4), st.text("ab-/", min_size=1, max_size=20))
def test_part_of_uri_matches_the_whole_pattern(literals: list[str], path: str) -> None:
    pattern = "".join(f"{text}{{f{n}}}" for n, text in enumerate(literals[:-1])) + literals[-1]
    lot = InputLot("ns", "raw", "v", ManifestState.COMPLETE, (Item(path),))
    match = re.search(re.sub(r"\\{f\d\\}", "[^/]+", re.escape(pattern)), path)
    expected = match[0].strip("/") if match is not None else "rest"

    try:
        parts = list(split(Parts(pattern=pattern), [lot]))
    except Invalid:
        parts = [""]

    assert parts == [expected]
