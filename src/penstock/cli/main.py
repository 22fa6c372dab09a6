"""The command `penstock`. Imports are late, so that Ctrl-C always ends it with one line."""

import os
from collections.abc import Sequence
from contextlib import suppress

INTERRUPTED = 130
_STDERR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        from penstock.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:
        with suppress(OSError):  # it may be closed
            os.write(_STDERR, b"penstock: interrupted\n")
        return INTERRUPTED
