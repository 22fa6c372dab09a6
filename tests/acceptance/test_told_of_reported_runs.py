"""Who follows lots is told of those that a reported run has made, and of no others."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.catalog.events.parse import Limits, read_event
from penstock.clock import format_time
from penstock.ids import new_id
from penstock.locks.events.reported_runs import LockingEvent
from tests.acceptance.flow_site import LOT, NS, Flow

Named = dict[str, Any]
OTHER = "another lot"


def made(dataset: str, *lots: str, namespace: str = NS) -> Named:
    """A dataset, with the lots of it that the run names."""
    facets = {"penstock_lot": {"lots": lots}} if lots else {}
    return {"namespace": namespace, "name": dataset, "facets": facets}


def report(
    flow: Flow,
    *outputs: Named,
    reads: Sequence[Named] = (),
    lot: str | None = None,
    run: str | None = None,
    end: str = "COMPLETE",
    **how: Any,
) -> None:
    """A run of a job, from its start to its end."""
    facets = {} if lot is None else {"penstock_lot": {"lot": lot}}
    named = {"runId": run or new_id(), "facets": facets}
    for kind in ("START", end):
        body = {
            "eventType": kind,
            "eventTime": format_time(flow.now),
            "producer": "test",
            "run": named,
            "job": {"namespace": NS, "name": "load"},
            "inputs": reads,
            "outputs": outputs,
        }
        flow.do(LockingEvent(read_event(msgspec.json.encode(body), Limits()), **how))


def told(flow: Flow) -> list[tuple[str, str]]:
    return sorted((event.dataset.name, event.lot) for event in flow.events())


def test_each_lot_is_told_of_the_datasets_that_it_was_made_of(flow: Flow) -> None:
    report(flow, made("clean", LOT), made("rejects", OTHER))
    assert told(flow) == [("clean", LOT), ("rejects", OTHER)]


def test_a_dataset_that_is_not_made_lot_by_lot_has_no_lots_to_tell_of(flow: Flow) -> None:
    flow.wire("load", [], ["clean"])
    report(flow, made("clean"), made("metrics"), lot=LOT)
    assert told(flow) == [("clean", LOT)]


def test_with_a_key_for_one_namespace_nobody_is_told_of_lots_elsewhere(flow: Flow) -> None:
    report(flow, made("clean"), made("cellar", namespace="drink"), lot=LOT, within=NS)
    assert told(flow) == [("clean", LOT)]
