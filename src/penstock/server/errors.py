"""The table of HTTP statuses, and errors as answers."""

import logging
from collections.abc import Sequence

import msgspec

from penstock import errors, ids
from penstock.errors import PenstockError
from penstock.schema.shape import Refusal
from penstock.server.responses import Answer, Header

_log = logging.getLogger(__name__)


class MethodNotAllowed(PenstockError):
    """The path is served, but not with this method."""

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        super().__init__(message)
        self.allowed = allowed


class HeadTooLarge(PenstockError):
    """The request line and the headers are larger, or the headers more, than the server allows."""


class TooSlow(PenstockError):
    """The client did not send its request in time."""


STATUS: dict[type[PenstockError], int] = {
    errors.Malformed: 400,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    MethodNotAllowed: 405,
    TooSlow: 408,
    errors.Conflict: 409,
    errors.TooLarge: 413,
    errors.Invalid: 422,
    errors.Busy: 429,
    HeadTooLarge: 431,
    errors.Unavailable: 503,
}
UNEXPECTED = 500


def status_of(error: PenstockError) -> int:
    """Return the status of an error, by its class or the nearest base class."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def refusal(error: Exception) -> Answer:
    """Return the answer for an error. A bug is logged, and the answer has only its id."""
    if not isinstance(error, PenstockError):
        return _unexpected(error)
    status = status_of(error)
    headers: list[Header] = []
    match error:
        case errors.Busy(retry_after_seconds=seconds):
            headers.append((b"retry-after", str(seconds).encode()))
        case errors.Unavailable():
            headers.append((b"retry-after", b"1"))
        case errors.Unauthorized():
            headers.append((b"www-authenticate", b"Bearer"))
        case MethodNotAllowed(allowed=allowed):
            headers.append((b"allow", ", ".join(allowed).encode()))
    return _answer(status, str(error), headers)


def _unexpected(error: Exception) -> Answer:
    case = ids.new_id()
    _log.error("internal error %s", case, exc_info=error)
    return _answer(UNEXPECTED, f"internal error, see the server's log (id {case})", [])


def _answer(status: int, message: str, headers: Sequence[Header]) -> Answer:
    body = msgspec.json.encode(Refusal(status, message))
    return Answer(status, body, headers=tuple(headers))
