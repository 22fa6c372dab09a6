"""Errors of the client."""

from typing import Self

from penstock.errors import PenstockError, Unavailable

NOT_DONE = frozenset({429})  # the server reports that it did nothing
PASSING = frozenset({429, 502, 503, 504})  # a retry may help


class Unreachable(Unavailable):
    """No server answers. With `may_be_done`, the request may have been carried out."""

    def __init__(self, message: str, *, may_be_done: bool = True) -> None:
        super().__init__(message)
        self.may_be_done = may_be_done


class ApiError(PenstockError):
    """The server refused a request. `code` is the HTTP status, `message` the reason."""

    def __init__(self, code: int, message: str, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...], dict[str, object]]:
        """Pickle the error with all its fields; by default only `args` would survive."""
        made_of = (self.code, self.message, self.retry_after_seconds)
        return type(self), made_of, self.__dict__

    @property
    def may_be_done(self) -> bool:
        """Whether the request may have been carried out, judged by its status."""
        return self.code in PASSING - NOT_DONE


Failure = ApiError | Unreachable


def is_passing(failure: Failure) -> bool:
    """Return whether a retry may help."""
    return isinstance(failure, Unreachable) or failure.code in PASSING
