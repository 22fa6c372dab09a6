"""The number of the last write, asked for once however many want to know it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic

from penstock.db import Database

FRESH_SECONDS = 0.5


@dataclass
class Epochs:
    """Belongs to the event loop alone; the database is asked in a thread."""

    database: Database
    readers: ThreadPoolExecutor
    _last: int = 0
    _asked_at: float = -FRESH_SECONDS
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def last(self) -> int:
        """The number of the last write, as it was at most half a second ago."""
        async with self._turn:
            if monotonic() - self._asked_at >= FRESH_SECONDS:
                loop = asyncio.get_running_loop()
                self._last = await loop.run_in_executor(self.readers, self._read)
                self._asked_at = monotonic()
        return self._last

    def _read(self) -> int:
        with self.database.read() as tx:
            row = tx.fetch_one("last_epoch")
        return int(row[0]) if row is not None else 0
