"""What a call of the client can come to instead of an answer."""

from typing import Self

from penstock.errors import PenstockError, Unavailable

NOT_DONE = frozenset({429})  # the server says that it has not begun
PASSING = frozenset({429, 502, 503, 504})  # the same call later may do


class Unreachable(Unavailable):
    """No server answers at the URL; `may_be_done` if the call may have got there all the same."""

    def __init__(self, message: str, *, may_be_done: bool = True) -> None:
        super().__init__(message)
        self.may_be_done = may_be_done


class ApiError(PenstockError):
    """The server refused; `code` is the HTTP status and `message` says why."""

    def __init__(self, code: int, message: str, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...], dict[str, object]]:
        """How it gets from one process to another: an exception is made anew of its `args`."""
        made_of = (self.code, self.message, self.retry_after_seconds)
        return type(self), made_of, self.__dict__

    @property
    def may_be_done(self) -> bool:
        """Whether the call may have been carried out all the same, as far as the status tells."""
        return self.code in PASSING - NOT_DONE


Failure = ApiError | Unreachable


def is_passing(failure: Failure) -> bool:
    """Whether the same call later may do."""
    return isinstance(failure, Unreachable) or failure.code in PASSING
