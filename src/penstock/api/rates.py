"""How many requests, and bytes of bodies, a key may send in a second."""

import math
import time
from collections.abc import Callable

from penstock.access.keys import Key
from penstock.errors import Busy

# A key that was quiet may send this many seconds' worth at once.
BURST_SECONDS = 2
# Buckets of keys that were revoked, or are full again, are dropped once there are more.
_BUCKETS_MAX = 10_000


class _Bucket:
    """What a key may still send; it fills up by the rate, and may be overdrawn by one request."""

    __slots__ = ("level", "rate", "since")

    def __init__(self, rate: int, now: float) -> None:
        self.rate = rate
        self.level = float(rate * BURST_SECONDS)
        self.since = now

    def fill(self, now: float) -> None:
        self.level = min(self.rate * BURST_SECONDS, self.level + (now - self.since) * self.rate)
        self.since = now

    @property
    def seconds_left(self) -> int:
        """How long until it holds something again; 0 if it does."""
        return 0 if self.level > 0 else max(1, math.ceil(-self.level / self.rate))


class Rates:
    """The rates of all keys of one server. Used by its event loop, and by threads of uploads."""

    def __init__(
        self,
        requests_per_second: int,
        bytes_per_second: int,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests_per_second = requests_per_second
        self._bytes_per_second = bytes_per_second
        self._seconds = seconds
        self._requests: dict[str, _Bucket] = {}
        self._bytes: dict[str, _Bucket] = {}

    def count_request(self, key: Key) -> None:
        """Count a request of a key, or raise Busy if the key sends too many or too much."""
        rate = _rate(key.requests_per_second, self._requests_per_second)
        bytes_rate = _rate(key.bytes_per_second, self._bytes_per_second)
        if not key.id or not (rate or bytes_rate):
            return
        now = self._seconds()
        if bytes_rate:
            self._check(self._filled(self._bytes, key, bytes_rate, now), key, "bytes")
        if rate:
            bucket = self._filled(self._requests, key, rate, now)
            self._check(bucket, key, "requests")
            bucket.level -= 1

    def count_bytes(self, key: Key, size: int) -> None:
        """Count what a key has sent; what is too much delays its next request."""
        rate = _rate(key.bytes_per_second, self._bytes_per_second)
        if key.id and rate:
            self._filled(self._bytes, key, rate, self._seconds()).level -= size

    def _filled(self, buckets: dict[str, _Bucket], key: Key, rate: int, now: float) -> _Bucket:
        bucket = buckets.get(key.id)
        if bucket is None or bucket.rate != rate:
            if len(buckets) >= _BUCKETS_MAX:
                buckets.clear()
            bucket = buckets[key.id] = _Bucket(rate, now)
        bucket.fill(now)
        return bucket

    def _check(self, bucket: _Bucket, key: Key, unit: str) -> None:
        if seconds := bucket.seconds_left:
            raise Busy(
                f"key {key.name!r} sends more than {bucket.rate} {unit} per second; "
                f"wait {seconds} s, or ask an administrator for a higher rate",
                retry_after_seconds=seconds,
            )


def _rate(own: int | None, default: int) -> int:
    return default if own is None else own
