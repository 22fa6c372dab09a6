"""Which names a file may have: those that stay in their folder, on every system."""

import re

NAME_BYTES_MAX = 4096
SEGMENT_BYTES_MAX = 255

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def safe_name(name: str, *, is_folder: bool = False) -> str | None:
    """Why a file, or a folder, must not have this name, as in "… is absolute"; None if it may."""
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
    if not is_folder and name != name.strip():  # as no manifest can name it
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
