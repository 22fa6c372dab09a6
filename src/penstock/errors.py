"""Everything that Penstock refuses, in one tree.

    PenstockError
    ├── Malformed        the text could not be read at all
    ├── Invalid          it was read, but says something that cannot be
    ├── NotFound         it names something that is not there
    ├── Conflict         it collides with what is already true
    ├── Unauthorized     nobody knows who is asking
    ├── Forbidden        the asker may not do this
    ├── TooLarge         it is over a limit
    ├── Busy             the queue is full; the same call later will do
    └── Unavailable      the database, or another thing below us, cannot be used just now
        └── Away         it does not answer: whoever waits needs to do nothing else

A message says what happened, to what, and what to do next. Doors map each class to a
status or an exit code in one table of their own.
"""


class PenstockError(Exception):
    """The root: catching it catches every refusal and no bug."""


class Malformed(PenstockError):
    """The text is not what its type says, for example not JSON."""


class Invalid(PenstockError):
    """The text is well formed, but a value in it is missing, of the wrong kind or out of range."""


class NotFound(PenstockError):
    """What the call names does not exist."""


class Conflict(PenstockError):
    """The call expects one state and finds another; the message names both."""


class Unauthorized(PenstockError):
    """A key is needed and none was sent, or the one sent is unknown or revoked."""


class Forbidden(PenstockError):
    """The key is good but its role or namespace does not cover this call."""


class TooLarge(PenstockError):
    """The body, a name or the nesting is over its limit."""


class Busy(PenstockError):
    """The write queue is full; nothing was written, and the call may be repeated."""

    def __init__(self, message: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(PenstockError):
    """What is needed did not answer; nothing is known to be written."""


class Away(Unavailable):
    """What is needed cannot be reached, as after a cut of the network; it comes back by itself.

    Work that meets it is not at fault: it waits, and is not said to have failed.
    """
