"""Running a command as a workload: never as shell text, ended with everything it started."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from penstock.arcs.command_rules import Account
from penstock.errors import Invalid

_TAIL_BYTES = 4096
_CHUNK_BYTES = 65536
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.02
_LAST_WORDS_SECONDS = 1.0  # somebody who left the group may keep stderr open for ever

_running: set["subprocess.Popen[bytes]"] = set()


class CommandFailed(Exception):
    """A command ended badly; the last words it wrote to stderr say why."""


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_seconds: float | None,
    lost: threading.Event,
    account: Account | None = None,
) -> None:
    """Run it to its end, or raise CommandFailed; it is ended when the lease is lost.

    What it has started and left behind ends with it: nobody writes to a lot that is published.
    """
    try:
        child = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
            user=account.user_id if account is not None else None,
            group=account.group_id if account is not None else None,
            extra_groups=account.group_ids if account is not None else None,
        )
    except OSError as error:
        raise Invalid(f"{arguments[0]!r} cannot be started: {error.strerror}") from None
    _running.add(child)
    tail = _Tail(child)
    try:
        _wait(child, timeout_seconds, lost)
    finally:
        _end(child)
        _running.discard(child)
    if child.returncode != 0:
        raise CommandFailed(tail.last_words() or _how(child.returncode))


def kill_running() -> None:
    """Kill all commands that run here, with everything they started: this process ends at once."""
    for child in list(_running):
        _signal(child, signal.SIGKILL)


def end_running() -> bool:
    """End all commands that run here, with everything they started; False if there are none."""
    children = list(_running)
    for child in children:
        _end(child)
    return bool(children)


class _Tail:
    """Reads what a command writes to stderr, and keeps the end of it."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stderr is not None, "it was asked for"
        self._stderr = child.stderr
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="stderr", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stderr:
            while chunk := os.read(self._stderr.fileno(), _CHUNK_BYTES):
                self._kept = (self._kept + chunk)[-_TAIL_BYTES:]

    def last_words(self) -> str:
        """The last line."""
        self._thread.join(_LAST_WORDS_SECONDS)
        lines = self._kept.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _wait(
    child: "subprocess.Popen[bytes]", timeout_seconds: float | None, lost: threading.Event
) -> None:
    """Wait for its end, not for that of others that it has started."""
    left = timeout_seconds if timeout_seconds is not None else float("inf")
    while True:
        try:
            child.wait(min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            left -= _LOOK_SECONDS
        else:
            return
        if lost.is_set():
            raise CommandFailed("its lease was lost")
        if left <= 0:
            raise CommandFailed(f"it ran longer than {timeout_seconds} seconds")


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End what is left of its group, after a while by force."""
    child.poll()
    if not _signal(child, signal.SIGTERM):
        return
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        child.poll()
        if not _signal(child, 0):
            return
    _signal(child, signal.SIGKILL)
    child.wait()


def _signal(child: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send a signal to its group; False if there is nobody left."""
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _how(code: int) -> str:
    if code < 0:
        return f"the command was killed by signal {-code}"
    return f"the command ended with exit code {code}"
