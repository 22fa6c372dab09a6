"""How texts are cut into the words that both databases index."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.events.schema import read_schema
from penstock.catalog.queries.search import BODY_CHARS_MAX, search_body


def words_of(body: str) -> Iterator[str]:
    """Return the words of a body without the parts of names, which begin with a digit."""
    return (word for word in body.split() if not word[0].isdigit())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orders", ["orders"]),
        ("ordersDaily_v2", ["orders", "daily", "ordersdaily", "v2", "ordersdailyv2"]),
        ("public.orders-daily", ["public", "orders", "daily", "ordersdaily"]),
        ("HTTPServerLog", ["http", "server", "log", "httpserverlog"]),
        ("s3://Bucket/year=2024", ["s3", "bucket", "year", "n2024"]),
        ("V2 ID42", ["v2", "id42"]),
        ("Zoë Straße", ["zoe", "strasse"]),
        ("８Ｋ", ["n8", "k", "n8k"]),
        ("東京", ["u6771u4eac"]),
        ("-- __ ''\"", []),
        ("", []),
    ],
)
def test_words_are_split_at_signs_and_capitals_and_joined(text: str, words: list[str]) -> None:
    assert list(words_of(search_body("", text))) == words


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("daily", "1d 2da 3daily 1a 2ai 3aily 1i 2il 3ily 1l 2ly 1y"),
        ("V2", "1v 2v2 12"),
        ("東京x", "1u6771 2u6771u4eac 3u6771u4eacx 1u4eac 2u4eacx 1x"),
        ("", ""),
    ],
)
def test_parts_are_letters_pairs_and_ends_of_words(text: str, parts: str) -> None:
    words = search_body("", text).split()
    assert " ".join(word for word in words if word[0].isdigit()) == parts


@given(st.text())
def test_both_databases_index_every_word_as_one(text: str) -> None:
    words = search_body("", text).split()
    assert all(re.fullmatch(r"([a-z]|[123][a-z0-9])[a-z0-9]{0,63}", word) for word in words)
    assert len(set(words)) == len(words)


def test_a_body_has_words_of_names_description_fields_tags() -> None:
    fields, _ = read_schema(
        b'{"fields": [{"name": "a", "description": "first", "fields": [{"name": "deep"}]}]}'
    )
    body = search_body("ns", "name", "About it", fields, '["gold"]', field_tags='{"a": ["pii"]}')
    assert " ".join(sorted(words_of(body))) == "a about deep first gold it name ns pii"


def test_too_long_a_body_is_cut_after_the_name() -> None:
    body = search_body("ns", "orders", " ".join(f"word{n}" for n in range(50_000)))
    assert len(body) <= BODY_CHARS_MAX
    assert " ".join(words_of(body)).startswith("orders ns word0 ")
    assert re.fullmatch(r"word[0-9]+", body.split()[-1])
