"""Every kind of failure fails the lot at once, with the reason."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from penstock.arcs.engine import lot_run
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.executors.local import LocalProcesses, LocalThreads
from penstock.arcs.outputs.cleaning import clean_lot
from penstock.arcs.spec import Output, Parts
from penstock.errors import Unavailable
from penstock.objects import Objects
from penstock.schema.arcs import EmptyOutput
from penstock.states import ArcState, WorkState
from tests.acceptance.arc_site import NS, ONCE, ArcSite

LOT = "20230227PT5M287"
ORDERS = {
    "exit": "SystemExit: no more of this",
    "interrupt": "KeyboardInterrupt: somebody is at the door",
    "mutter": "OrderedFailure: half a character \\ud800, and ",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("executor", [LocalProcesses, LocalThreads])
def test_any_exception_of_a_workload_fails_its_lot(
    arcs: ArcSite, order: str, executor: Callable[[int], AbstractContextManager[TaskExecutor]]
) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.arc("parts", "raw", "parts", parts=Parts(bytes_max=10), retry=ONCE)
    arcs.order(LOT, order)
    arcs.order(LOT, order, part="00000")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with executor(2) as workers, arcs.engine(workers):
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
        arcs.until_state("parts", LOT, ArcState.PARTIAL)
    assert arcs.lot("shout", LOT).error == ORDERS[order]
    assert str(arcs.lot("parts", LOT).error).endswith(ORDERS[order])
    assert len(arcs.ran()) == 2


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("no_parts", "no_parts gives NoneType; let it give URIs by part"),
        ("refuse_parts", "refuse_parts cannot split the lot: SystemExit: it cannot be divided"),
        ("parts_as_ordered", "parts_as_ordered cannot split the lot: FileNotFoundError: "),
        ("nowhere", "there is no function tests.acceptance.arc_workloads:nowhere"),
    ],
)
def test_failing_split_function_fails_the_lot(arcs: ArcSite, function: str, told: str) -> None:
    parts = Parts(function=f"tests.acceptance.arc_workloads:{function}")
    arcs.arc("shout", "raw", "loud", parts=parts, retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    assert told in str(arcs.lot("shout", LOT).error)


def test_error_in_the_engine_fails_the_lot(arcs: ArcSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*given: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    monkeypatch.setattr(lot_run, "input_lots", stumble)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    assert arcs.lot("shout", LOT).error == "ZeroDivisionError: a mistake of ours"


def test_full_store_records_failures_and_can_be_cleaned(
    arcs: ArcSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of leftovers does not fit: the data is deleted before any write."""
    outputs = (Output(dataset="nothing", empty=EmptyOutput.ALLOW), Output(dataset="loud"))
    arcs.arc("shout", "raw", "", "spill", outputs=outputs, retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    put = Objects.put

    def put_if_there_is_room(objects: Objects, key: str, data: bytes, **how: bool) -> None:
        if key.startswith("datasets/") and arcs.data("loud", LOT):
            raise Unavailable("No space left on device")
        put(objects, key, data, **how)

    monkeypatch.setattr(Objects, "put", put_if_there_is_room)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    assert arcs.lot("shout", LOT).error == "No space left on device"
    assert arcs.lot("shout", LOT).work is WorkState.HELD
    clean_lot(arcs.catalog, arcs.objects, "ann", "no room", NS, "shout", LOT)
    assert arcs.state("shout", LOT) == ArcState.MISSING
    assert arcs.data("loud", LOT) == []
