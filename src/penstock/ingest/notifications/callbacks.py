"""Telling a program: one signed POST of JSON, repeated until it is taken or refused for good.

A receiver may see one delivery several times, always under the same `Penstock-Delivery`.
"""

import re
import time
from collections.abc import Callable

import httpx

from penstock.clock import SECOND, Micros
from penstock.errors import Invalid, Unavailable
from penstock.ingest.intake.places import shown
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
    """Deliver the body, or raise: Invalid if it is refused for good, Unavailable otherwise.

    `key` names the delivery; one that is done again after a crash must have the same one.
    """
    if not _KEY.fullmatch(key):
        raise Invalid(f"{key[:64]!r} cannot name a delivery; use printable ASCII without spaces")
    if secret == "":
        raise Invalid(f"the secret for {shown(url)} is empty; give one, or leave it out")
    waited = 0.0
    answer = None
    for number in range(1, tries + 1):
        if stop():
            raise Unavailable(_message(url, answer, "this worker is stopping, so try again later"))
        moment = now + int(waited * SECOND)
        headers = {"Content-Type": "application/json", DELIVERY: key}
        if secret is not None:
            headers[SIGNATURE] = sign(secret, body, moment)
        answer = _post(client, url, headers, body, moment)
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
        raise Invalid(f"{shown(url)} cannot be called; write it like https://host/path") from None


def _pause(number: int, answer: Posted) -> float:
    asked = answer.wait_seconds
    return min(4.0 ** (number - 1) if asked is None else asked, WAIT_SECONDS_MAX)


def _message(url: str, answer: Posted | None, next_step: str) -> str:
    if answer is None:
        return f"the callback to {shown(url)} was not made: {next_step}"
    if answer.status == 0:
        return f"the callback to {shown(url)} was not answered ({answer.words}); {next_step}"
    words = f" ({answer.words})" if answer.words else ""
    return f"the callback to {shown(url)} was answered {answer.status}{words}; {next_step}"
