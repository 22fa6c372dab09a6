"""Watching for a condition, instead of sleeping and hoping."""

import time
from collections.abc import Callable

from tests.patience import HANG_SECONDS


def until(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.02)
