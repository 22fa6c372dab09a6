"""Signatures of messages to other programs.

A receiver may get a delivery several times, always with the same `Penstock-Delivery`. It checks
`Penstock-Signature` with `verify`, which receivers may use.
"""

import hashlib
import hmac
import re

from penstock.clock import SECOND, Micros

DELIVERY = "Penstock-Delivery"
SENDER = "Penstock-Sender"
SIGNATURE = "Penstock-Signature"
TOLERANCE_SECONDS = 300
_SECONDS = re.compile(r"[0-9]{1,12}")


def sign(secret: str, body: bytes, now: Micros) -> str:
    """Return the header that proves the sender and the time of a body."""
    seconds = str(now // SECOND)
    return f"t={seconds},v1={_digest(secret, seconds, body)}"


def verify(
    secret: str,
    header: str | None,
    body: bytes,
    now: Micros,
    tolerance_seconds: int = TOLERANCE_SECONDS,
) -> bool:
    """Return whether this `Penstock-Signature` matches the body and is recent.

    Pass the body byte for byte as received. An empty secret or header never matches.
    """
    pairs = [part.strip().partition("=") for part in (header or "").split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    digests = [value.encode("utf-8", "replace") for name, _, value in pairs if name == "v1"]
    if not secret or len(times) != 1 or not _SECONDS.fullmatch(times[0]):
        return False
    if abs(now - int(times[0]) * SECOND) > tolerance_seconds * SECOND:
        return False
    expected = _digest(secret, times[0], body).encode()
    return any(hmac.compare_digest(expected, digest) for digest in digests)


def _digest(secret: str, seconds: str, body: bytes) -> str:
    return hmac.new(secret.encode(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
