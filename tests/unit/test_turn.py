"""The writer's turn: one block at a time, sent writes together, and no starvation."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.db.turn import Turn
from tests.patience import HANG_SECONDS


def wait_for_threads(turn: Turn, count: int) -> None:
    """Return when this many threads wait."""
    waits = threading.Event()
    while turn.waiting < count:
        waits.wait(0.001)


def test_a_waiting_block_precedes_the_next_write_of_a_series() -> None:
    turn, order = Turn(), list[str]()

    def block() -> None:
        with turn:
            order.append("block")

    def send() -> None:
        assert turn.board("c", "b"), "the row before it has ended"
        order.append("sent")
        turn.leave()

    with ThreadPoolExecutor(2) as threads:
        assert turn.board("a", "")
        assert not turn.board("b", "a"), "the second of a row"
        first = threads.submit(block)
        wait_for_threads(turn, 1)
        second = threads.submit(send)
        wait_for_threads(turn, 2)
        turn.leave()
        assert order == []
        turn.leave()
        first.result(HANG_SECONDS)
        second.result(HANG_SECONDS)
    assert order == ["block", "sent"]
    assert turn.waiting == 0


def test_a_write_outside_a_series_waits_for_its_end() -> None:
    turn, order = Turn(), list[str]()

    def send() -> None:
        assert turn.board("other", ""), "the row before it has ended"
        order.append("other")
        turn.leave()

    with ThreadPoolExecutor(1) as threads:
        assert turn.board("a", "")
        other = threads.submit(send)
        wait_for_threads(turn, 1)
        assert order == []
        turn.leave()
        other.result(HANG_SECONDS)
    assert order == ["other"]


def test_a_nested_block_of_one_thread_is_refused() -> None:
    turn = Turn()
    with turn:
        with pytest.raises(RuntimeError, match="writing already"), turn:
            pytest.fail("it had the turn twice")
        assert turn.waiting == 0
    with turn:
        assert turn.waiting == 0
