"""Ids: the same name gives the same id, and different names give different ids."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ids import dataset_id, derived_id, job_id, keyed_id, new_id, run_id, run_version_id

RUN = "0190a3c8-7b1e-7c3a-9f52-5d6a1e0b2c44"


def test_derived_ids_never_change() -> None:
    assert dataset_id("shop", "orders") == "37a290bd-63ad-8595-adbd-30d548b833ce"
    assert job_id("shop", "load_orders") == "6e80bb95-e493-8ce7-afff-7367ec6d7ab7"
    assert (
        run_version_id(dataset_id("shop", "orders"), RUN) == "0190a3c8-7b1e-7ebe-a938-43508e77fb7f"
    )


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_derived_id_is_a_lower_case_version_8_uuid(parts: list[str]) -> None:
    text = derived_id(*parts)
    assert text == str(uuid.UUID(text)) == derived_id(*parts)
    assert uuid.UUID(text).version == 8
    assert uuid.UUID(text).variant == uuid.RFC_4122


def test_different_things_have_different_ids() -> None:
    names = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a/b", ""), ("A", "b")]
    ids = {make(*name) for make in (dataset_id, job_id) for name in names}
    assert len(ids) == 2 * len(names)


def test_a_uuid_as_run_id_is_kept_in_lower_case() -> None:
    assert run_id(RUN) == RUN
    assert run_id(RUN.upper()) == RUN


@pytest.mark.parametrize("text", ["", "nightly-2026-11-15", "z" * 36, RUN.replace("-", ""), "é"])
def test_any_other_run_id_always_maps_to_one_uuid(text: str) -> None:
    mapped = run_id(text)
    assert mapped == run_id(text) == run_id(mapped)
    assert uuid.UUID(mapped).version == 5


def test_new_ids_are_distinct_and_ordered_by_time() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    moments = [text[:13] for text in ids]
    assert moments == sorted(moments)
    assert {(uuid.UUID(text).version, uuid.UUID(text).variant) for text in ids} == {
        (7, uuid.RFC_4122)
    }


@given(st.one_of(st.text(), st.uuids().map(str)), st.text())
def test_a_key_always_gives_the_same_id(key: str, part: str) -> None:
    text = keyed_id(key, part)
    assert text == str(uuid.UUID(text)) == keyed_id(key, part)
    assert text != keyed_id(key, part + "x")


def test_an_id_has_the_time_of_its_key() -> None:
    keys = [new_id() for _ in range(100)]
    ids = [keyed_id(key, "claim") for key in keys]
    assert [text[:15] for text in ids] == [key[:15] for key in keys]
    assert len({text[15:] for text in ids}) == len(ids)
    assert {uuid.UUID(text).variant for text in ids} == {uuid.RFC_4122}
