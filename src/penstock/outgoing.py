"""Calls to other programs: certificates, and one POST with its answer."""

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
    """Return whether a URL is on this machine, so that no proxy applies."""
    return urlsplit(url).hostname in _LOOPBACK


def certificates(url: str, *, trust_env: bool) -> ssl.SSLContext:
    """Return the certificates that a client of a URL trusts.

    Loading all authorities takes longer than a call, and http needs none. A client without
    authorities trusts no server, should it be redirected to https.
    """
    if urlsplit(url).scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context(trust_env=trust_env)


class Posted(Struct, frozen=True):
    """The outcome of a POST; status 0 means no answer."""

    status: int
    words: str
    wait_seconds: float | None = None  # from Retry-After

    @property
    def is_good(self) -> bool:
        """Return whether the receiver accepted the message."""
        return 200 <= self.status < 300

    @property
    def is_passing(self) -> bool:
        """Return whether a later try may succeed."""
        return self.status == 0 or self.status in _PASSING or self.status >= 500


def post(
    client: httpx.Client, url: str, headers: dict[str, str], body: bytes, now: Micros
) -> Posted:
    """POST once, without redirects; an invalid URL raises httpx's error."""
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
    """Return the start of the answer; read a short one to its end, to keep the connection."""
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
        # The status has arrived and decides; the rest is only for people.
        pass
    return _printable(bytes(read[: 4 * _WORDS_LENGTH_MAX]).decode("utf-8", "replace"))


def _printable(text: str) -> str:
    printable = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(printable.split())[:_WORDS_LENGTH_MAX]


def _asked_seconds(text: str, now: Micros) -> float | None:
    """Return the seconds of a Retry-After header, given as seconds or as a date."""
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, (from_datetime(aware) - now) / SECOND)
