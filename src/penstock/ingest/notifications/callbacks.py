"""Callbacks: a signed POST of JSON, repeated until it is accepted or finally refused.

A receiver may get a delivery several times, always with the same `Penstock-Delivery`.
"""

import re
import time
from collections.abc import Callable

import httpx

from penstock.clock import SECOND, Micros
from penstock.errors import Invalid, Unavailable
from penstock.ingest.intake.places import redact_url
from penstock.outgoing import Posted, post
from penstock.signing import DELIVERY, SIGNATURE, sign, verify

__all__ = ["DELIVERY", "SIGNATURE", "WAIT_SECONDS_MAX", "call_back", "sign", "verify"]

WAIT_SECONDS_MAX = 60.0
_KEY = re.compile(r"[!-~]{1,200}")


def call_back(
    client: httpx.Client,
    url: str,
    secret: str | None,
    body: bytes,
    *,
    key: str,
    now: Micros,
    tries: int = 4,
    sleep: Callable[[float], None] = time.sleep,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Deliver the body; raise Invalid if it is finally refused, else Unavailable.

    `key` names the delivery; a repetition after a crash must have the same key.
    """
    if not _KEY.fullmatch(key):
        raise Invalid(f"{key[:64]!r} cannot name a delivery; use printable ASCII without spaces")
    if secret == "":
        raise Invalid(f"the secret for {redact_url(url)} is empty; give one, or leave it out")
    waited = 0.0
    answer = None
    for number in range(1, tries + 1):
        if stop():
            raise Unavailable(_message(url, answer, "this worker is stopping, so try again later"))
        sent_at = now + int(waited * SECOND)
        headers = {"Content-Type": "application/json", DELIVERY: key}
        if secret is not None:
            headers[SIGNATURE] = sign(secret, body, sent_at)
        answer = _post(client, url, headers, body, sent_at)
        if answer.is_good:
            return
        if not answer.is_passing:
            raise Invalid(_message(url, answer, "correct the callback's URL or its receiver"))
        if number < tries:
            pause = _pause(number, answer)
            sleep(pause)
            waited += pause
    raise Unavailable(
        _message(url, answer, f"it was tried {tries} times, so look at the receiver and try again")
    )


def _post(
    client: httpx.Client, url: str, headers: dict[str, str], body: bytes, now: Micros
) -> Posted:
    try:
        return post(client, url, headers, body, now)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise Invalid(
            f"{redact_url(url)} cannot be called; write it like https://host/path"
        ) from None


def _pause(number: int, answer: Posted) -> float:
    seconds = answer.wait_seconds
    return min(4.0 ** (number - 1) if seconds is None else seconds, WAIT_SECONDS_MAX)


def _message(url: str, answer: Posted | None, next_step: str) -> str:
    if answer is None:
        return f"the callback to {redact_url(url)} was not made: {next_step}"
    if answer.status == 0:
        return f"the callback to {redact_url(url)} was not answered ({answer.words}); {next_step}"
    words = f" ({answer.words})" if answer.words else ""
    return f"the callback to {redact_url(url)} was answered {answer.status}{words}; {next_step}"
