"""Running a command as a workload: never as shell text, ended with everything it started."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from penstock.errors import Invalid

_TAIL_BYTES = 4096
_GRACE_SECONDS = 5.0


class CommandFailed(Exception):
    """A command ended badly; the last words it wrote to stderr say why."""


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], timeout_seconds: int | None
) -> None:
    """Run it to its end, or raise CommandFailed."""
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
        _, errors = child.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        raise CommandFailed(f"it ran longer than {timeout_seconds} seconds") from None
    except BaseException:
        _end(child)
        raise
    if child.returncode != 0:
        raise CommandFailed(_last_words(errors) or _how(child.returncode))


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
