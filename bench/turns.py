"""One turn of a system that hands out work: workers that claim and complete until time is over."""

import asyncio
import gc
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

Step = Callable[[], int]  # claims something and completes it; 0 when nothing was left
AsyncStep = Callable[[], Awaitable[int]]


class Turn(Struct, frozen=True):
    """What came of working for a while; a claim and its completion count as one."""

    claims: int
    seconds: float
    p50_ms: float  # from asking for work to its completion; 0 where it cannot be told
    ran_out: bool  # of work, before the time was over

    @property
    def rate(self) -> float:
        """Claims per second."""
        return self.claims / self.seconds if self.seconds else 0.0


class Queue(Protocol):
    """A system that hands out work, one piece at a time or many."""

    def fill(self, count: int) -> None:
        """Have so much more work waiting."""

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Let so many workers claim and complete, each so much at once."""

    def cpu_seconds(self) -> float:
        """The processor time used by the system and its workers, without the database."""

    def close(self) -> None:
        """Hang up."""


class Counter:
    """What the workers of one turn share."""

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
        """Whether nobody is to begin anything more."""
        return time.perf_counter() >= self._began + self._seconds

    def count(self, claims: int, began: float | None = None) -> None:
        """Take note of what was completed just now, and when work on it began."""
        self._last = time.perf_counter()
        self.claims += claims
        if began is not None:
            self._took.append(self._last - began)

    def turn(self) -> Turn:
        """What has come of it."""
        median = statistics.median(self._took) if self._took else 0.0
        return Turn(self.claims, self._last - self._began, 1000 * median, self.ran_out)


def in_threads(steps: Sequence[Step], seconds: float) -> Turn:
    """One thread for each worker."""
    failures: list[BaseException] = []
    counter = Counter(seconds)
    # Counting from several threads would lose some.
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
    """One task for each worker, all on one event loop; `last` completes what they still hold."""
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
