"""Running a command as a workload: without a shell, and ended with all its processes."""

import os
import pwd
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from penstock.config import COMMAND_ENVIRONMENT, SECRET_VARIABLES, Settings
from penstock.errors import Invalid

_TAIL_BYTES = 4096
_CHUNK_BYTES = 65536
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.02
_LAST_LINE_SECONDS = 1.0  # a process that left the group may keep stderr open for ever
_running: set["subprocess.Popen[bytes]"] = set()


class Account(NamedTuple):
    """A user of this machine with whose rights commands run."""

    name: str
    user_id: int
    group_id: int
    group_ids: Sequence[int]
    home: str
    shell: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that name the user."""
        return {
            "HOME": self.home,
            "LOGNAME": self.name,
            "SHELL": self.shell,
            "USER": self.name,
        }


class CommandRules(Struct, frozen=True):
    """The variables that commands inherit, the variables that arcs may ask for, and the user."""

    inherited: tuple[str, ...] = tuple(COMMAND_ENVIRONMENT.split(","))
    allowed: tuple[str, ...] = ()
    run_as: str = ""

    def environment(self, requested: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of this process that a command gets; unset ones are omitted."""
        for name in requested:
            if name not in (*self.inherited, *self.allowed):
                raise Invalid(
                    f"the engine does not pass {name} to commands; take it out of "
                    "pass_environment, or add it to the engine's setting "
                    "command_environment_allowed"
                )
        return {name: environ[name] for name in (*self.inherited, *requested) if name in environ}

    def account(self) -> Account | None:
        """Return the user of commands; None for the user of this process."""
        return find_account(self.run_as) if self.run_as else None


DEFAULT_RULES = CommandRules()


def command_rules(settings: Settings) -> CommandRules:
    """Return the rules of the settings, if they can work here."""
    inherited = split_names(settings.command_environment)
    allowed = split_names(settings.command_environment_allowed or "")
    for setting, names in (
        ("command_environment", inherited),
        ("command_environment_allowed", allowed),
    ):
        for name in names:
            if name in SECRET_VARIABLES:
                raise Invalid(
                    f"{setting} names {name}, which holds a secret of the engine; take it out"
                )
    rules = CommandRules(inherited, allowed, settings.run_as or "")
    rules.account()
    return rules


def split_names(text: str) -> tuple[str, ...]:
    """Split a list with commas."""
    return tuple(name for each in text.split(",") if (name := each.strip()))


def find_account(name: str) -> Account:
    """Return the user of this name, if this process can run commands as that user."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Invalid(f"run_as names the user {name!r}, which this machine does not have") from None
    if os.geteuid() != 0:
        raise Invalid(f"run_as {name!r} needs an engine that runs as root; start it as root")
    if user.pw_uid == 0:
        raise Invalid(f"run_as names {name!r}, which is root; name a user with fewer rights")
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return Account(name, user.pw_uid, user.pw_gid, groups, user.pw_dir, user.pw_shell)


def give_folder(folder: Path, account: Account) -> None:
    """Give a folder to a user who runs no process in it yet."""
    for top, folders, files in os.walk(folder):
        os.chown(top, account.user_id, account.group_id)
        for name in (*folders, *files):
            os.chown(
                os.path.join(top, name), account.user_id, account.group_id, follow_symlinks=False
            )


def reclaim_folder(folder: Path) -> None:
    """Take a folder back from a user whose processes may still run, but can no longer change it.

    Each folder changes its owner before it is listed, so no file can appear in it afterwards.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _take_back(descriptor)
    finally:
        os.close(descriptor)


def _take_back(descriptor: int) -> None:
    os.fchown(descriptor, os.geteuid(), os.getegid())
    os.fchmod(descriptor, 0o700)
    with os.scandir(descriptor) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        below = os.open(name, flags, dir_fd=descriptor)
        try:
            _take_back(below)
        finally:
            os.close(below)


def refuse_links(path: Path) -> None:
    """Refuse links, with which this process would read files that the command cannot read.

    A link leads anywhere, and this process may read more than the user of the command.
    """
    paths = [path] if not path.is_dir() or path.is_symlink() else sorted(path.rglob("*"))
    for each in paths:
        if each.is_symlink() or (each.is_file() and each.stat().st_nlink > 1):
            raise Invalid(f"the command left the link {each.name!r}; let it write a file instead")


class CommandFailed(Exception):
    """A command failed; its last line on stderr gives the reason."""


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_seconds: float | None,
    lost: threading.Event,
    account: Account | None = None,
) -> None:
    """Run a command, or raise CommandFailed; end it if the lease is lost.

    All processes that it started end with it, so none writes to a published lot.
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
        raise CommandFailed(tail.last_line() or _exit_text(child.returncode))


def kill_running() -> None:
    """Kill all running commands with all their processes: this process ends at once."""
    for child in list(_running):
        _signal(child, signal.SIGKILL)


def end_running() -> bool:
    """End all running commands with all their processes; return False if there are none."""
    children = list(_running)
    for child in children:
        _end(child)
    return bool(children)


class _Tail:
    """A reader of stderr that keeps its end."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stderr is not None, "it was asked for"
        self._stderr = child.stderr
        self._tail = b""
        self._thread = threading.Thread(target=self._read, name="stderr", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stderr:
            while chunk := os.read(self._stderr.fileno(), _CHUNK_BYTES):
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def last_line(self) -> str:
        """Return the last line."""
        self._thread.join(_LAST_LINE_SECONDS)
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _wait(
    child: "subprocess.Popen[bytes]", timeout_seconds: float | None, lost: threading.Event
) -> None:
    """Wait for the end of the command, not of processes that it started."""
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
    """End the process group, after a grace time by force."""
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
    """Send a signal to the process group; return False if it has ended."""
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _exit_text(code: int) -> str:
    if code < 0:
        return f"the command was killed by signal {-code}"
    return f"the command ended with exit code {code}"
