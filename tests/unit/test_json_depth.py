"""The nesting depth of JSON, checked before any recursive parser sees it."""

import pytest

from penstock.catalog.events.parse import INTEGER_DIGITS_MAX, check_depth, check_numbers
from penstock.errors import Invalid, TooLarge


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 3,
        b'{"a": {"b": {}}}',
        b'["]]]", "\\"]]]", [[1]]]',
    ],
)
def test_json_nested_too_deeply_is_refused(body: bytes) -> None:
    with pytest.raises(TooLarge, match="deeper than 2 levels"):
        check_depth(body, 2)


@pytest.mark.parametrize(
    "body",
    [
        b"[[],[],[],[]]",
        b'{"a": "[[[[", "b": "\\"{{{{", "c": ["\\\\"]}',
        b'[{"a": 1}, {"b": 2}, {"c": "\\u005b"}]',
    ],
)
def test_adjacent_or_quoted_brackets_do_not_nest(body: bytes) -> None:
    check_depth(body, 2)


def test_an_unterminated_string_is_read_once() -> None:
    """A search for the end from every quote would take hours."""
    check_depth(b"[{}," + b"{}," * 70 + b'"\\' * 3_000_000, 2)


@pytest.mark.parametrize("filler", [b'"a",', b'{"a": "[[["},', b'"\\"[",'])
def test_a_large_body_is_checked_to_its_end(filler: bytes) -> None:
    many = b"[" + filler * 400_000

    check_depth(many + b"[]]", 2)
    with pytest.raises(TooLarge):
        check_depth(many + b"[[]]]", 2)


@pytest.mark.parametrize("start", [0, 1, INTEGER_DIGITS_MAX - 1, 3 * INTEGER_DIGITS_MAX + 7])
def test_too_long_a_number_is_found_at_any_position(start: int) -> None:
    before = b" " * start

    check_numbers(before + b"1" * INTEGER_DIGITS_MAX + b" " * 9000)
    check_numbers(before + b'"' + b"1" * (INTEGER_DIGITS_MAX + 1) + b'"')
    with pytest.raises(Invalid, match="digits"):
        check_numbers(before + b"1" * (INTEGER_DIGITS_MAX + 1))
