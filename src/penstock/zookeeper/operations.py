"""One request that reads many nodes; ZooKeeper has it since 3.6, and kazoo has no call for it."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from struct import Struct as Layout
from typing import Any, Final, NamedTuple, TypeAlias

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from msgspec import Struct

from penstock.errors import Conflict, Unavailable

READ: Final = 4
ERROR: Final = -1

_INT = Layout(">i")
_HEADER = Layout(">i?i")  # what it is, whether it is the end, the error
_STAT = Layout(">qqqqiiiqiiq")
_NOT_WATCHED = b"\0"
_END = _HEADER.pack(-1, True, -1)


class Node(NamedTuple):
    """A node as it was read; `owner` is the session of an ephemeral one, else 0.

    `born` is the transaction that made it, and when; `created` is how many children it ever had.
    """

    data: bytes
    version: int
    owner: int
    children: int
    born: tuple[int, int]
    created: int


class ReadMany:
    """Reads these paths at once; kazoo sends it and hands the answer to `deserialize`."""

    type: Final = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytearray:
        """The request as ZooKeeper takes it."""
        header = _HEADER.pack(READ, False, -1)
        request = bytearray()
        for path in self._paths:
            encoded = path.encode()
            request += header + _INT.pack(len(encoded)) + encoded + _NOT_WATCHED
        return request + _END

    def deserialize(self, answer: Any, offset: int) -> list[Node | KazooException | None]:
        """What is at each path: None where there is nothing, or why it may not be read."""
        nodes = list(_nodes(answer, offset))
        if len(nodes) != len(self._paths):
            raise ValueError(f"{len(self._paths)} nodes were asked for, {len(nodes)} came")
        return nodes


def _nodes(answer: Any, offset: int) -> Iterator[Node | KazooException | None]:
    while True:
        kind, is_end, _ = _HEADER.unpack_from(answer, offset)
        offset += _HEADER.size
        if is_end:
            return
        [number] = _INT.unpack_from(answer, offset)
        offset += _INT.size
        if kind == ERROR:
            yield None if number == NoNodeError.code else EXCEPTIONS[number]()
            continue
        length = max(number, 0)  # no data is written as -1
        data = bytes(answer[offset : offset + length])
        offset += length
        stat = _STAT.unpack_from(answer, offset)
        offset += _STAT.size
        # ZooKeeper tells children made and deleted together, and counts only those made.
        created = (stat[5] + stat[9]) // 2
        yield Node(data, stat[4], stat[7], stat[9], (stat[0], stat[2]), created)


class Create(Struct, frozen=True):
    """Make a node; its result is its path.

    An ephemeral node goes away with the session. A sequence node's path gets ten digits that
    no other child of its parent had.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Set(Struct, frozen=True):
    """Write a node that still has this version (-1: whatever it has); its result is the new one."""

    path: str
    data: bytes
    version: int


class Delete(Struct, frozen=True):
    """Remove a node without children that still has this version (-1: whatever it has)."""

    path: str
    version: int = -1


class Check(Struct, frozen=True):
    """Hold the others to a node that still has this version (-1: whatever it has)."""

    path: str
    version: int


Op: TypeAlias = Create | Set | Delete | Check
Result: TypeAlias = str | int | None


class ErrorKind(StrEnum):
    """Why a transaction was refused."""

    NODE_EXISTS = "NODE_EXISTS"
    NO_NODE = "NO_NODE"
    BAD_VERSION = "BAD_VERSION"
    NOT_EMPTY = "NOT_EMPTY"


_WORDS = {
    ErrorKind.NODE_EXISTS: "it is already there",
    ErrorKind.NO_NODE: "it, or its parent, is not there",
    ErrorKind.BAD_VERSION: "it was changed by somebody else",
    ErrorKind.NOT_EMPTY: "it has children",
}


class Refused(Conflict):
    """One operation does not fit what is there, and so nothing of its transaction was done."""

    def __init__(self, index: int, op: Op, kind: ErrorKind) -> None:
        super().__init__(
            f"ZooKeeper refused to {type(op).__name__.lower()} {op.path}: {_WORDS[kind]}; nothing "
            "was changed, read it again"
        )
        self.index = index
        self.op = op
        self.kind = kind


class Unknown(Unavailable):
    """The connection broke before the answer came: all of it was done, or nothing.

    Whoever asked has to look (`Session.sync`, then read) before deciding to ask again.
    """
