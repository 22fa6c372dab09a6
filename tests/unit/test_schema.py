"""Fields of a dataset, read from any content of a schema facet."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.events.schema import load_fields, read_schema, schema_id, with_tags

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "fields", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_fields_keep_name_type_and_description() -> None:
    facet = b'{"fields": [{"name": "id", "type": "INT", "description": "the key"}, {"name": "x"}]}'
    fields, _ = read_schema(facet)
    assert msgspec.json.decode(fields) == [
        {"name": "id", "type": "INT", "tags": [], "description": "the key"},
        {"name": "x", "type": None, "tags": [], "description": None},
    ]


def test_nested_fields_are_kept() -> None:
    facet = b'{"fields": [{"name": "a", "type": "STRUCT", "fields": [{"name": "b"}]}]}'
    [outer] = msgspec.json.decode(read_schema(facet)[0])
    assert outer["fields"] == [{"name": "b", "type": None, "tags": [], "description": None}]


def test_other_facet_content_does_not_change_the_schema() -> None:
    one = read_schema(b'{"_producer": "p", "fields": [{"name": "id", "type": "INT"}]}')
    same = read_schema(b'{"fields":[{"type":"INT","name":"id","fields":[]}],"_schemaURL":"s"}')
    other = read_schema(b'{"fields": [{"name": "id", "type": "BIGINT"}]}')
    assert one == same
    assert one[1] == schema_id(one[0]) != other[1]


def test_a_long_facet_is_not_cached() -> None:
    """Each equal text is another object, and thousands of them would fill the memory."""
    names = ",".join(f'{{"name": "{number}"}}' for number in range(1000))
    long, other = (f'{{"fields": [{names}]}}'.encode() for _ in range(2))
    assert read_schema(long) == read_schema(other)
    assert read_schema(long)[0] is not read_schema(other)[0]
    short, same = (b'{"fields": [{"name": "id"}]}' for _ in range(2))
    assert read_schema(short)[0] is read_schema(same)[0]


@pytest.mark.parametrize(
    "junk",
    [b"", b"nonsense", b"\xff", b"null", b"[]", b'"fields"', b"{}", b'{"fields": null}',
     b'{"fields": {"name": "id"}}', b'{"fields": [1, null, "id", {"type": "INT"}, {"name": 7}]}',
     b'{"fields": [{"name": "a\\u0000"}]}'],
)  # fmt: skip
def test_an_invalid_facet_is_a_schema_without_fields(junk: bytes) -> None:
    assert read_schema(junk) == ("[]", schema_id("[]"))


@given(JSON)
def test_fields_of_any_facet_can_be_loaded_again(value: object) -> None:
    fields, _ = read_schema(msgspec.json.encode({"fields": value}))
    assert msgspec.json.encode(load_fields(fields)).decode() == fields


def test_tags_are_added_to_their_fields() -> None:
    fields, _ = read_schema(b'{"fields": [{"name": "id"}, {"name": "mail"}]}')
    tagged = load_fields(with_tags(fields, '{"mail": ["pii", "raw"], "gone": ["x"]}'))
    assert [field.tags for field in tagged] == [(), ("pii", "raw")]
    assert with_tags(fields, "{}") == fields
