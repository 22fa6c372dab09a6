"""One signed POST of JSON, and what came of it.

A receiver may see one delivery several times, always under the same `Penstock-Delivery`. It
checks `Penstock-Signature` with `verify`, which is here for receivers to use.
"""

import hashlib
import hmac
import re
import time
from datetime import UTC
from email.utils import parsedate_to_datetime

import httpx
from msgspec import Struct

from penstock.clock import SECOND, Micros, from_datetime

DELIVERY = "Penstock-Delivery"
SENDER = "Penstock-Sender"
SIGNATURE = "Penstock-Signature"
TOLERANCE_SECONDS = 300
_ANSWER_BYTES_MAX = 64 * 1024
_ANSWER_SECONDS_MAX = 10.0
_WORDS_LENGTH_MAX = 200
_PASSING = frozenset({408, 425, 429})
_SECONDS = re.compile(r"[0-9]{1,12}")


class Posted(Struct, frozen=True):
    """What a try has come to; a status of 0 stands for no answer at all."""

    status: int
    words: str
    wait_seconds: float | None = None  # as the receiver asked for

    @property
    def is_good(self) -> bool:
        """Whether it was taken."""
        return 200 <= self.status < 300

    @property
    def is_passing(self) -> bool:
        """Whether the same may be taken later."""
        return self.status == 0 or self.status in _PASSING or self.status >= 500


def sign(secret: str, body: bytes, now: Micros) -> str:
    """The header that proves who sent the body, and when."""
    seconds = str(now // SECOND)
    return f"t={seconds},v1={_digest(secret, seconds, body)}"


def verify(
    secret: str,
    header: str | None,
    body: bytes,
    now: Micros,
    tolerance_seconds: int = TOLERANCE_SECONDS,
) -> bool:
    """Whether this `Penstock-Signature` belongs to this body and was made about now.

    Give it the body as it was received, byte for byte. No secret and no header are never right.
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


def post(
    client: httpx.Client, url: str, headers: dict[str, str], body: bytes, now: Micros
) -> Posted:
    """POST it once, and follow no redirect; a URL that cannot be called is httpx's error."""
    headers = {**headers, "Accept-Encoding": "identity", "User-Agent": "penstock"}
    try:
        with client.stream(
            "POST", url, content=body, headers=headers, follow_redirects=False
        ) as response:
            return Posted(
                response.status_code,
                _words(response),
                _asked_seconds(response.headers.get("retry-after", ""), now),
            )
    except httpx.UnsupportedProtocol:
        raise
    except httpx.TimeoutException:
        return Posted(0, "it takes too long to answer")
    except httpx.TransportError as error:
        return Posted(0, str(error) or type(error).__name__)


def _words(response: httpx.Response) -> str:
    """The first words of the answer; a short one is read to its end, so the connection is kept."""
    read = bytearray()
    deadline = time.monotonic() + _ANSWER_SECONDS_MAX
    try:
        for chunk in response.iter_raw():
            read += chunk
            if len(read) > _ANSWER_BYTES_MAX or time.monotonic() > deadline:
                break
    except httpx.TransportError:
        # The status has come, and it decides; the rest was only for people.
        pass
    text = bytes(read[: 4 * _WORDS_LENGTH_MAX]).decode("utf-8", "replace")
    printable = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(printable.split())[:_WORDS_LENGTH_MAX]


def _asked_seconds(text: str, now: Micros) -> float | None:
    """What Retry-After asks for, as seconds or as a date."""
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, (from_datetime(aware) - now) / SECOND)
