"""How deep JSON nests, found out before anything recurses into it."""

import pytest

from penstock.catalog.json_text import check_depth
from penstock.errors import TooLarge


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 3,
        b'{"a": {"b": {}}}',
        b'["]]]", "\\"]]]", [[1]]]',
    ],
)
def test_what_nests_deeper_than_allowed_is_refused(body: bytes) -> None:
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
def test_brackets_side_by_side_or_inside_texts_do_not_nest(body: bytes) -> None:
    check_depth(body, 2)


def test_a_text_without_an_end_is_read_once() -> None:
    """Who looked for its end from every quote again would be at it for hours."""
    check_depth(b"[{}," + b"{}," * 70 + b'"\\' * 3_000_000, 2)
