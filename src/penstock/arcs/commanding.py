"""Running a command as a workload: never as shell text, ended with everything it started."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from penstock.errors import Invalid

_TAIL_BYTES = 4096
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 1.0


class CommandFailed(Exception):
    """A command ended badly; the last words it wrote to stderr say why."""


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_seconds: float | None,
    lost: threading.Event,
) -> None:
    """Run it to its end, or raise CommandFailed; it is ended when the lease is lost."""
    try:
        child = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except OSError as error:
        raise Invalid(f"{arguments[0]!r} cannot be started: {error.strerror}") from None
    try:
        errors = _wait(child, timeout_seconds, lost)
    except BaseException:
        _end(child)
        raise
    if child.returncode != 0:
        raise CommandFailed(_last_words(errors) or _how(child.returncode))


def _wait(
    child: "subprocess.Popen[bytes]", timeout_seconds: float | None, lost: threading.Event
) -> bytes:
    """Wait for its end, and give what it wrote to stderr."""
    left = timeout_seconds if timeout_seconds is not None else float("inf")
    while True:
        try:
            _, errors = child.communicate(timeout=min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            left -= _LOOK_SECONDS
        else:
            return errors
        if lost.is_set():
            raise CommandFailed("its lease was lost")
        if left <= 0:
            raise CommandFailed(f"it ran longer than {timeout_seconds} seconds")


def _end(child: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=_GRACE_SECONDS)
            return


def _last_words(errors: bytes) -> str:
    lines = errors[-_TAIL_BYTES:].decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _how(code: int) -> str:
    if code < 0:
        return f"the command was killed by signal {-code}"
    return f"the command ended with exit code {code}"
