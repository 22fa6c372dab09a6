"""Claims kept alive while their holder works, in tasks of the event loop."""

import asyncio

from penstock.client.heartbeats import Kept
from penstock.client.operation import Awaiting


class AsyncHeartbeats:
    """Sends heartbeats from tasks of the event loop, one for each claim."""

    def __init__(self, caller: Awaiting) -> None:
        self._caller = caller
        self._tasks: dict[Kept, asyncio.Task[None]] = {}

    def keep(self, kept: Kept, seconds: float) -> None:
        """Begin with a heartbeat in so many seconds."""
        self.drop(kept)
        self._tasks[kept] = asyncio.create_task(self._beat(kept, seconds), name="heartbeats")

    def drop(self, kept: Kept) -> None:
        """Send no more; one that is under way may still arrive."""
        task = self._tasks.pop(kept, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Send none any more."""
        tasks = list(self._tasks.values())
        for kept in list(self._tasks):
            self.drop(kept)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _beat(self, kept: Kept, seconds: float) -> None:
        again: float | None = seconds
        while again is not None:
            await asyncio.sleep(again)
            again = await self._caller._perform(kept.beat())
        self._tasks.pop(kept, None)
