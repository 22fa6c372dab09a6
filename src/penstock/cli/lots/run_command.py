"""A command that runs under a claim: a lost lease stops it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Any, Self

from msgspec import Struct

from penstock.cli.output import plain
from penstock.client import Claim, Claims
from penstock.errors import Invalid

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE_SECONDS = 10.0
_LOOK_SECONDS = 0.2
_STDERR_SECONDS = 2.0
_TAIL_BYTES = 4096
_STDERR = 2
# Reads stdin, which ends when this process ends in any way, and then kills the command.
_REAPER = 'read -r _; kill -s TERM -- "-$1"; sleep "$2"; kill -s KILL -- "-$1"'

Child = subprocess.Popen[bytes]


class Ended(Struct, frozen=True):
    """The end of a command; an exit code below 0 is the signal that killed it."""

    code: int
    last_line: str
    stopped: bool  # because the lease was lost

    @property
    def error(self) -> str:
        """The error in one line."""
        if self.last_line:
            return self.last_line
        if self.code < 0:
            return f"the command was killed by {_signal_name(-self.code)}"
        return f"the command ended with exit code {self.code}"


class Signals:
    """The signals of this process, which the running command receives too."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._before: dict[signal.Signals, Any] = {}
        self._child: Child | None = None
        self.busy = False
        self.received = 0

    def __enter__(self) -> Self:
        for number in PASSED_ON:
            # The parent may ignore a signal, as nohup does.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_to(self, child: Child | None) -> None:
        """Send signals to this command, also one that arrived while it was starting."""
        self._child = child
        if child is not None and self.received:
            send(child, self.received)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        # The first signal lets a call to the server end, so that no claim stays behind.
        if self.received and not self.busy:
            raise KeyboardInterrupt
        self.received = number
        self._claims.stop()
        if self._child is not None:
            send(self._child, number)


def run_command(
    arguments: Sequence[str],
    variables: Mapping[str, str],
    claim: Claim,
    signals: Signals,
    *,
    stdout_to_stderr: bool = False,
) -> Ended:
    """Run a command to its end; copy its stderr and keep the last line."""
    child = _start(arguments, variables, stdout_to_stderr)
    assert child.stderr is not None, "stderr is a pipe"
    stderr = _StderrCopy(child.stderr)
    signals.pass_to(child)
    try:
        with _killed_with_us(child):
            code, stopped = _wait(child, claim)
    except BaseException:
        send(child, signal.SIGKILL)
        raise
    finally:
        signals.pass_to(None)
    return Ended(code, stderr.last_line(), stopped)


def _start(arguments: Sequence[str], variables: Mapping[str, str], stdout_to_stderr: bool) -> Child:
    try:
        # Its own process group, so that a signal reaches all its children, and only once. Such a
        # group must not read from the terminal.
        return subprocess.Popen(
            arguments,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL if _on_terminal() else None,
            stdout=_STDERR if stdout_to_stderr else None,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except OSError as error:
        raise Invalid(f"{arguments[0]} cannot be run: {error.strerror}") from None


def _on_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


@contextmanager
def _killed_with_us(child: Child) -> Iterator[None]:
    """End the command if this process is killed: nothing renews its claim then."""
    reaper = subprocess.Popen(
        ["/bin/sh", "-c", _REAPER, "penstock", str(child.pid), f"{GRACE_SECONDS:.0f}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        reaper.kill()
        reaper.communicate()


def _wait(child: Child, claim: Claim) -> tuple[int, bool]:
    """Return the exit code, and whether the command had to be stopped."""
    kill_at: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = child.wait(_LOOK_SECONDS)
            break
        if claim.lost and kill_at is None:
            send(child, signal.SIGTERM)
            kill_at = time.monotonic() + GRACE_SECONDS
        elif kill_at is not None and time.monotonic() > kill_at:
            send(child, signal.SIGKILL)
    if kill_at is not None:
        # Children of the command must not run on without a claim.
        send(child, signal.SIGKILL)
    return code, kill_at is not None


def send(child: Child, number: int) -> None:
    """Send a signal to a command and its children."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


class _StderrCopy:
    """A thread that copies a command's stderr to this process, and keeps the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._tail = b""
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        out = sys.stderr.buffer
        with self._stream:
            while chunk := os.read(self._stream.fileno(), 65536):
                out.write(chunk)
                out.flush()
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def last_line(self) -> str:
        """Return the last line that is not blank."""
        # A child of the command may keep the pipe open, so the wait is bounded.
        self._thread.join(_STDERR_SECONDS)
        lines = self._tail.decode(errors="replace").splitlines()
        return next((text for line in reversed(lines) if (text := plain(line).strip())), "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
