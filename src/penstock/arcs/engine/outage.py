"""Pauses of an engine while an object store or a cluster is away.

A lot that meets an outage is released without losing a try. New claims would only end the same
way. The engine first probes what it depends on, less and less often while that is away.
"""

import logging
import threading
import time
from collections.abc import Callable

from penstock.errors import PenstockError

log = logging.getLogger(__name__)

# How long a released lot rests, also for engines that have not met the outage.
REST_SECONDS = 5
_PROBE_SECONDS = 1.0
_PROBE_SECONDS_MAX = 60.0


class Outage:
    """The outages that one engine has met; safe to share between threads.

    Each of `probes` raises an error while its service does not answer.
    """

    def __init__(self, *probes: Callable[[], None]) -> None:
        self._probes = probes
        self._met = threading.Event()
        self._pause = _PROBE_SECONDS
        self._probe_at = 0.0

    def meet(self) -> int:
        """Record an outage; return how many seconds the lot should rest."""
        self._met.set()
        return REST_SECONDS

    def is_over(self) -> bool:
        """Whether lots may be claimed; probes now and then during an outage."""
        if not self._met.is_set():
            return True
        if time.monotonic() < self._probe_at:
            return False
        self._met.clear()  # the probe does not cover an outage that is met from now on
        try:
            for probe in self._probes:
                probe()
        except PenstockError as error:
            self._met.set()
            self._probe_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _PROBE_SECONDS_MAX)
            log.warning("no lots are claimed during an outage: %s", error)
            return False
        self._pause = _PROBE_SECONDS
        log.info("the outage is over: lots are claimed")
        return True
