"""How a command that works until it is told to stop is told so."""

import logging
import os
import signal
import sys
from types import FrameType
from typing import Any, Self

from penstock.cli import exit_codes

_STOPPED_BY = (signal.SIGINT, signal.SIGTERM)


def leave() -> None:
    """End at once and well, although threads of ours hang in calls that nobody answers."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_codes.DONE)


class StopSignals:
    """Notes what tells us to stop; the second time there is no waiting.

    `lapse_seconds` is after how long others go on with what was at hand then.
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
            # No logging here: the thread that was interrupted may be holding its lock.
            told = f"penstock: stopped at once; others go on after {self._lapse_seconds} s\n"
            os.write(sys.stderr.fileno(), told.encode())
            os._exit(exit_codes.INTERRUPTED)
        self.received = True
