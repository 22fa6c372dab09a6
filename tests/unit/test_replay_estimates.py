"""The order of dependent steps, and their duration in parallel."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from penstock.operations.replays.plan import critical_path, depths, in_order, wall_time

DIAMOND = [[], [0], [0], [1, 2]]
TOOK = [1, 2, 3, 4]


@st.composite
def steps(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Steps with dependencies and durations."""
    count = draw(st.integers(0, 12))
    before = [
        sorted(draw(st.sets(st.integers(0, place - 1), max_size=3))) if place else []
        for place in range(count)
    ]
    took = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return before, took


def test_diamond_takes_its_longer_side_in_parallel() -> None:
    assert depths(DIAMOND) == [0, 1, 1, 2]
    assert critical_path(DIAMOND, TOOK) == 8
    assert wall_time(DIAMOND, TOOK, 2) == 8
    assert wall_time(DIAMOND, TOOK, 1) == 10


def test_no_steps_take_no_time() -> None:
    assert (depths([]), critical_path([], []), wall_time([], [], 3)) == ([], 0, 0)


@given(steps(), st.integers(1, 5))
def test_wall_time_is_between_critical_path_and_sum(
    found: tuple[list[list[int]], list[int]], at_once: int
) -> None:
    before, took = found
    wall = wall_time(before, took, at_once)
    least = max(critical_path(before, took), -(-sum(took) // at_once))
    assert least <= wall <= sum(took)
    assert wall_time(before, took, 1) == sum(took)
    assert wall_time(before, took, max(len(took), 1)) == critical_path(before, took)


@given(steps(), st.randoms(use_true_random=False))
def test_steps_follow_their_dependencies(
    found: tuple[list[list[int]], list[int]], chance: Random
) -> None:
    before, _ = found
    ranks = list(range(len(before)))
    chance.shuffle(ranks)
    order = in_order(dict(enumerate(before)), lambda key: ranks[key])
    assert sorted(order) == list(range(len(before)))
    place = {key: number for number, key in enumerate(order)}
    assert all(place[earlier] < place[key] for key in place for earlier in before[key])


def test_cycles_are_broken_by_rank() -> None:
    circle = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "e": []}
    assert in_order(circle, lambda key: key) == ["e", "a", "c", "b", "d"]
