"""Whether what a command tells is heard: a full or closed stdout is an error as others are."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from penstock.errors import PenstockError


class Unheard(PenstockError):
    """Nothing can be written to stdout, and it is not that its reader has gone."""


class _Closed(io.TextIOBase):
    """What Python has no stdout for: the command was started with it closed."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class _Output:
    """A stdout that says Unheard where it cannot be written to; else as it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, as far as one can know."""
        with _told():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what was kept back."""
        with _told():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def heard() -> Iterator[None]:
    """While a command runs: all that it writes has been written when this ends, or it fails."""
    before = sys.stdout
    stream = before if before is not None else cast(TextIO, _Closed())
    sys.stdout = cast(TextIO, _Output(stream))
    try:
        yield
        sys.stdout.flush()
    except (Unheard, BrokenPipeError):
        give_up(stream)
        raise
    finally:
        sys.stdout = before


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unheard(
            f"the output could not be written to stdout: {error.strerror}; what the command was "
            "to do may be done all the same"
        ) from None


def give_up(stream: TextIO) -> None:
    """Let nothing be written there again at exit, which would be told as another error."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
