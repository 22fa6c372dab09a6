"""Which lots an event names: every way to say it, and every way to say it wrong."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import ids
from penstock.catalog.events.parse import Event, Limits, read_event
from penstock.locks.events.lot_facet import (
    LOTS_MAX,
    REFUSED_MAX,
    read_error,
    read_lots,
    read_producer,
)

INPUT = ids.dataset_id("shop", "raw")
OUTPUT = ids.dataset_id("shop", "clean")


def event(
    run: Any = None, read: Any = None, written: Any = None, where: str = "facets", **more: Any
) -> Event:
    """An event with these facets on its run, its input and its output."""
    body = {
        "eventTime": "2026-11-15T10:00:00Z",
        "eventType": "START",
        "run": {"runId": "r1", "facets": run or {}},
        "job": {"namespace": "shop", "name": "load"},
        "inputs": [{"namespace": "shop", "name": "raw", where: read or {}}],
        "outputs": [{"namespace": "shop", "name": "clean", where: written or {}}],
        **more,
    }
    return read_event(json.dumps(body).encode(), Limits())


def partitions(*given: Any) -> dict[str, Any]:
    return {"type": "partition", "partitions": list(given)}


def test_an_event_without_such_facets_names_nothing() -> None:
    found = read_lots(event(run={"nominalTime": {"nominalStartTime": "2026-11-15T00:00:00Z"}}))
    assert not found
    assert found.refused == ()


def test_a_run_facet_names_the_lots_of_every_dataset() -> None:
    found = read_lots(event(run={"penstock_lot": {"lot": "10", "lots": ["9", "10"]}}))
    assert (found.of_run, found.inputs, found.outputs) == (("9", "10"), {}, {})


def test_a_dataset_facet_names_the_lots_of_its_dataset() -> None:
    found = read_lots(event(read={"penstock_lot": {"lot": "1"}}))
    assert (found.of_run, found.inputs, found.outputs) == ((), {INPUT: ("1",)}, {})


def test_the_facets_of_each_side_are_read_on_that_side() -> None:
    facet = {"penstock_lot": {"lot": "1"}}
    assert read_lots(event(read=facet, written=facet, where="inputFacets")).outputs == {}
    assert read_lots(event(read=facet, written=facet, where="outputFacets")).inputs == {}


def test_a_partition_is_a_lot() -> None:
    condition = partitions(
        {"identifier": "2024-10-15-PL", "dimensions": {"day": "2024-10-15", "country": "PL"}},
        {"dimensions": {"day": "2024-10-15", "country": "DE", "shard": 7, "final": True}},
    )
    found = read_lots(
        event(written={"subset": {"outputCondition": condition}}, where="outputFacets")
    )
    assert set(found.outputs[OUTPUT]) == {
        "2024-10-15-PL",
        "country=DE,day=2024-10-15,final=true,shard=7",
    }


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "location", "locations": ["s3://bucket/1"]},
        {"type": "compare", "left": {"type": "field", "field": "day"}, "comparison": "EQUAL"},
        {"type": "binary", "operator": "AND", "left": partitions({"identifier": "1"})},
        {"type": "partition"},
        {"type": "partition", "partitions": "1"},
        {"partitions": [{"identifier": "1"}]},
        "day=1",
    ],
)
def test_other_conditions_name_no_lot(condition: Any) -> None:
    subset = {"subset": {"inputCondition": condition}}
    found = read_lots(event(read=subset, where="inputFacets"))
    assert not found
    assert found.refused == ()


def test_ids_that_no_lot_can_have_are_told_and_the_others_count() -> None:
    bad = ["", "a/b", " 1", "..", "20240230PT24H", "x\x00"]
    found = read_lots(event(run={"penstock_lot": {"lots": ["1", *bad]}}))
    assert found.of_run == ("1",)
    assert len(found.refused) == len(bad)
    assert not any("\x00" in text for text in found.refused)


def test_few_refusals_are_told_of_many() -> None:
    found = read_lots(event(run={"penstock_lot": {"lots": [f"/{n}" for n in range(100)]}}))
    assert (found.of_run, len(found.refused)) == ((), REFUSED_MAX)


def test_an_event_with_too_many_lots_locks_none_of_them() -> None:
    lots = [str(number) for number in range(LOTS_MAX + 1)]
    found = read_lots(event(run={"penstock_lot": {"lots": lots}}))
    assert not found
    assert str(LOTS_MAX + 1) in found.refused[0]
    everything = read_lots(event(run={"penstock_lot": {"lots": lots[:-1]}}))
    assert len(everything.of_run) == LOTS_MAX


def test_who_sent_an_event_and_why_its_run_failed() -> None:
    failed = event(run={"errorMessage": {"message": "disk\x00 full"}}, producer="airflow")
    assert (read_producer(failed), read_error(failed)) == ("airflow", "disk full")
    strange = event(run={"errorMessage": {"message": 5}}, producer=5)
    assert (read_producer(strange), read_error(strange)) == ("", "")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lot", "lots", "inputCondition", "type", "partitions", "identifier"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(values, values)
def test_whatever_the_facets_hold_they_are_read(of_run: Any, of_side: Any) -> None:
    facets = {"penstock_lot": of_side, "subset": of_side}
    found = read_lots(event(run={"penstock_lot": of_run}, read=facets, where="inputFacets"))
    assert set(found.inputs) <= {INPUT}
    assert all(lot == lot.strip() and "/" not in lot for lot in found.of_run)
