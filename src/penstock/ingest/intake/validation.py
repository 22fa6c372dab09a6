"""Checks of text that depositors wrote: faults by line, quoting, and safe file names."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock.errors import Invalid

FAULTS_MAX = 20
_QUOTED_CHARS_MAX = 64

NAME_BYTES_MAX = 4096
SEGMENT_BYTES_MAX = 255
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class Faults:
    """A list of faults in a text, by line."""

    def __init__(self) -> None:
        self._faults: list[tuple[int, str]] = []

    @property
    def are_many(self) -> bool:
        """Whether there are more faults than a message lists."""
        return len(self._faults) > FAULTS_MAX

    def add(self, line: int, fault: str) -> None:
        self._faults.append((line, fault))

    @contextmanager
    def of(self, line: int) -> Iterator[None]:
        """Add the fault of a line instead of raising it."""
        try:
            yield
        except Invalid as fault:
            self.add(line, str(fault))

    def refuse(self) -> None:
        """Raise Invalid with the first faults, if there are any."""
        lines = [f"line {line}: {fault}" for line, fault in sorted(self._faults)]
        if self.are_many:
            lines[FAULTS_MAX:] = ["and more: these are only the first"]
        if lines:
            raise Invalid("\n".join(lines))


def one_of(names: Iterable[str]) -> str:
    """Join names for a sentence: `a, b or c`."""
    *most, last = names
    return f"{', '.join(most)} or {last}"


def quoted(text: str) -> str:
    """Quote a text for a message; cut it if it is long."""
    return repr(text if len(text) <= _QUOTED_CHARS_MAX else text[:_QUOTED_CHARS_MAX] + "…")


def name_fault(name: str, *, is_folder: bool = False) -> str | None:
    """Return why a file or folder must not have this name, as in "… is absolute", or None."""
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "cannot be written as UTF-8"
    if not encoded:
        return "is empty"
    if len(encoded) > NAME_BYTES_MAX:
        return f"has {len(encoded)} bytes, more than {NAME_BYTES_MAX}"
    if control := _CONTROL.search(name):
        return f"has the control character {control[0]!r}"
    if not is_folder and name != name.strip():  # a manifest cannot express such a name
        return "begins or ends with a blank"
    if "\\" in name:
        return "has a backslash"
    if name.startswith("/"):
        return "is absolute"
    segments = encoded.split(b"/")
    if b".." in segments:
        return "leaves its folder by '..'"
    if b"." in segments:
        return "has a '.' between its slashes"
    if b"" in segments:
        return "has nothing between two slashes or after the last"
    longest = max(map(len, segments))
    if longest > SEGMENT_BYTES_MAX:
        return f"has a part of {longest} bytes, more than {SEGMENT_BYTES_MAX}"
    return None
