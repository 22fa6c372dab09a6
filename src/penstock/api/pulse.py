"""That something has changed, as server-sent events: a hint to look again, and nothing more."""

import asyncio
from dataclasses import dataclass
from time import monotonic

from penstock.api.answers import Flow, Write
from penstock.api.calls import Call
from penstock.api.epochs import FRESH_SECONDS
from penstock.api.routing import BASE, Reach, Route
from penstock.api.stream import EVENT_STREAM, HEARTBEAT_SECONDS, may_stay

# However much is written: whoever follows looks again after each hint.
QUIET_SECONDS = 1.0


async def follow_pulse(call: Call) -> Flow:
    """Stream a hint whenever something was committed, at most one each second.

    An event `changed` has the number of the last write as its `id`. It tells nothing of what was
    written, so that every key may follow it: look again at what is shown. The web page does.
    """
    call.door.relay.check_room()
    return Flow(EVENT_STREAM, _Following(call).pour)


@dataclass
class _Following:
    """One reader; `spoke` is when it last was told anything."""

    call: Call
    seen: int = 0
    spoke: float = 0.0

    async def pour(self, write: Write) -> None:
        door = self.call.door
        self.seen = await door.epochs.last()
        await self._say(write, f": following\nid: {self.seen}\n\n")
        while not door.stopping:
            await asyncio.sleep(FRESH_SECONDS)
            epoch = await door.epochs.last()
            quiet = monotonic() - self.spoke
            is_due = epoch != self.seen and quiet >= QUIET_SECONDS
            if (is_due or quiet >= HEARTBEAT_SECONDS) and not await may_stay(self.call):
                return
            if is_due:
                self.seen = epoch
                await self._say(write, f"id: {epoch}\nevent: changed\ndata: {epoch}\n\n")
            elif quiet >= HEARTBEAT_SECONDS:
                await self._say(write, ": still here\n\n")

    async def _say(self, write: Write, text: str) -> None:
        self.spoke = monotonic()
        await write(text.encode())


ROUTES = (Route("GET", f"{BASE}/pulse", follow_pulse, Reach.SHARED, media=EVENT_STREAM),)
