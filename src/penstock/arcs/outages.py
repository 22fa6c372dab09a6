"""While an object store or cluster does not answer: when lots are claimed again.

A lot that met it is given back unharmed. To claim more would only make more runs that end the same
way, so the engine asks what it works with first, and less and less often while that is away.
"""

import logging
import threading
import time
from collections.abc import Callable

from penstock.errors import PenstockError

log = logging.getLogger(__name__)

# A lot that was given back rests so long: other engines, which have not met it, leave it alone too.
REST_SECONDS = 5
_ASK_SECONDS = 1.0
_ASK_SECONDS_MAX = 60.0


class Outage:
    """What one engine knows of all that it works with; safe to share between threads.

    Each of `asks` raises an error while what it asks does not answer.
    """

    def __init__(self, *asks: Callable[[], None]) -> None:
        self._asks = asks
        self._met = threading.Event()
        self._pause = _ASK_SECONDS
        self._ask_at = 0.0

    def meet(self) -> int:
        """Somebody has found something that he needs away; his lot rests so long."""
        self._met.set()
        return REST_SECONDS

    def is_over(self) -> bool:
        """Whether lots may be claimed; asks, but not all the time."""
        if not self._met.is_set():
            return True
        if time.monotonic() < self._ask_at:
            return False
        self._met.clear()  # whoever meets it from now on is not covered by this answer
        try:
            for ask in self._asks:
                ask()
        except PenstockError as error:
            self._met.set()
            self._ask_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _ASK_SECONDS_MAX)
            log.warning("no lots are claimed until this is over: %s", error)
            return False
        self._pause = _ASK_SECONDS
        log.info("what was away answers: lots are claimed")
        return True
