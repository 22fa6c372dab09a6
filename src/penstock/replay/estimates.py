"""How long steps that wait for each other take: alone, one after the other, and side by side."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from penstock.clock import Micros

K = TypeVar("K", bound=Hashable)

Before = Sequence[Sequence[int]]  # for each step the places of those it waits for


def in_order(before: Mapping[K, Iterable[K]], rank: Callable[[K], Any]) -> list[K]:
    """Keys, each after all that it waits for; where that leaves a choice, by rank.

    If some wait for each other in a circle, which wiring that was changed can lead to, the first
    of them by rank is let go first.
    """
    waits = {key: set(others) for key, others in before.items()}
    after: dict[K, list[K]] = {key: [] for key in before}
    for key, others in waits.items():
        for other in others:
            after[other].append(key)
    ranked = sorted(before, key=rank)
    place = {key: number for number, key in enumerate(ranked)}
    free = [place[key] for key in ranked if not waits[key]]
    heapify(free)
    stuck = iter(ranked)
    done: dict[K, None] = {}
    while len(done) < len(ranked):
        if not free:
            free.append(place[next(key for key in stuck if key not in done)])
        key = ranked[heappop(free)]
        if key in done:
            continue
        done[key] = None
        for other in after[key]:
            waits[other].discard(key)
            if not waits[other] and other not in done:
                heappush(free, place[other])
    return list(done)


def depths(before: Before) -> list[int]:
    """How many steps are before each, on the longest way to it."""
    found: list[int] = []
    for earlier in before:
        found.append(max((found[place] + 1 for place in earlier), default=0))
    return found


def critical_path(before: Before, micros: Sequence[Micros]) -> Micros:
    """How long it takes when everything that can run side by side does."""
    ends: list[Micros] = []
    for earlier, own in zip(before, micros, strict=True):
        ends.append(max((ends[place] for place in earlier), default=0) + own)
    return max(ends, default=0)


def wall_time(before: Before, micros: Sequence[Micros], at_once: int) -> Micros:
    """How long it takes when so many run side by side, the first in order first."""
    after: list[list[int]] = [[] for _ in before]
    waits = [len(earlier) for earlier in before]
    for place, earlier in enumerate(before):
        for other in earlier:
            after[other].append(place)
    free = [place for place, count in enumerate(waits) if not count]
    running: list[tuple[Micros, int]] = []
    now: Micros = 0
    while free or running:
        while free and len(running) < at_once:
            place = heappop(free)
            heappush(running, (now + micros[place], place))
        now, place = heappop(running)
        for other in after[place]:
            waits[other] -= 1
            if not waits[other]:
                heappush(free, other)
    return now
