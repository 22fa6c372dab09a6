"""Report a failed write to stdout as an error of the command."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from penstock.errors import PenstockError


class OutputError(PenstockError):
    """A failed write to stdout whose cause is not a closed pipe."""


class _ClosedStream(io.TextIOBase):
    """A stdout that was closed when the command started."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class _CheckedStream:
    """A stream whose failed writes raise OutputError."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, perhaps only to a buffer."""
        with _checked():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write the buffer."""
        with _checked():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def checked_stdout() -> Iterator[None]:
    """Write all output of a block before it ends, or fail."""
    before = sys.stdout
    stream = before if before is not None else cast(TextIO, _ClosedStream())
    sys.stdout = cast(TextIO, _CheckedStream(stream))
    try:
        yield
        sys.stdout.flush()
    except (OutputError, BrokenPipeError):
        discard_writes(stream)
        raise
    finally:
        sys.stdout = before


@contextmanager
def _checked() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"the output cannot be written to stdout: {error.strerror}; the command may have "
            "succeeded nevertheless"
        ) from None


def discard_writes(stream: TextIO) -> None:
    """Discard later writes, which would be reported as another error at exit."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
