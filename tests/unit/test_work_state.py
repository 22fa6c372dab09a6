"""Where a job stands with a lot, over every combination of the rows that decide it."""

from itertools import product

from penstock.locks.work_state import classify
from penstock.schema.lots import Status
from penstock.states import WorkState

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
    return WorkState.RETRYABLE if later else WorkState.READY


def wrong(
    inputs: list[Status | None], outputs: list[Status | None], own: list[Status | None]
) -> list[object]:
    return [
        (inputs, outputs, own, later, found)
        for later in (False, True)
        if (found := classify(inputs, outputs, own, is_backing_off=later))
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
