"""Stop signals of long-running commands."""

import logging
import os
import signal
import sys
from types import FrameType
from typing import Any, Self

from penstock.cli import exit_codes

_STOPPED_BY = (signal.SIGINT, signal.SIGTERM)


def exit_now() -> None:
    """Exit at once with code 0, although threads hang in unanswered calls."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_codes.DONE)


class StopSignals:
    """A handler that records the first stop signal and exits at the second.

    After `lapse_seconds` other workers take over the unfinished work.
    """

    def __init__(self, lapse_seconds: int) -> None:
        self._lapse_seconds = lapse_seconds
        self._before: dict[signal.Signals, Any] = {}
        self.received = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in _STOPPED_BY}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            # No logging here: the interrupted thread may hold the lock of the log.
            text = f"penstock: stopped at once; other workers go on in {self._lapse_seconds} s\n"
            os.write(sys.stderr.fileno(), text.encode())
            os._exit(exit_codes.INTERRUPTED)
        self.received = True
