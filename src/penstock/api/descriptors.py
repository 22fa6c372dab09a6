"""File descriptors of this process: as many as the system allows, and a word when few are left."""

import logging
import os
import resource
from contextlib import suppress
from pathlib import Path

# For the database, objects, uploads and calls to other servers.
RESERVED = 256
# Of the limit; above it every minute a line is logged.
_NEAR = 0.9
_REPORT_SECONDS = 60
_LOOK_SECONDS = 5
_OPEN = Path("/dev/fd")

_log = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as the system lets it have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a sandbox may forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def descriptor_limit() -> int | None:
    """How many descriptors this process may have; None is without limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def connections_possible(wanted: int) -> int:
    """As many connections as are wanted, or fewer where descriptors do not suffice."""
    limit = descriptor_limit()
    if limit is None:
        return wanted
    possible = max(limit // 4, limit - RESERVED)
    if possible < wanted:
        _log.warning(
            "the limit of %d open files allows %d connections, fewer than connections_max=%d; "
            "raise it with `ulimit -n` or LimitNOFILE",
            limit,
            possible,
            wanted,
        )
    return min(possible, wanted)


class DescriptorWatch:
    """Logs a line when descriptors are nearly used up."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._next_line = 0.0

    def check(self, now: float) -> None:
        """Count the open descriptors every few seconds."""
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        limit = descriptor_limit()
        if limit is None or now < self._next_line:
            return
        used = len(os.listdir(_OPEN))
        if used >= limit * _NEAR:
            self._next_line = now + _REPORT_SECONDS
            _log.warning(
                "descriptors are nearly used up: used=%d limit=%d; raise the limit with "
                "`ulimit -n` or LimitNOFILE, or lower connections_max",
                used,
                limit,
            )
