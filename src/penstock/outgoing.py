"""Calls to other programs: by which certificates they are known, and one POST with its answer."""

import re
import ssl
import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from penstock.clock import SECOND, Micros, from_datetime

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ANSWER_BYTES_MAX = 64 * 1024
_ANSWER_SECONDS_MAX = 10.0
_WORDS_LENGTH_MAX = 200
_PASSING = frozenset({408, 425, 429})
_SECONDS = re.compile(r"[0-9]{1,12}")


def is_near(url: str) -> bool:
    """Whether it is on this machine, so that no proxy is to be asked."""
    return urlsplit(url).hostname in _LOOPBACK


def certificates(url: str, *, trust_env: bool) -> ssl.SSLContext:
    """By what the server at a URL is known.

    Reading all authorities takes longer than a call, and http needs none. A client that has none
    trusts nobody, should it ever be led to https.
    """
    if urlsplit(url).scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context(trust_env=trust_env)


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
    if response.has_redirect_location:
        target = response.headers["location"].partition("?")[0]
        return f"a redirect to {_printable(target)}, which is not followed"
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
    return _printable(bytes(read[: 4 * _WORDS_LENGTH_MAX]).decode("utf-8", "replace"))


def _printable(text: str) -> str:
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
