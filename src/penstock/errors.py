"""The errors of Penstock.

    PenstockError
    ├── Malformed        the text cannot be parsed
    ├── Invalid          a value is missing or out of range
    ├── NotFound         the named thing does not exist
    ├── Conflict         the call contradicts the present state
    ├── Unauthorized     the caller is unknown
    ├── Forbidden        the caller lacks the permission
    ├── TooLarge         a limit is exceeded
    ├── Busy             the queue is full; the same call may succeed later
    └── Unavailable      the database or another dependency failed
        └── Away         a dependency does not answer; the work waits for it

A message says what failed, on which thing, and what to do next. One table maps each class to an
HTTP status, and one to an exit code.
"""


class PenstockError(Exception):
    """The root of all refusals; it catches no bugs."""


class Malformed(PenstockError):
    """The text does not parse, for example as JSON."""


class Invalid(PenstockError):
    """The text parses, but a value is missing, of the wrong kind or out of range."""


class NotFound(PenstockError):
    """The named thing does not exist."""


class Conflict(PenstockError):
    """The call expects another state; the message names both."""


class Unauthorized(PenstockError):
    """The key is missing, unknown or revoked."""


class Forbidden(PenstockError):
    """The role or namespace of the key does not cover the call."""


class TooLarge(PenstockError):
    """The body, a name or the nesting exceeds its limit."""


class Busy(PenstockError):
    """The write queue is full; nothing was written, and the call may be repeated."""

    def __init__(self, message: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(PenstockError):
    """A dependency did not answer; the write may or may not have happened."""


class Away(Unavailable):
    """A dependency cannot be reached, for example during a network partition.

    The work is not at fault: it waits, and does not fail.
    """
