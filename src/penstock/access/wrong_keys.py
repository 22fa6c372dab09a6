"""Wrong keys: limited by the caller's address, and reported in the audit log.

Keys are too long to guess, so a valid key always works. The limit keeps a program that tries keys
from filling the log. The audit log gets one entry for all wrong keys of a period, and periods grow
while the attempts continue.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address, ip_network

from msgspec import Struct

from penstock.access import audit
from penstock.access.caller import called_from, parse_address
from penstock.clock import Clock
from penstock.db import Database
from penstock.errors import Busy, PenstockError

LIMIT = 20  # wrong keys of one address in a window; further ones get 429
WINDOW_SECONDS = 60.0
PERIOD_SECONDS_MAX = 3600.0
ADDRESSES_MAX = 10_000
_SHOWN_MAX = 5
_OTHERS = "other addresses"
_IPV6_BITS = 64  # one client usually owns a whole /64 network

_log = logging.getLogger(__name__)


class _Window(Struct):
    ends_at: float
    count: int = 0


class WrongKeys:
    """Counts wrong keys; every method may be called from any thread."""

    def __init__(
        self, database: Database, *, clock: Clock, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        self._unreported: Counter[str] = Counter()
        self._period = WINDOW_SECONDS
        self._next_report_at = float("-inf")
        self._timer: threading.Timer | None = None

    def note(self, address: str) -> None:
        """Count a wrong key; raise Busy if its address sent too many."""
        now = self._seconds()
        with self._lock:
            source = _source(address)
            if source not in self._windows and len(self._windows) >= ADDRESSES_MAX:
                self._windows = {s: w for s, w in self._windows.items() if w.ends_at > now}
                source = source if len(self._windows) < ADDRESSES_MAX else _OTHERS
            window = self._windows.get(source)
            if window is None or window.ends_at <= now:
                window = self._windows[source] = _Window(now + WINDOW_SECONDS)
            window.count += 1
            self._unreported[source] += 1
            is_due = now >= self._next_report_at and self._unreported.total() >= LIMIT
        if is_due:
            self.report()
        if window.count > LIMIT:
            raise Busy(
                f"{LIMIT} wrong keys came from this address within a minute; send a good key, "
                "or wait",
                retry_after_seconds=max(1, round(window.ends_at - now)),
            )

    def report(self) -> None:
        """Write one entry about all wrong keys since the last one."""
        now = self._seconds()
        with self._lock:
            counts, self._unreported = self._unreported, Counter()
            if not counts:
                return
            goes_on = now < self._next_report_at + self._period
            self._period = min(2 * self._period, PERIOD_SECONDS_MAX) if goes_on else WINDOW_SECONDS
            self._next_report_at = now + self._period
            self._schedule()
        [(first, _)] = counts.most_common(1)
        shown = ", ".join(f"{count} from {each}" for each, count in counts.most_common(_SHOWN_MAX))
        more = f", and {len(counts) - _SHOWN_MAX} other addresses" * (len(counts) > _SHOWN_MAX)
        detail = f"{counts.total()} wrong keys: {shown}{more}"
        _log.warning("keys were refused: %s", detail)
        try:
            with self._database.write() as tx, called_from(first):
                audit.append(tx, self._clock(), "unknown", "refuse keys", first, detail)
        except PenstockError as error:
            _log.warning("the refused keys are not in the audit log: %s", error)

    def close(self) -> None:
        """Report the remaining wrong keys."""
        if self._timer is not None:
            self._timer.cancel()
        self.report()
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        """Schedule the next report, in case no further wrong key triggers it."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(self._period, self.report)
        self._timer.daemon = True
        self._timer.start()


def _source(address: str) -> str:
    """Return the unit of counting: an IPv4 address, or the network of an IPv6 address."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, _IPV6_BITS), strict=False))
    return address
