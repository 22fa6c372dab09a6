"""Where a job stands with a lot, over every combination of the rows that decide it."""

from itertools import product

import pytest

from penstock.locks.work import work_state
from penstock.schema.lots import Status
from penstock.states import WORK, WorkState

STATUSES = (None, *Status)
TO_READ = {Status.READY}
TO_WRITE = {None, Status.RESUBMIT, Status.ERROR}
TO_USE = {None, Status.ERROR}


def expected(
    inputs: list[Status | None],
    outputs: list[Status | None],
    own: list[Status | None],
    later: bool,
) -> WorkState:
    """The rule in words: held, else used up, else not possible yet, else when it may be tried."""
    if any(status == Status.HOLD for status in own):
        return WorkState.HELD
    if set(own) - TO_USE:
        return WorkState.DONE
    if set(inputs) - TO_READ or set(outputs) - TO_WRITE:
        return WorkState.WAITING
    return WorkState.LATER if later else WorkState.READY


def wrong(
    inputs: list[Status | None], outputs: list[Status | None], own: list[Status | None]
) -> list[object]:
    return [
        (inputs, outputs, own, later, found)
        for later in (False, True)
        if (found := work_state(inputs, outputs, own, later=later))
        != expected(inputs, outputs, own, later)
    ]


def test_one_input_and_one_output_in_every_combination() -> None:
    for source, made, own in product(STATUSES, repeat=3):
        assert wrong([source], [made], [own]) == []


def test_two_inputs_join_and_neither_makes_up_for_the_other() -> None:
    for first, second, own_first, own_second in product(STATUSES, repeat=4):
        assert wrong([first, second], [None], [own_first, own_second]) == []


def test_two_outputs_are_made_together_or_not_at_all() -> None:
    for first, second in product(STATUSES, repeat=2):
        assert wrong([Status.READY], [first, second], [None]) == []


def test_a_job_without_outputs_needs_only_its_inputs() -> None:
    for source, own in product(STATUSES, repeat=2):
        assert wrong([source], [], [own]) == []


@pytest.mark.parametrize("made", sorted(TO_WRITE, key=str))
@pytest.mark.parametrize("own", sorted(TO_USE, key=str))
def test_a_lot_is_runnable_when_its_input_is_ready_and_nothing_is_locked(
    made: Status | None, own: Status | None
) -> None:
    assert work_state([Status.READY], [made], [own], later=False) == WorkState.READY
    assert work_state([Status.READY], [made], [own], later=True) == WorkState.LATER


def test_nobody_is_runnable_without_inputs_that_are_ready_and_unlocked() -> None:
    for source, made, own in product(STATUSES, repeat=3):
        if source not in TO_READ or made not in TO_WRITE or own not in TO_USE:
            state = work_state([source], [made], [own], later=False)
            assert state not in (WorkState.READY, WorkState.LATER)


def test_it_never_says_running_because_only_a_claim_does() -> None:
    seen = {
        work_state([source], [made], [own], later=later)
        for source, made, own in product(STATUSES, repeat=3)
        for later in (False, True)
    }
    assert seen == set(WORK.states) - {WorkState.RUNNING}
