"""One turn of a queue: workers claim and complete until the time is over."""

import asyncio
import gc
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

Step = Callable[[], int]  # claims and completes; 0 when no work is left
AsyncStep = Callable[[], Awaitable[int]]


class Turn(Struct, frozen=True):
    """The result of a turn; a claim and its completion count as one."""

    claims: int
    seconds: float
    p50_ms: float  # from claim to completion; 0 if unknown
    ran_out: bool  # of work, within the turn

    @property
    def rate(self) -> float:
        """Return claims per second."""
        return self.claims / self.seconds if self.seconds else 0.0


class Queue(Protocol):
    """A queue that hands out work, in single pieces or in batches."""

    def fill(self, count: int) -> None:
        """Add waiting work."""

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Let workers claim and complete in batches."""

    def cpu_seconds(self) -> float:
        """Return the CPU time of the system and its workers, without the database."""

    def close(self) -> None:
        """Close the connections."""


class Counter:
    """The shared counter of the workers of a turn."""

    def __init__(self, seconds: float) -> None:
        gc.collect()
        self._seconds = seconds
        self._took: list[float] = []
        self.claims = 0
        self.ran_out = False
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._began = self._last = time.perf_counter()

    @property
    def is_over(self) -> bool:
        """Return whether the turn is over."""
        return time.perf_counter() >= self._began + self._seconds

    def count(self, claims: int, began: float | None = None) -> None:
        """Count completed work and its begin."""
        self._last = time.perf_counter()
        self.claims += claims
        if began is not None:
            self._took.append(self._last - began)

    def turn(self) -> Turn:
        """Return the result."""
        median = statistics.median(self._took) if self._took else 0.0
        return Turn(self.claims, self._last - self._began, 1000 * median, self.ran_out)


def in_threads(steps: Sequence[Step], seconds: float) -> Turn:
    """Run each worker in a thread."""
    failures: list[BaseException] = []
    counter = Counter(seconds)
    # Increments from several threads could get lost.
    lock = threading.Lock()

    def run(step: Step) -> None:
        try:
            while not counter.is_over:
                began = time.perf_counter()
                done = step()
                if not done:
                    counter.ran_out = True
                    return
                with lock:
                    counter.count(done, began)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=run, args=(step,), name=f"worker-{number}")
        for number, step in enumerate(steps)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return counter.turn()


async def in_tasks(
    steps: Sequence[AsyncStep], seconds: float, last: AsyncStep | None = None
) -> Turn:
    """Run each worker as a task of one event loop; `last` completes remaining claims."""
    counter = Counter(seconds)

    async def run(step: AsyncStep) -> None:
        while not counter.is_over:
            began = time.perf_counter()
            done = await step()
            if not done:
                counter.ran_out = True
                return
            counter.count(done, began)

    await asyncio.gather(*(run(step) for step in steps))
    if last is not None:
        counter.count(await last())
    return counter.turn()
