"""A request as HTTP has it, and what its answer means: the same for both transports."""

from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from penstock.client.reading import Reading
from penstock.client.refusals import ApiError, Unreachable
from penstock.client.request import Request
from penstock.errors import Invalid
from penstock.outgoing import certificates, is_near

T = TypeVar("T")

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def settings(url: str, api_key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """What a connection to a server is made with."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{url!r} is not a server's URL; write it like http://127.0.0.1:5000")
    key = (api_key or "").strip()  # files end with a line break
    if not (key.isascii() and key.isprintable()):
        raise Invalid(
            "the API key cannot be sent: there is a line break in it, or a character that is not "
            "ASCII; give it as `penstock keys create` has printed it"
        )
    return {
        "base_url": url,
        "headers": {"authorization": f"Bearer {key}"} if key else {},
        "timeout": timeout_seconds,
        "trust_env": not is_near(url),
        "verify": certificates(url, trust_env=not is_near(url)),
    }


def sendable(request: Request[Any], timeout_seconds: float) -> dict[str, Any]:
    """A request as HTTP has it, but for a body that is read while it is sent."""
    headers: dict[str, str] = {}
    if request.body is not None:
        headers["content-type"] = "application/json"
    if request.upload is not None:
        headers["content-type"] = "application/octet-stream"
        if request.upload.size is not None:
            headers["content-length"] = str(request.upload.size)
    answered_in = request.timeout_seconds or timeout_seconds
    return {
        "method": request.method,
        "url": request.path,
        "params": request.query,
        "content": request.body,
        "headers": headers,
        "timeout": httpx.Timeout(min(timeout_seconds, answered_in), read=answered_in),
    }


def taken(request: Request[T], answer: httpx.Response, url: str) -> T:
    """What an answer says, or the refusal that it is."""
    if not answer.is_success:
        raise refused(answer, url)
    try:
        return request.read(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_ours(answer, url, str(error)) from None


def check_media(reading: Reading[Any], answer: httpx.Response, url: str) -> None:
    """Refuse to listen to what answers another thing than what was asked for."""
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != reading.media:
        raise _not_ours(answer, url, f"{media or 'nothing'} instead of {reading.media}")


def _not_ours(answer: httpx.Response, url: str, why: str) -> ApiError:
    return ApiError(
        answer.status_code,
        f"{url} does not answer as a Penstock server does ({why}); "
        "check PENSTOCK_URL and the server's version",
    )


class _Refusal(msgspec.Struct):
    message: str


_decode = msgspec.json.Decoder(_Refusal).decode


def refused(answer: httpx.Response, url: str) -> ApiError:
    """What an answer says that is not one of success."""
    try:
        message = _decode(answer.content).message
    except msgspec.DecodeError:
        message = f"{url} answered {answer.status_code} {answer.reason_phrase}; check PENSTOCK_URL"
    wait = answer.headers.get("retry-after", "")
    return ApiError(answer.status_code, message, int(wait) if wait.isdigit() else None)


def closed() -> Invalid:
    """What it means that a connection was closed by the program itself."""
    return Invalid("this client is closed, and makes no more calls; open another")


def unreachable(url: str, error: httpx.TransportError) -> Unreachable:
    """What it means that no answer came."""
    if isinstance(error, httpx.TimeoutException):
        reason = "it takes too long to answer"
    else:
        reason = str(error) or type(error).__name__
    return Unreachable(
        f"cannot reach {url} ({reason}); start it with `penstock serve` or set PENSTOCK_URL",
        may_be_done=not isinstance(error, _NOT_SENT),
    )
